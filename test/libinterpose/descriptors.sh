#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A file is a file by whatever way its descriptor came, and a pipe that got its number is none.
. test/libinterpose/common.bash

for mode in open dup dup2 dup3 dup_close fdupfd fdupfd_cloexec high scm fork openat2_raw \
  after_pipe after_pipe_range after_pipe_raw; do
  limited read=5000/s "$PROGRAMS/fd_travel" $mode "$DIR/file" 40 || fail "$mode: $?"
  counted 40 40 channel read calls || fail "$mode"
done
limited read=5000/s "$PROGRAMS/fd_travel" inherit "$DIR/file" 40 <"$DIR/file" || fail "inherit: $?"
counted 40 40 channel read calls
