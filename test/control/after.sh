#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# Cluster epochs with real daemons: a file like a manifest is opened, renamed onto or linked when
# the data of all nodes of its job is durable, and not before; a node that is killed, stopped or cut
# off, and a controller that is not there, are an error with a reason within bounded time. One node
# alone, with a daemon and without, does it by itself.
set -u
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/cli.bash"
pids=
trap 'kill -CONT $pids 2>/dev/null; kill $pids 2>/dev/null; rm -rf "$SCRATCH"' EXIT
DATA="$SCRATCH/tree"
mkdir "$DATA"
cat >"$SCRATCH/site.json" <<P
{"targets": {"scratch": {"path": "$DATA", "after":
   {"write": "*/MANIFEST-*", "durable": "*/rank-*.dat", "patience": "12s"}}},
 "control": {"nodes": "n[1-2]"}}
P
cat >"$SCRATCH/p.py" <<'END'
import ctypes, errno, os, sys, time
def dirty(fd):  # pages of it that no disk has; -1: this kernel does not say
    at, seen = (ctypes.c_uint64 * 2)(0, 0), (ctypes.c_uint64 * 5)()
    r = ctypes.CDLL(None).syscall(451, fd, at, seen, 0)
    return -1 if r != 0 else seen[1] + seen[2]
def attempt(call):
    began = time.monotonic()
    try:
        call()
        print("ok", flush=True)
    except OSError as e:
        print(errno.errorcode[e.errno], flush=True)
    assert time.monotonic() - began < 60
what, path = sys.argv[1:3]
if what == "data":  # until it is told to end
    fd = os.open(path, os.O_CREAT | os.O_RDWR)
    os.write(fd, b"d" * (1 << 20))
    print("written", flush=True)
    for line in sys.stdin:
        if line == "end\n":
            break
        print(dirty(fd) if line == "dirty\n" else os.write(fd, b"d" * 4096), flush=True)
elif what == "open":
    attempt(lambda: os.open(path, os.O_CREAT | os.O_WRONLY))
elif what == "rename":
    open(path.replace("MANIFEST-", "new-"), "w").close()
    attempt(lambda: os.rename(path.replace("MANIFEST-", "new-"), path))
elif what == "link":
    open(path.replace("MANIFEST-", "new-"), "w").close()
    attempt(lambda: os.link(path.replace("MANIFEST-", "new-"), path))
elif what == "stream":
    attempt(lambda: open(path, "w"))
elif what == "read":
    attempt(lambda: os.open(path, os.O_RDONLY))
elif what == "goes-on":  # has it open, and goes on behind the error
    fd = os.open(path, os.O_CREAT | os.O_RDWR)
    print("open", flush=True)
    sys.stdin.readline()
    attempt(lambda: os.open(path, os.O_RDWR))
    os.write(fd, b"manifest")
    attempt(lambda: os.fsync(fd))
END
port=$(python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
start_cluster() {
  "$SLUICED" --role cluster --name ctl --run-dir "$RUN" --policy "$SCRATCH/site.json" --plain \
    --listen "tcp://127.0.0.1:$port" --metrics none >>"$SCRATCH/log" 2>&1 &
  ctl=$!
  pids="$pids $ctl"
  until_true $S policy get || fail "the cluster daemon does not start: $(tail "$SCRATCH/log")"
}
start_one() { # NUMBER
  "$SLUICED" --role node --name "n$1" --run-dir "$SCRATCH/n$1" --plain \
    --parent "tcp://127.0.0.1:$port" --metrics none >>"$SCRATCH/log$1" 2>&1 &
  eval "n$1=$!"
  pids="$pids $!"
  until_true "$SLUICE" --run-dir "$SCRATCH/n$1" policy get || fail "n$1: $(tail "$SCRATCH/log$1")"
}
on() { # NODE JOB WHAT PATH: its answer
  "$SLUICE" --run-dir "$SCRATCH/n$1" run --no-summary --job "$2" --report "$SCRATCH/report" -- \
    python3 "$SCRATCH/p.py" "$3" "$4" 2>>"$SCRATCH/err"
}
# begin_data NODE JOB: a program that has written, and stays; its pipes are $to and $from.
begin_data() {
  rm -f "$SCRATCH/in" "$SCRATCH/out"
  mkfifo "$SCRATCH/in" "$SCRATCH/out"
  "$SLUICE" --run-dir "$SCRATCH/n$1" run --no-summary --job "$2" -- \
    python3 "$SCRATCH/p.py" data "$DATA/rank-$1.dat" <"$SCRATCH/in" >"$SCRATCH/out" &
  worker=$!
  pids="$pids $worker"
  exec 8>"$SCRATCH/in" 9<"$SCRATCH/out"
  read -r -t 30 said <&9 && [ "$said" = written ] || fail "no data was written: $said"
}
tell() { echo "$1" >&8 && read -r -t 30 said <&9 || fail "the worker is gone"; }
end_data() {
  echo end >&8
  wait "$worker"
  exec 8>&- 9<&-
}
reason() { grep -h 'a gate stays closed' "$SCRATCH/log" | tail -n 1; }
failed_with() { # TEXT: the reason of the last one, here and in the report
  reason | grep -q "$1" || fail "reason: $(reason), not $1"
  json "$SCRATCH/report" 'd["after"]["reason"]' | grep -q "$1" || fail "$(cat "$SCRATCH/report")"
  [ "$(json "$SCRATCH/report" 'd["after"]["refused"]')" -ge 1 ] || fail 'not counted'
}

start_cluster
start_one 1
start_one 2

# All nodes: what the other one wrote is durable when the manifest can be opened.
begin_data 2 all
tell dirty
before=$said
i=0
for how in open rename link stream; do
  i=$((i + 1))
  tell more
  got=$(on 1 all "$how" "$DATA/MANIFEST-$i")
  [ "$got" = ok ] || fail "$how: $got, $(reason)"
  [ -e "$DATA/MANIFEST-$i" ] || fail "$how made nothing"
  tell dirty
  [ "$before" -le 0 ] || [ "$said" = 0 ] || fail "$how: $said pages of the other node are dirty"
done
[ "$(on 1 all read "$DATA/MANIFEST-1")" = ok ] || fail 'reading'
[ "$(json "$SCRATCH/report" 'd["after"]["known"]')" = True ] || fail "$(cat "$SCRATCH/report")"

# It waits for the other node: stopped for a while, it is asked again and all goes on.
kill -STOP "$n2"
on 1 all open "$DATA/MANIFEST-wait" >"$SCRATCH/got" &
waits=$!
sleep 2
[ -e "$DATA/MANIFEST-wait" ] && fail 'it did not wait for the other node'
kill -CONT "$n2"
wait "$waits"
[ "$(cat "$SCRATCH/got")" = ok ] || fail "after a while: $(cat "$SCRATCH/got") $(reason)"

# Stopped for good: an error, a reason, and no file.
kill -STOP "$n2"
[ "$(on 1 all open "$DATA/MANIFEST-stopped")" = EIO ] || fail 'opened without the stopped node'
[ ! -e "$DATA/MANIFEST-stopped" ] || fail 'and it is there'
failed_with 'node n2 is silent'
[ "$(on 1 all rename "$DATA/MANIFEST-stopped")" = EIO ] || fail 'renamed without that node'
[ ! -e "$DATA/MANIFEST-stopped" ] || fail 'and it is there by another name'
kill -CONT "$n2"
opens() { [ "$(on 1 all open "$DATA/MANIFEST-again")" = ok ]; }
until_true opens || fail "the node is back, and no gate opens: $(reason)"

# Who goes on behind the error hears of it from fsync.
mkfifo "$SCRATCH/go"
on 1 all goes-on "$DATA/MANIFEST-again" <"$SCRATCH/go" >"$SCRATCH/got" &
waits=$!
exec 7>"$SCRATCH/go"
until_true grep -q open "$SCRATCH/got" || fail 'not open'
kill -STOP "$n2"
echo go >&7
exec 7>&-
wait "$waits"
kill -CONT "$n2"
[ "$(tr '\n' ' ' <"$SCRATCH/got")" = 'open EIO EIO ' ] || fail "goes on: $(cat "$SCRATCH/got")"

# The controller starts again: it knows whom to ask.
kill "$ctl"
wait "$ctl"
start_cluster
until_true opens || fail "the controller is back, and no gate opens: $(reason)"
kill -STOP "$n2"
[ "$(on 1 all open "$DATA/MANIFEST-known")" = EIO ] || fail 'a new controller forgot the other node'
kill -CONT "$n2"

# Killed in the middle.
kill -STOP "$n2"
on 1 all open "$DATA/MANIFEST-killed" >"$SCRATCH/got" &
waits=$!
sleep 1
kill -KILL "$n2"
wait "$waits"
[ "$(cat "$SCRATCH/got")" = EIO ] || fail "killed: $(cat "$SCRATCH/got")"
failed_with 'node n2'
# Its daemon is back, and the job lives: what it wrote is in memory still.
start_one 2
until_true opens || fail "its daemon is back, and no gate opens: $(reason)"

# A job that ended is synced before it is forgotten, and then not asked.
end_data
gone() { ! "$SLUICE" --run-dir "$SCRATCH/n2" jobs | grep -q all; }
until_true gone || fail 'the job does not end'
kill -STOP "$n2"
opens_now() { [ "$(on 1 all open "$DATA/MANIFEST-ended")" = ok ]; }
opens_now || fail "it asks a node where the job has ended: $(reason)"
kill -CONT "$n2"

# No controller.
kill -STOP "$ctl"
[ "$(on 1 all open "$DATA/MANIFEST-alone")" = EIO ] || fail 'opened without the controller'
[ "$(on 1 new open "$DATA/rank-1.dat")" = EIO ] || fail 'data of a node that nobody knows of'
[ "$(json "$SCRATCH/report" 'd["after"]["unknown"]')" = 1 ] || fail "$(cat "$SCRATCH/report")"
kill -CONT "$ctl"

# One node without a parent, and none.
kill "$n1"
wait "$n1" 2>/dev/null
"$SLUICED" --role node --name n3 --run-dir "$SCRATCH/n3" --policy "$SCRATCH/site.json" \
  --metrics none >>"$SCRATCH/log3" 2>&1 &
pids="$pids $!"
until_true "$SLUICE" --run-dir "$SCRATCH/n3" policy get || fail "n3: $(tail "$SCRATCH/log3")"
begin_data 3 one
[ "$(on 3 one open "$DATA/MANIFEST-one")" = ok ] || fail 'a node by itself'
tell dirty
[ "$before" -le 0 ] || [ "$said" = 0 ] || fail "by itself: $said pages are dirty"
end_data
got=$("$SLUICE" --run-dir "$SCRATCH/n4" --no-daemon run --no-summary --policy "$SCRATCH/site.json" \
  --report "$SCRATCH/report" -- python3 "$SCRATCH/p.py" open "$DATA/MANIFEST-none")
[ "$got" = ok ] || fail "without a daemon: $got"
[ "$(json "$SCRATCH/report" 'd["after"]["opened"]')" = 1 ] || fail "$(cat "$SCRATCH/report")"
exit 0
