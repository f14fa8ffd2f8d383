#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --report: valid JSON with every promised key, and the counts of a program whose calls are known.
set -u
. test/lib/lib.sh
need python3
"$SLUICE" --run-dir "$SCRATCH/run" run --limit open=1000/s --limit "data=100MiB/s@$SCRATCH" \
  --report "$SCRATCH/r.json" -- sh -c "echo hello >$SCRATCH/f; cat $SCRATCH/f >/dev/null; exit 5"
[ $? = 5 ] || fail "status"
python3 - "$SCRATCH/r.json" "$SCRATCH" <<'P' || fail "the report"
import json, sys
d = json.load(open(sys.argv[1]))
assert d["version"] == 1 and d["exit"] == {"code": 5} and d["elapsed_s"] > 0, d
assert d["command"][0] == "sh" and d["job"].startswith("run-")
assert d["processes"]["attached"] >= 2 and d["processes"]["running"] == 0, d["processes"]
by_name = {c["name"]: c for c in d["channels"]}
assert set(by_name) == {"open", "data@" + sys.argv[2]}, by_name
assert by_name["open"]["rate_per_s"] == 1000 and by_name["open"]["unit"] == "ops"
assert by_name["open"]["target"] is None and by_name["open"]["calls"] >= 2
data = by_name["data@" + sys.argv[2]]
assert data["unit"] == "bytes" and data["rate_per_s"] == 100 * 2**20
assert data["target"] == sys.argv[2]
for c in d["channels"]:
    for key in "calls amount delayed waited_ns wait_p50_ns wait_p99_ns wait_max_ns".split():
        assert isinstance(c[key], int), (key, c)
for c in d["calls"]:
    assert c["calls"] > 0
    assert set(c) == set("call op class calls errors bytes delayed waited_ns".split())
assert sum(c["bytes"] for c in d["calls"] if c["op"] == "write") == 6, d["calls"]
assert isinstance(d["passthrough"], list)
P
"$SLUICE" --run-dir "$SCRATCH/run" run --limit open=200M/s --summary -- true 2>"$SCRATCH/said"
grep -q '^  open  *200M/s ' "$SCRATCH/said" || fail "a large rate: $(cat "$SCRATCH/said")"
"$SLUICE" --run-dir "$SCRATCH/run" run --report "$SCRATCH/k.json" -- sh -c 'kill -9 $$' 2>/dev/null
[ "$(json "$SCRATCH/k.json" 'd["exit"]')" = "{'signal': 9}" ] || fail "signal in the report"
"$SLUICE" --run-dir "$SCRATCH/run" run --report - -- sh -c 'ls /proc/self/fd >&2' \
  2>"$SCRATCH/fds" >"$SCRATCH/r.json" || fail "--report -"
"$SLUICE" --run-dir "$SCRATCH/run" run --report "$SCRATCH/f.json" --no-summary -- \
  sh -c 'ls /proc/self/fd >&2' 2>"$SCRATCH/fds.file" || fail "--report FILE"
cmp -s "$SCRATCH/fds" "$SCRATCH/fds.file" ||
  fail "--report - gives the program descriptors: $(tr '\n' ' ' <"$SCRATCH/fds")"

# A run that is refused leaves the report of the one before as it was.
echo old >"$SCRATCH/keep.json"
"$SLUICE" --run-dir "$SCRATCH/run" run --limit opne=1/s --report "$SCRATCH/keep.json" -- \
  true 2>/dev/null &&
  fail "a limit that is none"
[ "$(cat "$SCRATCH/keep.json")" = old ] || fail "a refused run emptied the report"
chmod 640 "$SCRATCH/keep.json"
ln -s keep.json "$SCRATCH/link.json"
"$SLUICE" --run-dir "$SCRATCH/run" run --report "$SCRATCH/link.json" -- true || fail "a link"
[ -L "$SCRATCH/link.json" ] || fail "the link was replaced"
[ "$(json "$SCRATCH/keep.json" 'd["exit"]["code"]')" = 0 ] || fail "not written through the link"
[ "$(stat -c %a "$SCRATCH/keep.json")" = 640 ] || fail "the mode changed"
mkfifo "$SCRATCH/fifo"
cat "$SCRATCH/fifo" >"$SCRATCH/from-fifo" &
"$SLUICE" --run-dir "$SCRATCH/run" run --report "$SCRATCH/fifo" -- true || fail "a fifo"
wait $!
[ "$(json "$SCRATCH/from-fifo" 'd["exit"]["code"]')" = 0 ] || fail "nothing came through the fifo"
"$SLUICE" --run-dir "$SCRATCH/run" run --report /dev/stdout -- true >"$SCRATCH/out.json" ||
  fail "stdout"
[ "$(json "$SCRATCH/out.json" 'd["exit"]["code"]')" = 0 ] || fail "/dev/stdout of a file"
[ -z "$(find "$SCRATCH" -name '*.json.??????')" ] || fail "left behind: $(ls "$SCRATCH")"

# A run of a moment has points of a moment: between its first call and its last are 0.3 s.
"$SLUICE" --run-dir "$SCRATCH/run" run --no-daemon --report "$SCRATCH/short.json" --no-summary -- \
  sh -c "cat $SCRATCH/short.sh; sleep 0.3; cat $SCRATCH/short.sh" >/dev/null 2>&1
[ "$(json "$SCRATCH/short.json" 'len(d["timeline"]["rows"][0]["values"]) >= 15')" = True ] ||
  fail "a short run: $(json "$SCRATCH/short.json" 'd["timeline"]')"
