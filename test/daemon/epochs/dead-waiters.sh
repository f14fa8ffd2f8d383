#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# rows
# Programs are killed while they wait at a gate, as many as a job has slots on a node. Who comes
# while they wait is told that there is no slot; when the daemon has looked, gates open again. Also
# where the daemon does not see these programs: they are of another pid namespace. And where they
# stay as zombies.
set -u
if [ "${1-}" = --rows ]; then
  printf '%s\n' seen unseen zombies
  exit 0
fi
HOW="${1:-seen}"
. test/lib/node.bash
waiters=
end_all() {
  kill -CONT "$NODE" 2>/dev/null
  [ -z "$waiters" ] || kill -9 $waiters 2>/dev/null
  end_node
  rm -rf "$SCRATCH"
}
trap end_all EXIT
cat >"$SCRATCH/policy.json" <<P
{"targets": {"data": {"path": "$DATA",
   "after": {"write": "*/MANIFEST-*", "durable": "*/rank-*.dat", "patience": "8s"}}}}
P
cat >"$SCRATCH/p.py" <<'END_OF_PROGRAM'
import ctypes, errno, os, signal, sys
data, how = sys.argv[1:3]
if how != "zombies": signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # who is killed is no more
def answer(text):
    print(text, flush=True)
def manifest(name):
    os.close(os.open(f"{data}/MANIFEST-{name}", os.O_CREAT | os.O_WRONLY))
def fork_waiter(number):
    pid = os.fork()
    if pid == 0:
        manifest(number)
        os._exit(0)
    return str(pid)
for line in sys.stdin:
    if line == "wait\n":
        if how == "unseen" and ctypes.CDLL(None).unshare(0x20000000) != 0:  # CLONE_NEWPID
            answer("cannot")
            continue
        answer(" ".join([fork_waiter(i) for i in range(64)]))
        continue
    try:
        manifest("own")
        answer("ok")
    except OSError as e:
        answer(errno.errorcode[e.errno])
END_OF_PROGRAM
start_node
mkfifo "$SCRATCH/in" "$SCRATCH/out"
$S run --job j --no-summary --report "$SCRATCH/report" -- \
  python3 "$SCRATCH/p.py" "$DATA" "$HOW" <"$SCRATCH/in" >"$SCRATCH/out" 2>"$SCRATCH/err" &
job=$!
exec 8>"$SCRATCH/in" 9<"$SCRATCH/out"
tell() { echo "$1" >&8 && read -r -t 60 said <&9 || fail "it is gone: $(cat "$SCRATCH/err")"; }
opens() { tell open && [ "$said" = ok ]; }
opens || fail "the first gate: $said"

all_have_asked() { # the slots are the end of the area; their state: posted
  python3 - "$RUN"/jobs/*/after <<'END_OF_LOOK'
import struct, sys
slots = open(sys.argv[1], "rb").read()[-64 * 64:]
sys.exit(any(struct.unpack_from("I", slots, i * 64)[0] & 7 != 2 for i in range(64)))
END_OF_LOOK
}
kill -STOP "$NODE"
tell wait
[ "$said" != cannot ] || skip 'cannot make a pid namespace'
waiters=$said
until_true all_have_asked || fail 'they do not ask'
kill -STOP $waiters # so that none gives its slot back
tell open
[ "$said" = EIO ] || fail "without a slot: $said"
kill -KILL $waiters 2>/dev/null # the first of a pid namespace takes the others along
waiters=
kill -CONT "$NODE"
until_true 1 opens || fail "gates stay shut: $said"

exec 8>&-
wait "$job"
[ "$(json "$SCRATCH/report" 'd["after"]["no_slot"]')" -ge 1 ] || fail "$(cat "$SCRATCH/report")"
[ "$(json "$SCRATCH/report" 'd["after"]["silent"]')" = 0 ] || fail "$(cat "$SCRATCH/report")"
exit 0
