#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# How long the real calls take is told of a sample that stands for all of them, without what they
# waited, and with each fsync.
. test/libinterpose/common.bash

need strace
strace -o "$SCRATCH/try" true 2>/dev/null || skip 'cannot trace here'

cat >"$SCRATCH/work.py" <<'P'
import os, sys
name = sys.argv[1] + "/times"
fd = os.open(name, os.O_CREAT | os.O_RDWR)
for _ in range(4000):
    os.stat(name)
    os.pread(fd, 4096, 0)
    os.pwrite(fd, b"x" * 100, 0)
for _ in range(5):
    os.fsync(fd)
P

# What the report says of an op in the tree: sum_of OP FIELD.
sum_of() {
  python3 - "$report" "$DIR" "$1" "$2" <<'P'
import json, sys
path, tree, op, field = sys.argv[1:]
times = json.load(open(path))["times"]
print(sum(t[field] for t in times if t["op"] == op and t["target"] == tree))
P
}

# The kernel holds each fsync up by 60 ms, and all else runs at its own speed.
slow=(strace -f --seccomp-bpf -o "$SCRATCH/trace" -e trace=fsync
  -e inject=fsync:delay_exit=60000)
limited "all=1M/s@$DIR" "${slow[@]}" python3 "$SCRATCH/work.py" "$DIR" || fail "work: $?"
[ "$(sum_of fsync samples)" = 5 ] || fail "$(sum_of fsync samples) of 5 fsyncs timed"
[ "$(sum_of fsync took_ns)" -ge 300000000 ] || fail "fsync took $(sum_of fsync took_ns) ns"
[ "$(sum_of fsync took_max_ns)" -ge 60000000 ] || fail "the longest: $(sum_of fsync took_max_ns) ns"

# What was there over time adds up to what was there in all.
python3 - "$report" <<'P' || fail 'the time in the calls over time'
import json, sys
d = json.load(open(sys.argv[1]))
for op in ("fsync", "stat", "read"):
    rows = [r["values"] for r in d["timeline"]["rows"]
            if (r.get("op"), r["what"], r["unit"]) == (op, "took", "s")]
    assert len(rows) == 1, (op, rows)
    all_s = sum(t["took_ns"] for t in d["times"] if t["op"] == op) / 1e9
    assert abs(sum(rows[0]) - all_s) < 1e-6 * len(rows[0]), (op, sum(rows[0]), all_s)
P

# The samples stand for all calls but those of the last gap, whose length is known.
stood=0
for op in open stat read write close; do stood=$((stood + $(sum_of $op estimated_calls))); done
all=$(python3 - "$report" <<'P'
import json, sys
print(sum(c["calls"] for c in json.load(open(sys.argv[1]))["calls"] if c["op"] != "fsync"))
P
)
[ "$stood" -ge $((all - 127)) ] || fail "samples stand for $stood of $all"
[ "$stood" -le "$all" ] || fail "samples stand for $stood, there were $all"
for op in stat read write; do
  [ "$(sum_of $op samples)" -ge 10 ] || fail "$op: $(sum_of $op samples) samples"
  [ "$(sum_of $op samples)" -le 400 ] || fail "$op: $(sum_of $op samples) samples of 4,000 calls"
done

# Sizes: writes of 100 bytes, reads of those.
python3 - "$report" "$DIR" <<'P' || fail sizes
import json, sys
for row in json.load(open(sys.argv[1]))["sizes"]:
    if row["target"] == sys.argv[2] and row["op"] == "write":
        assert [s["below"] for s in row["steps"]] == [128], row
        break
else:
    sys.exit("no sizes of writes")
P

# What stdio waits for after its write is not in the time of the call.
limited "data=5/s@$DIR" sh -c 'seq 1 8 | sed -u p >"$1/lines"' sh "$DIR" || fail "sed: $?"
waited=$(json "$report" 'sum(c["waited_ns"] for c in d["channels"])')
[ "$waited" -ge 1000000000 ] || fail "sed waited $waited ns only"
[ $((2 * $(sum_of write took_ns))) -lt "$waited" ] ||
  fail "sed waited $waited ns, and its writes took $(sum_of write took_ns)"

# Of slow calls each is timed after the first, and they stand for themselves.
cat >"$SCRATCH/stats.py" <<'P'
import os, sys
for _ in range(300):
    os.stat(sys.argv[1])
P
held=(strace -f --seccomp-bpf -o "$SCRATCH/trace" -e trace=stat,newfstatat,statx
  -e inject=stat,newfstatat,statx:delay_exit=1000)
limited "all=1M/s@$DIR" "${held[@]}" python3 "$SCRATCH/stats.py" "$DIR/times" ||
  fail "slow stats: $?"
stood=$(sum_of stat estimated_calls) timed=$(sum_of stat samples)
[ "$timed" -ge 290 ] || fail "$timed of 300 slow calls timed"
if [ "$stood" -lt "$timed" ] || [ "$stood" -gt 302 ]; then
  fail "$timed slow calls stand for $stood"
fi

# What a call waits here is not in its time.
limited "fsync=10/s@$DIR" python3 "$SCRATCH/work.py" "$DIR" || fail "limited: $?"
[ "$(count channel "fsync@$DIR" delayed)" -ge 1 ] || fail 'nothing was delayed'
[ "$(sum_of fsync samples)" = 5 ] || fail "limited: $(sum_of fsync samples) of 5 fsyncs timed"
waited=$(count channel "fsync@$DIR" waited_ns) longest=$(count channel "fsync@$DIR" wait_max_ns)
[ "$longest" -le "$waited" ] || fail "the longest wait is $longest ns, all are $waited"
if [ "$(count channel "fsync@$DIR" delayed)" = 1 ] && [ "$longest" != "$waited" ]; then
  fail "the only wait is $waited ns, the longest $longest"
fi
exit 0
