#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A limit of N per second makes M calls take about M/N seconds, for every kind of call that can
# be slowed.
. test/libinterpose/common.bash

bad=
slow() {  # CALL SELECTOR PER-CALL-COST COUNT
  local ms least
  ms=$(limited "$2=200/s" "$PROGRAMS/loop" "$1" "$4" "$DIR") || fail "$1: $?"
  least=$(($4 * $3 * 900 / 200 - 55))
  [ "$ms" -ge "$least" ] || bad="$bad $1:${ms}ms(least $least)"
}
slow open open 1 60
slow stat stat 1 60
slow miss stat 1 60
slow pread read 1 60
slow pwrite write 1 60
slow fsync fsync 1 60
slow flock lock 1 60
slow rename rename 2 30
slow readdir opendir 1 60
slow aio read 1 60
slow sendfile read 1 60
slow copy_file_range write 1 60
slow getxattr getxattr 1 60
slow stat metadata 1 60
[ -z "$bad" ] || fail "too quick:$bad"
