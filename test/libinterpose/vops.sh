#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A limit in virtual IOPs: each call costs what the cost file says, by its kind, its size and its
# alignment; what was not moved is not paid for; a large request neither passes free nor for ever.
. test/libinterpose/common.bash
need python3

cat >"$SCRATCH/cost.json" <<'C'
{"version": 1, "max_vops": 8000, "provisionable_vops": 4000,
 "read": {"aligned": [[4096, 1], [65536, 4]], "unaligned": [[4096, 3], [65536, 8]]},
 "write": {"aligned": [[4096, 2], [65536, 10]], "unaligned": [[4096, 6], [65536, 30]]},
 "ops": {"open": 2, "create": 5, "stat": 0.25, "fsync": 20, "unlink": 7}}
C

# vops RATE CODE: Python code with `d`, the metered directory, and `f`, an open file of 1 MiB in it.
vops() {
  rm -f "$report"
  timeout -s KILL "${TIME:-60}" "$SLUICE" --run-dir "$SCRATCH/run" --no-daemon run -q \
    ${MORE-} --limit "vops=$1@$DIR" --cost "$SCRATCH/cost.json" --report "$report" --no-summary -- \
    python3 -c "import os, sys
d = sys.argv[1]
f = os.open(d + '/data', os.O_RDWR)
$2" "$DIR" || fail "status $?: $2"
}
head -c 1048576 /dev/zero >"$DIR/data"

# costs WANTED CODE: what the code costs, in VOPs, beside the opening.
costs() {
  local got
  vops 1M/s "$2"
  got=$(count channel "vops@$DIR" amount) || exit 1
  python3 -c "import sys; sys.exit(abs($got - 2 - $1) > 0.0005)" || fail "$2: $got - 2, wanted $1"
}
costs 0 'pass'
costs 10 'for i in range(10): os.pread(f, 4096, 4096 * i)'
costs 4 'os.pread(f, 65536, 0)'
costs 6 'os.pread(f, 98304, 0)'  # proportional above the last point
costs 3 'os.pread(f, 4096, 512)'
costs 2 'os.pwrite(f, b"x" * 4096, 8192)'
costs 6 'os.pwrite(f, b"x" * 1000, 0)'
costs 6.4 'os.pwrite(f, b"x" * 5120, 0)'
costs 1 'os.pread(f, 65536, 1048576 - 4096)'  # a short read
costs 60 'for i in range(20): os.pread(f, 65536, 1048576 - 4096 + 512)'
costs 0 'os.pread(f, 65536, 1048576)'  # the end of the file
costs 0 'try: os.pread(f, 4096, -5)
except OSError: pass'
costs 20 'os.fsync(f)'
costs 0.25 'os.stat(d + "/data")'
costs 240 'for i in range(20):
  os.close(os.open(d + "/new", os.O_RDWR | os.O_CREAT)); os.unlink(d + "/new")'
costs 40 'for i in range(20): os.close(os.open(d + "/data", os.O_RDONLY))'
costs 64 'os.pread(f, 1048576, 0)'

# An open that may make its file has its own price beside a second gate, too.
MORE="--limit open=1M/s@$DIR"
costs 240 'for i in range(20):
  os.close(os.open(d + "/new", os.O_RDWR | os.O_CREAT)); os.unlink(d + "/new")'
MORE=

# Beside a limit in bytes and one in operations each counts in its own unit.
MORE="--limit read=1GB/s@$DIR --limit stat=1M/s@$DIR"
vops 1M/s 'for i in range(10): os.pread(f, 8192, 512); os.pread(f, 8192, 1048576 - 4096)
for i in range(8): os.stat(d + "/data")'
MORE=
# Each pair of reads costs 3.333 VOPs unaligned, and 1 as it was short.
between 47.32 "$(count channel "vops@$DIR" amount)" 47.34 'VOPs beside bytes'
counted 122880 122880 channel "read@$DIR" amount
counted 8 8 channel "stat@$DIR" calls

# 100 VOPs at 100 a second, less what idling was worth (50 ms) and one request.
began=$(date +%s%N)
vops 100/s 'for i in range(25): os.pread(f, 65536, 0)'
ms=$((($(date +%s%N) - began) / 1000000))
[ "$ms" -ge 850 ] || fail "100 VOPs at 100/s took $ms ms"
counted 1 60 channel "vops@$DIR" delayed
counted 102 102 channel "vops@$DIR" amount

# Two threads of one job share one bucket, and each kind of request its price.
vops 200/s 'import threading
def work(size):
  for i in range(5): os.pread(f, size, 0)
t = [threading.Thread(target=work, args=(s,)) for s in (4096, 65536)]
[x.start() for x in t]; [x.join() for x in t]'
counted 27 27 channel "vops@$DIR" amount

# Only counted: the same sums, no wait.
timeout -s KILL 60 "$SLUICE" --run-dir "$SCRATCH/run" --no-daemon run -q --monitor \
  --limit "vops=1/s@$DIR" --cost "$SCRATCH/cost.json@$DIR" --report "$report" --no-summary -- \
  dd if="$DIR/data" of=/dev/null bs=64k count=4 status=none || fail "monitor: $?"
counted 16 20 channel "vops@$DIR" amount
counted 0 0 channel "vops@$DIR" delayed
