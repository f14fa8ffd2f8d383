#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A child of clone() whose thread memory is zeros does what it does without us, and is counted.
. test/libinterpose/common.bash

guest "all=1M/s@$DIR" "$PROGRAMS/foreign_thread" "$DIR"
counted 3 100 passthrough foreign_thread calls
under_names "$PROGRAMS/foreign_thread" "$DIR"
