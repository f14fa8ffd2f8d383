#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A limit in bytes holds for plain reads and for what stdio reads and writes.
. test/libinterpose/common.bash

bad=
slow() {  # CALL SELECTOR COUNT SIZE
  local ms least
  ms=$(limited "$2=1MB/s" "$PROGRAMS/loop" "$1" "$3" "$DIR" "$4") || fail "$1: $?"
  least=$(($3 * $4 * 9 / 10000 - 110))
  [ "$ms" -ge "$least" ] || bad="$bad $1:${ms}ms(least $least)"
}
slow pread read 100 4096
slow pwrite write 100 4096
slow pwrite data 100 4096
slow fread read 100 4096
slow fwrite write 100 4096
slow aio read 100 4096
slow sendfile read 4 102400
slow copy_file_range write 4 102400
[ -z "$bad" ] || fail "too quick:$bad"
