#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# --small strict: small writes at the end of a file wait outside the program. The program sees no
# difference, and nobody who opens the file does; nothing is lost when the program or one of the
# keepers is killed, or the file system is full; what is charged is what the kernel was asked for.
# timeout: 400
. test/lib/lib.sh
own_mounts
. test/libinterpose/small/runs.bash
need python3 dd

writing() { below strict "$@"; }  # DIR CMD…
gathered() { json "$report" "d['gathered']['$1']"; }

# With a second process that opens the files, of the job or from outside.
differ() { # DIR SEED
  compare strict random_strict "${STEPS:-60}" "$1" "$2"
  writes=$((writes + $(gathered writes)))
  breaks=$((breaks + $(gathered breaks)))
}
writes=0 breaks=0
for seed in ${SEEDS:-1 2 3 4}; do differ "$DIR/strict" "$seed"; done

# Every file system where a lease says the truth. Below an overlay others may open it unseen.
if [ -n "${HAS_OWN_MOUNTS:-}" ]; then
  mount_disks
  for type in ext4 xfs btrfs; do
    differ "$DIR/$type" 5
    differ "$DIR/$type" 6
  done
  mkdir "$DIR/tmpfs"
  mount -t tmpfs none "$DIR/tmpfs" || fail 'mount tmpfs'
  differ "$DIR/tmpfs" 8
  mount_overlay
  writing "$DIR/overlay" dd if=/dev/zero of="$DIR/overlay/one" bs=8 count=3000 status=none ||
    fail "dd: $?"
  [ "$(gathered writes)" = 0 ] || fail "of an overlay $(gathered writes) writes waited"
  umount "$DIR"/{overlay,tmpfs,btrfs,xfs,ext4} || fail 'something still has a file open'
fi
[ "$writes" -gt 20000 ] || fail "only $writes writes waited"
[ "$breaks" -gt 5 ] || fail "only $breaks leases were broken"

# A file system that becomes full says so at the very write.
if [ -n "${HAS_OWN_MOUNTS:-}" ]; then
  mkdir "$DIR/full"
  for type in tmpfs ext4; do
    if [ "$type" = tmpfs ]; then
      mount -t tmpfs -o size=90M none "$DIR/full" || fail 'mount a small tmpfs'
    else
      truncate -s 110M "$SCRATCH/small.img" && mkfs.ext4 -q "$SCRATCH/small.img" &&
        mount -o loop "$SCRATCH/small.img" "$DIR/full" || fail 'a small ext4'
    fi
    fill() { LC_ALL=C dd if=/dev/zero of="$DIR/full/f" bs=512 2>&1 | grep -v copied; }
    { fill && stat -c %s "$DIR/full/f"; } >"$SCRATCH/bare"
    grep -q 'No space left' "$SCRATCH/bare" || fail "bare: $(cat "$SCRATCH/bare")"
    rm "$DIR/full/f"
    export -f fill && export DIR
    { writing "$DIR/full" bash -c fill && stat -c %s "$DIR/full/f"; } >"$SCRATCH/out"
    same "a full $type"
    [ "$(gathered writes)" -gt 0 ] || fail "$type: no writes waited"
    umount "$DIR/full" || fail "a full $type is still in use"
  done
fi

# 131,072 writes of 8 bytes are a few writes of the kernel, also for a limit. The descriptor is
# closed for all when it is closed.
cat >"$SCRATCH/writes.py" <<'P'
import fcntl, os, sys
f = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
for i in range(131072): os.write(f, b"%07d\n" % i)
os.close(f)
f = os.open(sys.argv[1], os.O_RDONLY)  # waits for no lease, and nobody else has it open
fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print(os.stat(sys.argv[1]).st_size)
P
LIMIT="write=400/s@$DIR" writing "$DIR" python3 "$SCRATCH/writes.py" "$DIR/to" >"$SCRATCH/out" ||
  fail "writes.py: status $?"
[ "$(cat "$SCRATCH/out")" = 1048576 ] || fail "writes.py: $(cat "$SCRATCH/out")"
seq -f %07.0f 0 131071 | cmp - "$DIR/to" || fail 'it wrote something else'
between 1 "$(gathered writes)" 131072 'writes that waited'
metered=$((131072 - $(gathered writes) + $(gathered flushes)))
between "$metered" "$(count call write calls)" $((metered + 2)) 'writes that were metered'

# While the program waits for a limit, nothing is in the ring that would need another wait.
cat >"$SCRATCH/limited.py" <<'P'
import os, sys
f = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
for _ in range(20000): os.write(f, b"12345678")
P
for round in 1 2 3; do
  LIMIT="write=100/s@$DIR" writing "$DIR" python3 "$SCRATCH/limited.py" "$DIR/to" ||
    fail "limited.py: status $?"
  between 128 "$(count call write calls)" 400 'of 20000 writes at a limit, metered'
done

# A kibibyte at a time fills half of what may wait with few writes: that pays all the same.
cat >"$SCRATCH/kibibytes.py" <<'P'
import os, sys
f = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
piece = b"k" * 1024
for _ in range(20000): os.write(f, piece)
P
writing "$DIR" python3 "$SCRATCH/kibibytes.py" "$DIR/to" || fail "kibibytes.py: status $?"
[ "$(wc -c <"$DIR/to")" = 20480000 ] || fail "kibibytes.py: $(wc -c <"$DIR/to") bytes"
[ "$(gathered writes)" -gt 10000 ] || fail "of 20000 kibibytes $(gathered writes) waited"

# Nobody opens it: others see its size soon. A time that others set stays.
cat >"$SCRATCH/turns.py" <<'P'
import os, signal, sys, threading
f = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
n = 0
def much():
    global n
    for _ in range(3000): n += os.write(f, b"%07d\n" % (n / 8))
much()
for line in sys.stdin:
    much()
    if "open" in line: os.close(os.open(sys.argv[1], os.O_RDONLY))  # waits for nobody who is dead
    if "last" in line:
        closing = threading.Thread(target=os.close, args=(f,))
        closing.start()
        while closing.is_alive():
            if (size := os.stat(sys.argv[1]).st_size) != n: sys.exit(f"{size} bytes, wrote {n}")
    print(n, flush=True)
    if "die" in line: os.kill(os.getpid(), signal.SIGKILL)
P
mkfifo "$SCRATCH/turn"
take_turns() {
  writing "$DIR" python3 -u "$SCRATCH/turns.py" "$DIR/turned" <"$SCRATCH/turn" >"$SCRATCH/turns"
}
begin_turns() {
  exec 8<>"$SCRATCH/turn"
  : >"$SCRATCH/turns"
  take_turns 8>&- &
  job=$! turns=0
  until_true waits || fail 'nothing waits'
}
waits() {
  "$SLUICE" --run-dir "$SCRATCH/run" --json stat "$JOB" >"$SCRATCH/stat.json" 2>/dev/null &&
    [ "$(json "$SCRATCH/stat.json" "d['gathered']['leases']")" -gt 0 ]
}
has_turns() { [ "$(wc -l <"$SCRATCH/turns")" = "$turns" ]; }
turn() {
  turns=$((turns + 1))
  echo "${1:-}" >&8
  until_true has_turns || fail "turn $turns: it does not go on"
}
told() { tail -n 1 "$SCRATCH/turns"; }
is_whole() { [ "$(wc -c <"$DIR/turned")" = "$(told)" ]; }
end_turns() {
  exec 8>&-
  wait "$job" || fail "status $?"
  seq -f %07.0f 0 $(($(told) / 8 - 1)) | cmp - "$DIR/turned" || fail "$JOB: lines are lost"
}
JOB=seen
begin_turns
turn
has_size() { [ "$(stat -c %s "$DIR/turned")" = "$(told)" ]; }
until_true has_size || fail "stat never says $(told)"
touch -d 2001-02-03 "$DIR/turned"
end_turns
[ "$(stat -c %y "$DIR/turned" | cut -c -10)" = 2001-02-03 ] || fail 'a time that was set is gone'

# One keeper is killed, again and again: the other one follows, and a third begins. Who opens the
# file finds all.
of_job() { # NAME
  for p in $(pgrep -x "$1"); do
    grep -qsF "$SCRATCH/run/jobs/$JOB/rings" "/proc/$p/maps" && echo "$p"
  done
}
keepers() { of_job sluice-writes; } # those that are alive
two_serve() { [ "$(keepers | wc -l)" = 2 ]; }
works() { [ -n "$(writer)" ]; }
writer() { # the one that the kernel told of: its word on the board
  for p in $(keepers); do
    [ "$(od -An -tu4 -j64 -N4 "$SCRATCH/run/jobs/$JOB/rings" | tr -d ' ')" = "$p" ] && echo "$p"
  done
}
JOB=killed
begin_turns
for round in 1 2 3 4 5 6; do
  until_true two_serve || fail "round $round: $(keepers | wc -l) keepers"
  kill -KILL "$(keepers | sed -n $((round % 2 + 1))p)"
  turn
  is_whole || fail "round $round: $(wc -c <"$DIR/turned") bytes, told $(told)"
done
end_turns

# The same where its memory is taken away before it ends, as those do that kill for memory.
if [ -n "${HAS_OWN_MOUNTS:-}" ]; then
  cat >"$SCRATCH/reap.py" <<'P'
import ctypes, errno, os, signal, sys
victim, process_mrelease = int(sys.argv[1]), 448
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall(process_mrelease, -1, 0)  # all of it is loaded
if ctypes.get_errno() == errno.ENOSYS: sys.exit(77)
process = os.pidfd_open(victim)
for pid in 0, victim: os.sched_setaffinity(pid, [min(os.sched_getaffinity(0))])
# As long as we run, it does not.
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
signal.pidfd_send_signal(process, signal.SIGKILL)
failed = libc.syscall(process_mrelease, process, 0)
sys.exit(os.strerror(ctypes.get_errno()) if failed else 0)
P
  JOB=reaped
  begin_turns
  for round in 1 2 3; do
    until_true two_serve || fail "round $round: $(keepers | wc -l) keepers"
    until_true works || fail 'nobody works'
    python3 "$SCRATCH/reap.py" "$(writer)"
    case $? in
      0) ;;
      77) echo 'note: this kernel has no process_mrelease'; break ;;
      *) fail 'its memory is not taken away' ;;
    esac
    turn
    is_whole || fail "reaped $round: $(wc -c <"$DIR/turned") bytes, told $(told)"
  done
  end_turns
fi

# What is sent to all processes of a job ends none of them.
JOB=told
begin_turns
until_true two_serve || fail "$(keepers | wc -l) keepers"
before=$(keepers)
for signal in HUP INT TERM USR1 ALRM; do
  # shellcheck disable=SC2046
  kill -"$signal" $(keepers)
done
turn
is_whole || fail "after signals: $(wc -c <"$DIR/turned") bytes, told $(told)"
[ "$(keepers)" = "$before" ] || fail "a signal ended them: $before, then $(keepers)"
end_turns

# One is killed when the kernel has written, and it has not said so yet: nothing comes twice.
need strace
JOB=halfway
begin_turns
until_true two_serve || fail "$(keepers | wc -l) keepers"
until_true works || fail 'nobody works'
victim=$(writer)
trace_victim() { # HOW: it is traced once a call of it is told. To be attached to is not enough
  : >"$SCRATCH/calls"
  strace -qq -o "$SCRATCH/calls" "$@" -p "$victim" &
  tracer=$!
  until_true test -s "$SCRATCH/calls" || fail 'strace does not trace'
}
trace_victim -e inject=writev:delay_exit=20000000
turn
until_true has_size || fail 'it is not written'
kill -KILL "$victim"
turn
is_whole || fail "halfway: $(wc -c <"$DIR/turned") bytes, told $(told)"
end_turns
wait "$tracer" 2>/dev/null

# A signal that interrupts the one that works ends nobody.
JOB=interrupted
begin_turns
until_true two_serve || fail "$(keepers | wc -l) keepers"
until_true works || fail 'nobody works'
victim=$(writer) house=$(keepers)
trace_victim -e inject=poll:error=EINTR
was_interrupted() { [ "$(grep -c INJECTED "$SCRATCH/calls")" -ge 8 ]; }
until_true was_interrupted || fail "interrupted: $(keepers | wc -l) keepers"
kill "$tracer"
wait "$tracer" 2>/dev/null
turn
is_whole || fail "interrupted: $(wc -c <"$DIR/turned") bytes, told $(told)"
[ "$(keepers)" = "$house" ] || fail "interrupted: $house, then $(keepers)"
end_turns

# One meets an error, and is killed before it has said so, as it closes the file: the program is
# told.
cat >"$SCRATCH/failing.py" <<'P'
import os, sys
f = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
def much():
    for _ in range(3000): os.write(f, b"12345678")
much()
print("begun", flush=True)
try:
    sys.stdin.readline()
    much()
    sys.stdin.readline()
    os.close(f)
    print("all is written")
except OSError as e:
    print(e.strerror)
P
JOB=failing
exec 8<>"$SCRATCH/turn"
writing "$DIR" python3 -u "$SCRATCH/failing.py" "$DIR/failing" <"$SCRATCH/turn" \
  >"$SCRATCH/turns" 8>&- &
job=$!
until_true grep -q begun "$SCRATCH/turns" || fail 'it does not begin'
until_true waits || fail 'nothing waits'
until_true works || fail 'nobody works'
victim=$(writer)
trace_victim -P "$DIR/failing" -e inject=writev:error=EIO -e inject=close:signal=SIGKILL
echo >&8
is_gone() { [ ! -e "/proc/$victim" ] || grep -q '^State:[[:space:]]*Z' "/proc/$victim/status"; }
until_true is_gone || fail 'it is not killed'
grep -q 'writev.*EIO.*INJECTED' "$SCRATCH/calls" || fail "no error: $(cat "$SCRATCH/calls")"
echo >&8
exec 8>&-
wait "$job"
[ "$(told)" = 'Input/output error' ] || fail "failing: $(cat "$SCRATCH/turns")"
wait "$tracer" 2>/dev/null

# One that stops is ended by the other.
JOB=stopped
begin_turns
until_true two_serve || fail "$(keepers | wc -l) keepers"
stopped=$(keepers | head -n 1)
kill -STOP "$stopped"
turn
is_whole || fail "after a stop: $(wc -c <"$DIR/turned") bytes, told $(told)"
end_turns
kill -KILL "$stopped" 2>/dev/null

# One is dead and the other stopped: the program does the work, and nobody stays.
JOB=stays
begin_turns
until_true two_serve || fail "$(keepers | wc -l) keepers"
until_true works || fail 'nobody works'
victim=$(writer) house=$(keepers)
kill -STOP "$(keepers | grep -vx "$victim")"
turn
kill -KILL "$victim"
turn open
end_turns
none_stays() {
  for p in $house; do
    [ ! -e "/proc/$p" ] || return 1
  done
}
until_true none_stays || fail "of $house somebody stays"

# The program is dead, too, and bytes wait: the other one is left behind, and writes them.
JOB=left
begin_turns
until_true two_serve || fail "$(keepers | wc -l) keepers"
until_true works || fail 'nobody works'
victim=$(writer) other=$(keepers | grep -vx "$(writer)")
kill -STOP "$victim" "$other"
turn die
kill -KILL "$victim"
exec 8>&-
wait "$job"
is_whole && fail 'nothing waited'
kill -CONT "$other"
until_true is_whole || fail "left behind: $(wc -c <"$DIR/turned") bytes, told $(told)"
house=$other
until_true none_stays || fail 'it stays when all is written'

# A limit that somebody else sets meanwhile.
need prlimit
cat >"$SCRATCH/limited.py" <<'P'
import errno, os, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
f = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
for _ in range(3000): os.write(f, b"12345678")
print(os.getpid(), flush=True)
sys.stdin.readline()
n = 0
try:
    while n < 1 << 23: n += os.write(f, b"12345678")
    sys.exit("nobody told it")
except OSError as e:
    assert e.errno == errno.EFBIG, e
P
exec 8<>"$SCRATCH/turn"
JOB=limited
writing "$DIR" python3 "$SCRATCH/limited.py" "$DIR/limited" <"$SCRATCH/turn" >"$SCRATCH/pid" 8>&- &
job=$!
until_true test -s "$SCRATCH/pid" || fail 'it does not begin'
until_true waits || fail 'nothing waits'
prlimit --pid "$(cat "$SCRATCH/pid")" --fsize=1000000:unlimited || fail 'prlimit'
echo >&8
wait "$job" || fail "a limit set by others: status $?"
exec 8>&-
unset JOB

# It becomes full at once, when bytes wait: room was set aside for these.
if [ -n "${HAS_OWN_MOUNTS:-}" ]; then
  JOB=sudden
  whole=$DIR DIR=$DIR/full
  mount -t tmpfs -o size=90M none "$DIR" || fail 'mount a small tmpfs'
  begin_turns
  until_true two_serve || fail "$(keepers | wc -l) keepers"
  # shellcheck disable=SC2046
  kill -STOP $(keepers)
  turn
  dd if=/dev/zero of="$DIR/other" bs=4k 2>/dev/null
  # shellcheck disable=SC2046
  kill -CONT $(keepers)
  until_true is_whole || fail "full at once: $(wc -c <"$DIR/turned") bytes, told $(told)"
  rm "$DIR/other"
  end_turns
  umount "$DIR" || fail 'it is still in use'
  DIR=$whole
fi

# A file system that takes nothing holds up its own files alone, when somebody has waited for it.
if [ -n "${HAS_OWN_MOUNTS:-}" ]; then
  need fsfreeze
  cat >"$SCRATCH/frozen.py" <<'P'
import os, sys, threading, time
written = [0] * 8
def name(n): return f"{sys.argv[1]}.{n}"
def write(n):
    f = os.open(name(n), os.O_WRONLY | os.O_CREAT)
    while True: written[n] += os.write(f, b"12345678")
for n in range(8): threading.Thread(target=write, args=(n,), daemon=True).start()
def ask():  # for its own file it waits
    told, size = written[0], os.stat(name(0)).st_size
    if size < told: os._exit(3)
asking = threading.Thread(target=ask)
for line in sys.stdin:
    begun = time.monotonic()
    os.close(os.open(sys.argv[2], os.O_RDONLY))
    os.stat(sys.argv[2])
    assert time.monotonic() - begun < 30  # for each of them five seconds would be 40
    if not asking.ident: asking.start()
    print(0, flush=True)
asking.join()
P
  rmdir "$DIR/ext4"
  mount_disks ext4
  exec 8<>"$SCRATCH/turn"
  JOB=frozen
  : >"$SCRATCH/turns"
  writing "$DIR/ext4" python3 -u "$SCRATCH/frozen.py" "$DIR/ext4/log" "$SCRATCH/frozen.py" \
    <"$SCRATCH/turn" >"$SCRATCH/turns" 8>&- &
  job=$! turns=0
  until_true waits || fail 'nothing waits'
  fsfreeze -f "$DIR/ext4" || fail fsfreeze
  trap 'fsfreeze -u "$DIR/ext4" 2>/dev/null' EXIT
  for round in 1 2 3; do turn; done
  fsfreeze -u "$DIR/ext4"
  exec 8>&-
  wait "$job" || fail "frozen: status $?"
  umount "$DIR/ext4" || fail 'the ext4 is still in use'
  unset JOB
fi

# One thread closes it, and waits for the keeper. Another one that asks for its size waits as well.
JOB=closing
begin_turns
until_true two_serve || fail "$(keepers | wc -l) keepers"
# shellcheck disable=SC2046
kill -STOP $(keepers)
turn
program=$(of_job python3)
echo last >&8
both_wait() { # in futex, of x86-64 or aarch64
  [ "$(cat /proc/"$program"/task/*/syscall 2>/dev/null | grep -Ec '^(202|98) ')" = 2 ]
}
until_true both_wait || fail 'nobody waits for the keeper'
# shellcheck disable=SC2046
kill -CONT $(keepers)
end_turns
unset JOB

# Both are dead: the program does it itself.
JOB=alone
begin_turns
until_true two_serve || fail "$(keepers | wc -l) keepers"
# shellcheck disable=SC2046
kill -STOP $(keepers)
turn
# shellcheck disable=SC2046
kill -KILL $(keepers)
turn open
end_turns
unset JOB

# Files are as old as the calls that made them, in their order; one whose lease tells by another
# signal is left alone; and so is that of a second file system.
cat >"$SCRATCH/order.py" <<'P'
import os, sys
a = os.open(sys.argv[1] + "/a", os.O_WRONLY | os.O_CREAT)
for _ in range(2000): os.write(a, b"12345678")
wrong = 0
for _ in range(60):
    for _ in range(40): os.write(a, b"12345678")
    b = os.open(sys.argv[1] + "/b", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.write(b, b"made of a")
    os.close(b)
    wrong += os.stat(sys.argv[1] + "/b").st_mtime_ns < os.stat(sys.argv[1] + "/a").st_mtime_ns
os.close(a)
print(wrong)
P
writing "$DIR" python3 "$SCRATCH/order.py" "$DIR" >"$SCRATCH/out" || fail "order.py: $?"
[ "$(cat "$SCRATCH/out")" = 0 ] || fail "$(cat "$SCRATCH/out") of 60 are older than their source"
cat >"$SCRATCH/all.py" <<'P'
import fcntl, os, select, sys
signal = int(sys.argv[1])
files = [os.open(d + "/all", os.O_WRONLY | os.O_CREAT) for d in sys.argv[2:]]
for f in files:
    if signal: fcntl.fcntl(f, fcntl.F_SETSIG, signal)
while not select.select([0], [], [], 0)[0]:
    for f in files:
        for _ in range(300): os.write(f, b"12345678")
assert all(fcntl.fcntl(f, fcntl.F_GETSIG) == signal for f in files)
P
until_refused() { # SIGNAL DIR…: until the keeper has said no
  exec 8<>"$SCRATCH/turn"
  JOB=refused writing "$DIR" python3 "$SCRATCH/all.py" "$@" <"$SCRATCH/turn" 8>&- &
  job=$!
  until_true is_refused || fail "$* is not refused"
  echo >&8
  wait "$job" || fail "all.py $*: status $?"
  exec 8>&-
}
is_refused() {
  "$SLUICE" --run-dir "$SCRATCH/run" --json stat refused >"$SCRATCH/stat.json" 2>/dev/null &&
    [ "$(json "$SCRATCH/stat.json" "d['gathered']['refused_lease']")" -gt 0 ]
}
until_refused 10 "$DIR"
if [ -n "${HAS_OWN_MOUNTS:-}" ]; then
  mkdir "$DIR"/{first,second}
  mount -t tmpfs none "$DIR/first" && mount -t tmpfs none "$DIR/second" || fail 'mount two'
  until_refused 0 "$DIR"/{first,second}
  umount "$DIR"/{first,second} || fail 'they are in use'
fi

# A limit that the program has lifted is none for who writes for it.
(ulimit -Sf 12000 && writing "$DIR" python3 -c 'import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
f = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
for _ in range(20000): os.write(f, b"x" * 1000)
os.close(f)' "$DIR/lifted") || fail "a lifted limit: status $?"
[ "$(stat -c %s "$DIR/lifted")" = 20000000 ] || fail "lifted: $(stat -c %s "$DIR/lifted") bytes"

# A number that was closed, and came back with a message of another process.
cat >"$SCRATCH/received.py" <<'P'
import ctypes, os, socket, sys
ours, theirs = socket.socketpair()
turn, foreign = os.pipe(), os.pipe()
if os.fork() == 0:
    f = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    socket.send_fds(theirs, [b"x"], [f])
    os.close(turn[1])
    while os.read(turn[0], 1):
        os.write(f, b"foreign\n")
        os.write(foreign[1], b"x")
    os._exit(0)
if sys.argv[2] == "directory":  # its copy, which closedir() closes, has the number after it
    f = os.open(".", os.O_RDONLY)
    os.listdir(f)
    os.close(f)
    os.open(".", os.O_RDONLY)
else:
    f = os.open(sys.argv[0], os.O_RDONLY)
    assert ctypes.CDLL(None).syscall(436, f, f, 0) == 0  # close_range
f = socket.recv_fds(ours, 1, 1)[1][0]
for turns in range(20):
    for i in range(300): os.write(f, b"%07d\n" % i)
    os.write(turn[1], b"x")
    os.read(foreign[0], 1)
os.close(turn[1])
os.wait()
lines = open(sys.argv[1]).read().split()
assert lines == (["%07d" % i for i in range(300)] + ["foreign"]) * 20, "other bytes"
P
for how in directory range; do
  python3 "$SCRATCH/received.py" "$DIR/received" "$how" || fail "received, $how, bare: $?"
  writing "$DIR" python3 "$SCRATCH/received.py" "$DIR/received" "$how" || fail "received, $how: $?"
done

# Of buffers in memory that libc maps and unmaps the kernel is asked at each write. That does not
# pay, and ends soon.
mapped='import os, sys
f = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
for i in range(30000): os.write(f, b"%d\n" % i)'
MALLOC=pymalloc writing "$DIR" python3 -c "$mapped" "$DIR/mapped" || fail "mapped: $?"
seq 0 29999 | cmp - "$DIR/mapped" || fail 'mapped: other bytes'
[ "$(gathered writes)" -lt 6000 ] || fail "from mapped memory $(gathered writes) writes waited"
[ "$(gathered ended_memory)" -gt 0 ] || fail 'from mapped memory: it does not say that it ended'
writing "$DIR" python3 -c "$mapped" "$DIR/mapped" || fail "from the heap: $?"
[ "$(gathered writes)" -gt 20000 ] || fail "from the heap $(gathered writes) writes waited"

# A program that writes now and then saves nothing.
slow='import os, sys, time
f = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
for i in range(1500):
    os.write(f, b"%d\n" % i)
    time.sleep(0.005)'
writing "$DIR" python3 -c "$slow" "$DIR/slow" || fail "slow: $?"
[ "$(gathered writes)" -lt 500 ] || fail "of a slow program $(gathered writes) writes waited"
[ "$(gathered ended_slow)" -gt 0 ] || fail 'of a slow program: it does not say that it ended'
[ "$(gathered ended_asked)" = 0 ] || fail "$(gathered ended_asked) times other calls ended it"

# Nor does one that moves to and fro: some of these calls meet a lease.
writing "$DIR" python3 -c 'import os, sys
f = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
for _ in range(1000):
    for i in range(200): os.write(f, b"%d\n" % i)
    os.lseek(f, 0, os.SEEK_SET)' "$DIR/moves" || fail "moves: $?"
[ "$(gathered ended_asked)" -gt 0 ] || fail 'of one that moves: it does not say that it ended'

# A quota of btrfs that is used up lets nobody shorten a file, and what was set aside is one.
if [ -n "${HAS_OWN_MOUNTS:-}" ]; then
  mkdir "$DIR/quota"
  truncate -s 320M "$SCRATCH/quota.img"
  mkfs.btrfs -q "$SCRATCH/quota.img" >/dev/null &&
    mount -o loop "$SCRATCH/quota.img" "$DIR/quota" && btrfs -q quota enable "$DIR/quota" &&
    btrfs -q subvolume create "$DIR/quota/sub" &&
    btrfs -q qgroup limit 20M "$DIR/quota/sub" || fail 'btrfs'
  writing "$DIR/quota/sub" python3 -c 'import errno, os, sys
f = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
n, part = 0, b"x" * 512
try:
    while n < 1 << 26: n += os.write(f, part)
    sys.exit("there is no quota")
except OSError as e:
    assert e.errno == errno.EDQUOT, e
os.close(f)
assert os.stat(sys.argv[1]).st_size == n, (os.stat(sys.argv[1]).st_size, n)' "$DIR/quota/sub/f" ||
    fail "a quota: $?"
  [ "$(gathered writes)" -gt 1000 ] || fail "below a quota $(gathered writes) writes waited"
  umount "$DIR/quota" || fail 'it is still in use'
fi

# A ring writes when nobody looks.
writing "$DIR" python3 -c 'import ctypes, os, sys
ctypes.CDLL(None).syscall(425, 0, None)  # io_uring_setup
f = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
for _ in range(5000): os.write(f, b"12345678")' "$DIR/ringed" || fail "with a ring: $?"
[ "$(gathered writes)" = 0 ] || fail "with a ring $(gathered writes) writes waited"

# What a write takes away depends on who makes it.
if [ "$(id -u)" = 0 ]; then
  privileged='import os, sys
f = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
os.fchmod(f, 0o4755)
for _ in range(3000): os.write(f, b"12345678")
os.seteuid(65011)
for _ in range(5): os.write(f, b"12345678")
os.close(f)
os.seteuid(0)
print(oct(os.stat(sys.argv[1]).st_mode))'
  python3 -c "$privileged" "$DIR/privileged" >"$SCRATCH/bare" || fail 'privileged, bare'
  writing "$DIR" python3 -c "$privileged" "$DIR/privileged" >"$SCRATCH/out" || fail 'privileged'
  same privileged
  late='import os, sys
f = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
for _ in range(5000): os.write(f, b"12345678")
os.chmod(sys.argv[1], 0o4755)
for _ in range(5000): os.write(f, b"12345678")
os.seteuid(65011)
for _ in range(20): os.write(f, b"12345678")
os.close(f)
os.seteuid(0)
print(oct(os.stat(sys.argv[1]).st_mode), os.stat(sys.argv[1]).st_size)'
  python3 -c "$late" "$DIR/late" >"$SCRATCH/bare" || fail 'a late bit, bare'
  for round in 1 2 3; do
    writing "$DIR" python3 -c "$late" "$DIR/late" >"$SCRATCH/out" || fail 'a late bit'
    same 'a late bit'
  done
fi

# Nobody works, and the program has other rights. While it could, it wrote all of it; where nobody
# saw that it changed them, it cannot end who is stopped, and is told that its bytes are not there.
cat >"$SCRATCH/dropping.py" <<'P'
import ctypes, os, sys
f = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
for _ in range(3000): os.write(f, b"12345678")
print("begun", flush=True)
sys.stdin.readline()
for _ in range(30): os.write(f, b"12345678")
if sys.argv[2] == "seen": os.setresuid(65011, 65011, 65011)
else: ctypes.CDLL("libc.so.6").setresuid(65011, 65011, 65011)
try:
    os.fsync(f)
    print(os.fstat(f).st_size, flush=True)
except OSError as e:
    print(e.strerror, flush=True)
P
drops() { # HOW TOLD
  JOB=drops-$1
  : >"$SCRATCH/turns"
  exec 8<>"$SCRATCH/turn"
  writing "$DIR" python3 -u "$SCRATCH/dropping.py" "$DIR/dropped" "$1" <"$SCRATCH/turn" \
    >"$SCRATCH/turns" 8>&- &
  job=$!
  until_true grep -q begun "$SCRATCH/turns" || fail 'it does not begin'
  until_true waits || fail 'nothing waits'
  until_true two_serve || fail "$(keepers | wc -l) keepers"
  house=$(keepers)
  # shellcheck disable=SC2086
  kill -STOP $house
  echo >&8
  until_true grep -qv begun "$SCRATCH/turns" || fail "rights that are gone, $1: it hangs"
  [ "$(told)" = "$2" ] || fail "rights that are gone, $1: $(told)"
  # shellcheck disable=SC2086
  kill -CONT $house 2>/dev/null
  exec 8>&-
  wait "$job"
  [ "$(wc -c <"$DIR/dropped")" = 24240 ] || fail "dropped, $1: $(wc -c <"$DIR/dropped") bytes"
  unset JOB
}
if [ "$(id -u)" = 0 ]; then
  drops seen 24240
  drops unseen 'Input/output error'
fi

# The locks of one that was killed end with it.
mkdir "$DIR/shared"
writing "$DIR" "$PROGRAMS/small_shared" "$DIR/shared" locks >"$SCRATCH/out" || fail "locks: $?"
grep -q 'taken: 0' "$SCRATCH/out" || fail "locks of the dead: $(cat "$SCRATCH/out")"
grep -q 'leased: [1-9]' "$SCRATCH/out" || fail "nothing was leased: $(cat "$SCRATCH/out")"

# What libc writes out by itself comes after what was written before.
for what in later buffers; do
  rm -f "$DIR/shared"/*
  "$PROGRAMS/small_shared" "$DIR/shared" "$what" >"$SCRATCH/bare" || fail "bare, $what: $?"
  rm -f "$DIR/shared"/*
  writing "$DIR" "$PROGRAMS/small_shared" "$DIR/shared" "$what" >"$SCRATCH/out" ||
    fail "$what: $?"
  same "$what"
done

# Files of others cannot be leased; programs that know nothing of it.
work() {
  dd if="$DIR/to" of="$DIR/copy" bs=7 status=none && cksum <"$DIR/copy" || exit 1
  python3 -c 'import logging, sys
f = open(sys.argv[1], "wb", buffering=0)
for i in range(20000): f.write(b"%d\n" % i)
logging.basicConfig(filename=sys.argv[2], format="%(message)s")
for i in range(5000): logging.warning("line %d", i)' "$DIR/lines" "$DIR/log" || exit 1
  cksum "$DIR/lines" "$DIR/log" | cut -d' ' -f1-2
  awk 'BEGIN { for (i = 0; i < 5000; i++) { print i; fflush() } }' >"$DIR/awk" && cksum <"$DIR/awk"
  sqlite3 "$DIR/db" 'create table t(x); insert into t values (1), (2); select sum(x) from t;
    drop table t;' || exit 1
  tar -cf "$DIR/tar" -C test/programs . && tar -tf "$DIR/tar" | cksum
  for i in $(seq 300); do echo "$i"; done >"$DIR/echoed" && cksum <"$DIR/echoed"
}
need sqlite3
export -f work
export DIR
bash -c work >"$SCRATCH/bare" 2>/dev/null || fail 'bare'
rm -f "$DIR"/{copy,lines,log,awk,db,tar,echoed}
writing "$DIR" bash -c work >"$SCRATCH/out" 2>"$SCRATCH/err" ||
  fail "programs: status $?: $(cat "$SCRATCH/err")"
same programs
[ "$(gathered writes)" -gt 1000 ] || fail "of programs $(gathered writes) writes waited"
exit 0
