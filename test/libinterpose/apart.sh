#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A thread with a directory or with descriptors of its own: its calls count for its files, and
# those of other threads, which have the same names and numbers for other files, do not.
. test/libinterpose/common.bash

outside=$SCRATCH/outside
mkdir -p "$outside"
echo inside >"$DIR/file"
echo outside >"$outside/file"
counts() { # MODE OPENS READS
  guest "open=1M/s@$DIR,read=1M/s@$DIR" "$PROGRAMS/apart" "$1" "$DIR" "$outside"
  counted "$2" "$2" channel "open@$DIR" calls
  counted "$3" "$3" channel "read@$DIR" calls
}
counts directory 10 10
counts descriptors 1 10
counts range 1 10
