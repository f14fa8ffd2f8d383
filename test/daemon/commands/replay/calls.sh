#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the replay says it did, the kernel saw: each operation is one call, a close closes what was
# opened, and no call is wasted. The calls on its own directory are counted by strace.
set -u
. test/daemon/commands/replay/replay.bash
need strace
trap 'rm -rf "$SCRATCH"' EXIT
strace -o "$SCRATCH/trace" true 2>/dev/null || skip "strace cannot trace here"
mkdir "$SCRATCH/d"
trace "$SCRATCH/t.csv" 1 open,close,getattr,rename,unlink,mkdir,rmdir,setattr,statfs \
  200,200,300,50,100,30,30,40,20
# By one thread, so each open has ended before the close of what it opened is due. With a thread for
# each kind one that is held up has others make what they need.
strace -f -qq -o "$SCRATCH/trace" -e trace=file,desc -e signal=none \
  "$(dirname "$SLUICE")/sluice-replay" "$SCRATCH/t.csv" --target "$SCRATCH/d" --files 100 \
  --threads 1 -o "$SCRATCH/r.json" >/dev/null || fail "status $?"

# The senders are the threads that look at attributes, rename …: only what they did counts.
python3 - "$SCRATCH/trace" "$SCRATCH/r.json" <<'E2' || fail "see above"
import collections, json, re, sys
calls = {"stat": "getattr", "newfstatat": "getattr", "rename": "rename", "unlink": "unlink",
         "mkdir": "mkdir", "rmdir": "rmdir", "chmod": "setattr", "statfs": "statfs"}
seen = collections.Counter()
opened, bad_close, closed = set(), 0, 0
begun = {}
for line in open(sys.argv[1], errors="replace"):
    pid, rest = line.split(None, 1)
    m = re.match(r"<\.\.\. (\w+) resumed>(.*)", rest)
    if m:
        rest = begun.pop(pid, m.group(1) + "(") + m.group(2)
    elif "<unfinished" in rest:
        begun[pid] = rest.split(" <unfinished")[0]
        continue
    m = re.match(r"(\w+)\((.*)\)\s+= (-?\d+)", rest)
    if not m:
        continue
    name, args, result = m.group(1), m.group(2), int(m.group(3))
    if name in calls and re.search(r'"j0/', args) and result == 0 and "AT_REMOVEDIR" not in args:
        seen[calls[name]] += 1
    if name == "openat" and result >= 0 and '"j0/' in args:
        opened.add(result)
    if name == "close":
        closed += 1
        bad_close += result != 0
totals = {t["op"]: t for t in json.load(open(sys.argv[2]))["totals"]}
wrong = [f"{op}: {seen[op]} calls, {totals[op]['done']} in the result"
         for op in ("getattr", "rename", "unlink", "setattr", "statfs")
         if seen[op] != totals[op]["done"]]
helpers = json.load(open(sys.argv[2]))["jobs"][0]["helper_calls"]
if helpers:
    wrong.append(f"{helpers} calls of its own, and the trace needs none")
if bad_close:
    wrong.append(f"{bad_close} closes of what was not open")
if closed < totals["close"]["done"]:
    wrong.append(f"{closed} closes, {totals['close']['done']} in the result")
print("\n".join(wrong))
sys.exit(bool(wrong))
E2
is_empty "$SCRATCH/d" calls
