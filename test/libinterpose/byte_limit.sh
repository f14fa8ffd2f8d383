#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A limit in bytes holds for plain reads and for what stdio reads and writes. A call that waits
# before it and after it has waited once.
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

# Each but the first waits before the call, for what those before it owe, and after it.
once() {  # CALL COUNT SIZE CHANNEL
  limited "$4=5MB/s" "$PROGRAMS/loop" "$1" "$2" "$DIR" "$3" >"$SCRATCH/ms" || fail "$1: $?"
  counted $(($2 - 1)) "$2" channel "$4" delayed
  counted $(($2 - 1)) "$2" call "$1" delayed
}
once pwrite 6 102400 write
once fwrite 6 102400 write
once copy_file_range 6 102400 write
limited write=5MB/s "$PROGRAMS/loop" pwrite 1 "$DIR" 204800 >"$SCRATCH/ms" || fail "one: $?"
counted 1 1 channel write delayed
all=$(count channel write waited_ns) longest=$(count channel write wait_max_ns)
[ "$longest" = "$all" ] || fail "the only wait is $all ns, the longest $longest ns"
