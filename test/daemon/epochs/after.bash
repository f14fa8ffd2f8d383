# SPDX-License-Identifier: Apache-2.0
# For tests of cluster epochs: a cluster and nodes of one machine, a target $DATA with "after", and
# with "order" where $ORDER says one, and a program p.py that writes, or tries what waits at a gate.
. test/lib/node.bash
pids=
trap 'kill -CONT $pids 2>/dev/null; kill $pids 2>/dev/null; rm -rf "$SCRATCH"' EXIT
cat >"$SCRATCH/site.json" <<P
{"targets": {"scratch": {"path": "$DATA", ${ORDER:+"\"order\": \"$ORDER\", "}"after":
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
        if line == "sync\n":
            os.write(fd, b"d" * 4096)
            os.fsync(fd)
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
port=$(free_port)
start_cluster() {
  "$SLUICED" --role cluster --name ctl --run-dir "$RUN" --policy "$SCRATCH/site.json" --plain \
    --listen "tcp://127.0.0.1:$port" --metrics none >>"$SCRATCH/log" 2>&1 &
  ctl=$!
  pids="$pids $ctl"
  until_true $S policy get || fail "the cluster daemon does not start: $(tail "$SCRATCH/log")"
}
start_one() { # NUMBER FLAGS...
  local name=n$1
  shift
  "$SLUICED" --role node --name "$name" --run-dir "$SCRATCH/$name" --plain \
    --parent "tcp://127.0.0.1:$port" --metrics none "$@" >>"$SCRATCH/log-$name" 2>&1 &
  eval "$name=$!"
  pids="$pids $!"
  until_true "$SLUICE" --run-dir "$SCRATCH/$name" policy get ||
    fail "$name: $(tail "$SCRATCH/log-$name")"
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
