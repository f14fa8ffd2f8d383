#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# With standard output closed or full nothing is printed and errno is the call's own.
. test/libinterpose/common.bash

guest open=1000/s,stat=1000/s "$PROGRAMS/quiet" "$DIR"
counted 50 1000 op open calls
