#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A child forked while other threads wait is free to go on.
. test/libinterpose/common.bash

guest read=100/s,stat=100/s "$PROGRAMS/fork_threads" "$DIR"
counted 5 1000000 channel read delayed
