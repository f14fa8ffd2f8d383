#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Four clients change a job in a loop. The daemon writes that down at most twenty times a second,
# and tells nobody before: it is killed right after an answer, and the next one knows the change.
set -u
. test/lib/node.bash
policy 5k/s
mkdir "$SCRATCH/state"
start_node --state-dir "$SCRATCH/state"
job=
trap 'kill ${job:-} 2>/dev/null; end_node' EXIT
$S run --job work --no-summary -- sleep 600 &
job=$!
until_true 30 is True "[j['job'] for j in d] == ['work']" || fail "no job: $(cat "$SCRATCH/log")"

python3 - "$RUN" "$SCRATCH/state" "$NODE" <<'END' || fail "$(cat "$SCRATCH/log")"
import ctypes, json, os, select, signal, socket, struct, sys, time
run, state, daemon = sys.argv[1], sys.argv[2], int(sys.argv[3])
libc = ctypes.CDLL(None, use_errno=True)
watch = libc.inotify_init1(os.O_NONBLOCK)
assert libc.inotify_add_watch(watch, state.encode(), 0x80) > 0  # IN_MOVED_TO
def client():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(run + "/sluiced.sock")
    return s
def ask(s, rate):
    s.send(json.dumps({"verb": "set", "job": "work", "assignment": f"metadata={rate}/s"}).encode())
def answer(s):
    said = json.loads(s.recv(1 << 17))
    assert "error" not in said, said
clients = [client() for _ in range(4)]
begun = time.monotonic()
for rate in range(100, 130):
    for s in clients: ask(s, rate)
    for s in clients: answer(s)
took = time.monotonic() - begun
writes, events = 0, b""
while select.select([watch], [], [], 0)[0]:
    events = os.read(watch, 1 << 16)
    at = 0
    while at < len(events):
        size = struct.unpack_from("iIII", events, at)[3]
        writes += events[at + 16:at + 16 + size].rstrip(b"\0") == b"overrides.json"
        at += 16 + size
print(writes, "writes in", took)
assert 1 <= writes <= took * 20 + 2, writes
ask(clients[0], 77)
answer(clients[0])
os.kill(daemon, signal.SIGKILL)
END
wait "$NODE" 2>/dev/null
start_node --state-dir "$SCRATCH/state"
is 77.0 "[s for j in d for s in j['streams']][0]['limit']" || fail "lost: $(field d)"
# A request that is refused changes nothing, and nobody else waits for an answer because of it.
python3 - "$RUN" <<'END' || fail "$(cat "$SCRATCH/log")"
import json, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.settimeout(60)
s.connect(sys.argv[1] + "/sluiced.sock")
def ask(**request):
    s.send(json.dumps(request).encode())
    return json.loads(s.recv(1 << 17))
for wrong in {"name": 1}, {"dry_run": 1}, {"dry_run": True}:
    said = ask(verb="set", job="work", assignment="metadata=5/s", **wrong)
    assert "error" in said, (wrong, said)
    assert "error" not in ask(verb="hello"), wrong
END
is 77.0 "[s for j in d for s in j['streams']][0]['limit']" || fail "it changed: $(field d)"
# Who is told to stop writes what is not written.
$S set work metadata=78/s >/dev/null || fail 'set'
end_node
start_node --state-dir "$SCRATCH/state"
is 78.0 "[s for j in d for s in j['streams']][0]['limit']" || fail "lost at an end: $(field d)"
# What cannot be written is told as what it is.
rm "$SCRATCH/state/overrides.json"
mkdir "$SCRATCH/state/overrides.json"
$S set work metadata=79/s >"$SCRATCH/out" 2>&1 || fail 'set'
grep -q 'could not be saved' "$SCRATCH/out" || fail "no warning: $(cat "$SCRATCH/out")"
# It is written at an end, if it can be then.
rmdir "$SCRATCH/state/overrides.json"
end_node
start_node --state-dir "$SCRATCH/state"
is 79.0 "[s for j in d for s in j['streams']][0]['limit']" || fail "not tried again: $(field d)"
