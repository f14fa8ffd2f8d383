#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A read is charged for what it returned: a large buffer costs nothing at the end of a file.
. test/libinterpose/common.bash

TIME=8 guest read=1MB/s "$PROGRAMS/large_count" "$DIR"
counted 163840 163840 channel read amount
TIME=8 guest all=100k/s,read=1MB/s "$PROGRAMS/large_count" "$DIR"
counted 163840 163840 channel read amount
cat >"$SCRATCH/cost.json" <<'C'
{"version": 1, "max_vops": 8000, "provisionable_vops": 4000, "read": [[4096, 1], [1048576, 20]],
 "write": [[4096, 1], [1048576, 20]], "ops": {"open": 1, "stat": 1, "fsync": 1}}
C
timeout -s KILL 8 "$SLUICE" --run-dir "$SCRATCH/run" --no-daemon run -q --no-summary \
  --limit "vops=2k/s@$DIR" --cost "$SCRATCH/cost.json" -- "$PROGRAMS/large_count" "$DIR" ||
  fail "in VOPs: status $?"

# A size that is no number is refused, and what is read after it is limited as before it.
head -c 1048576 /dev/zero >"$DIR/mega"
limited data=1MB/s python3 -c 'import ctypes, os, sys
read = ctypes.CDLL(None).read
read.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t]
f = os.open(sys.argv[1], os.O_RDONLY)
room = ctypes.create_string_buffer(65536)
os.pread(f, 1, 0)
assert read(f, room, 2**64 - 10**9) == -1
for i in range(16): assert len(os.pread(f, 65536, 0)) == 65536' "$DIR/mega" ||
  fail "a size below zero: status $?"
counted 1 1000 channel data delayed
