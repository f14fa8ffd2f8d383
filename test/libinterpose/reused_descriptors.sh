#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The number of a closed file goes to a pipe: its reads take no token and no time.
. test/libinterpose/common.bash

for mode in reused_close reused_range reused_dup2 reused_raw; do
  TIME=4 limited read=5/s "$PROGRAMS/fd_travel" $mode "$DIR/file" 400 || fail "$mode: $?"
  counted 0 400 channel read calls
done
