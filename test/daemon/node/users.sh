#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Two users on one node: neither sees, changes nor joins the other's job, and both are metered.
set -u
. test/lib/node.bash
two_users
python=/usr/bin/python3  # one that everybody can reach
as $bob "$python" -c 'import json' 2>/dev/null || skip "needs $python"
policy 500/s
start_node
umask 000
"$LOOP" prepare 1 "$DATA" >/dev/null || fail "prepare"
chmod -R a+rwX "$DATA"

as $ann "$SLUICE" --run-dir "$RUN" run --job work -- "$LOOP" open 20000 "$DATA" \
  >"$SCRATCH/ann" 2>&1 &
work=$!
seg="$RUN/jobs/$ann@work/segment"
until_true test -e "$seg" || fail "no job: $(cat "$SCRATCH/ann")"
[ "$(stat -c '%u %a' "$seg")" = "$ann 600" ] || fail "segment is $(stat -c '%u %a' "$seg")"
[ "$(stat -c '%u' "$(dirname "$seg")")" = 0 ] || fail "the folder is not the daemon's"

as $bob cat "$seg" >/dev/null 2>&1 && fail "another user reads the segment"
as $bob ls "$RUN/jobs" >/dev/null 2>&1 && fail "another user lists the jobs"
as $ann rm -f "$seg" 2>/dev/null && [ ! -e "$seg" ] && fail "the owner removed the segment"
ask() {
  as "$1" "$python" - "$RUN/sluiced.sock" "$2" <<'END'
import json, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(sys.argv[1])
s.send(sys.argv[2].encode())
print(json.dumps(json.loads(s.recv(1 << 17))))
END
}
ask $bob '{"verb":"hello"}' | grep -q '"role"' || fail "the daemon does not serve another user"
ask $bob '{"verb":"jobs"}' | grep -q work && fail "another user sees the job"
ask $ann '{"verb":"jobs"}' | grep -q '"work"' || fail "the owner does not see his job"
for verb in set pause explain; do
  ask $bob "{\"verb\":\"$verb\",\"job\":\"$ann@work\",\"assignment\":\"metadata=1/s\"}" |
    grep -q '"error"' || fail "another user may $verb"
done
ask $bob '{"verb":"policy-apply","text":"{}"}' | grep -q '"error"' || fail "anybody sets the policy"
ask $bob '{"verb":"policy-log"}' | grep -q '"error"' || fail "anybody reads old policies"
ask $ann '{"verb":"set","job":"work","assignment":"class=gold"}' | grep -q '"error"' ||
  fail "the owner raised his class"
# The same name is another job.
ask $bob '{"verb":"join","job":"work"}' | grep -q "$bob@work" || fail "joined another user's job"
ask $ann '{"verb":"set","job":"work","assignment":"metadata=400/s"}' | grep -q '"now"' ||
  fail "the owner may not lower his own limit"

# The owner truncates his file under the daemon: that job is dropped, the daemon goes on.
as $ann truncate -s 0 "$RUN/jobs/$ann@work/segment"
until_true grep -q 'cut short' "$SCRATCH/log" || fail "a truncated segment was not noticed"
kill -0 "$NODE" || fail "a truncated segment killed the daemon"
ask $bob '{"verb":"hello"}' | grep -q '"role"' || fail "the daemon no longer answers"
kill "$work" 2>/dev/null
wait "$work" 2>/dev/null

# Nobody takes all places.
python3 - "$RUN/sluiced.sock" $ann <<'END' || fail "one user can hold more than four connections"
import os, socket, sys
os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[2]))
held = []
for i in range(5):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(3)
    s.connect(sys.argv[1])
    try:
        s.send(b'{"verb":"hello"}')
        answer = s.recv(1 << 16)
    except (BrokenPipeError, ConnectionResetError):
        answer = s.recv(1 << 16)  # refused and hung up: the reason can still be read
    held.append((s, b"too many" in answer))
sys.exit([full for _, full in held] != [False] * 4 + [True])
END

# Nor do a few users together: fourteen hold all that they may have, and another one is answered.
python3 - "$RUN/sluiced.sock" <<'END' || fail "fourteen users keep out another one"
import os, socket, sys
def connect(uid):
    os.seteuid(uid)  # the kernel tells who connects
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(10)
    s.connect(sys.argv[1])
    os.seteuid(0)
    return s
def is_answered(s):
    try:
        s.send(b'{"verb":"hello"}')
    except BrokenPipeError:
        pass  # refused: the reason can still be read
    return b'"role"' in s.recv(1 << 16)
held = [connect(70000 + i // 4) for i in range(56)]
assert all([is_answered(s) for s in held]), "the crowd has no place"
more = [connect(70100 + i) for i in range(9)]  # the last of them takes a place of theirs
sys.exit(not all([is_answered(s) for s in more]))
END
