#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Small writes that are gathered (a target's "small": "close-to-open"): the program itself sees no
# difference, whatever it does in between; others see them at close, fsync and lock; what is lost
# and what is told when they cannot be written out is what the manual says.
# timeout: 480
. test/lib/lib.sh
own_mounts
. test/libinterpose/common.bash
need python3 dd sqlite3 git tar

cat >"$SCRATCH/policy.json" <<P
{"targets": {"scratch": {"path": "$DIR", "small": "close-to-open"}}}
P
gathering() {
  rm -f "$report"
  PYTHONMALLOC=${MALLOC:-malloc} timeout -s KILL "${TIME:-60}" \
    "$SLUICE" --run-dir "$SCRATCH/run" --no-daemon run -q --policy "$SCRATCH/policy.json" \
    --report "$report" --no-summary ${LIMIT:+--limit "$LIMIT"} -- "$@"
}
gathered() { json "$report" "d['gathered']['$1']"; }

# A program with liburing reads and writes without libc, and is left alone.
ring=$(ldconfig -p | sed -n 's/.*liburing\.so\.2 .*=> //p' | head -n 1)
if [ -n "$ring" ]; then
  LD_PRELOAD=$ring gathering python3 -c 'import os, sys
f = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
for i in range(1000): os.write(f, b"x" * 100)' "$DIR/ring" || fail "with liburing: $?"
  [ "$(gathered writes)" = 0 ] || fail "with liburing $(gathered writes) writes are gathered"
fi

# A FUSE shows itself to its own user alone. Who was root, and is not any more, writes all the same.
if [ -n "${HAS_OWN_MOUNTS:-}" ]; then
  need bindfs
  mkdir "$SCRATCH/fuse" "$DIR/fuse"
  bindfs --no-allow-other -f "$SCRATCH/fuse" "$DIR/fuse" 2>"$SCRATCH/bindfs.log" & server=$!
  trap 'umount -l "$DIR/fuse" 2>/dev/null; kill $server 2>/dev/null' EXIT
  is_mounted() { grep -q " $DIR/fuse fuse" /proc/self/mounts; }
  until_true is_mounted || skip "no FUSE here: $(cat "$SCRATCH/bindfs.log")"
  gathering python3 -c 'import os, sys
f = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
for i in range(5000): os.write(f, b"12345678")
g = os.open(sys.argv[1], os.O_RDWR)  # its own reads and writes come after what waits
os.pread(g, 1, 0)
os.setresuid(65534, 65534, 65534)
for i in range(100): os.write(f, b"12345678")
assert len(os.pread(g, 100, 40700)) == 100
os.write(f, b"87654321")
os.pwrite(g, b"newnewne", 40800)
os.fsync(f)
os.close(f)' "$DIR/fuse/f" || fail "without rights: $?"
  [ "$(gathered writes)" -gt 1000 ] || fail "on FUSE $(gathered writes) writes are gathered"
  [ "$(wc -c <"$SCRATCH/fuse/f")" = 40808 ] ||
    fail "without rights: $(wc -c <"$SCRATCH/fuse/f") bytes of 40808"
  [ "$(tail -c 8 "$SCRATCH/fuse/f")" = newnewne ] || fail 'an older write came last'
  umount "$DIR/fuse" && wait "$server"
fi

# What root gathered is written with the rights of root, and no write of others waits that would
# take a privilege of the file away.
if [ "$(id -u)" = 0 ]; then
  cat >"$SCRATCH/dropping.py" <<'P'
import os, sys
f = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
for _ in range(4000): os.write(f, b"0123456789abcdef")
if "mode" in sys.argv: os.chmod(sys.argv[1], 0o4755)
for _ in range(50): os.write(f, b"0123456789abcdef")
os.setresuid(65011, 65011, 0)
if "more" in sys.argv:
    for _ in range(100): os.write(f, b"0123456789abcdef")
os.close(f)
os.setresuid(0, 0, 0)
print(oct(os.stat(sys.argv[1]).st_mode), os.stat(sys.argv[1]).st_size)
P
  for how in mode 'mode more' more; do
    # shellcheck disable=SC2086
    python3 "$SCRATCH/dropping.py" "$DIR/dropped" $how >"$SCRATCH/bare" || fail "bare, $how"
    rm "$DIR/dropped"
    # shellcheck disable=SC2086
    gathering python3 "$SCRATCH/dropping.py" "$DIR/dropped" $how >"$SCRATCH/out" ||
      fail "rights are dropped, $how: $?"
    cmp "$SCRATCH/bare" "$SCRATCH/out" || fail "$how: $(cat "$SCRATCH/out")"
    [ "$(gathered writes)" -gt 3000 ] || fail "$how: $(gathered writes) writes are gathered"
    rm "$DIR/dropped"
  done
fi
if [ -n "${HAS_OWN_MOUNTS:-}" ]; then
  need mkfs.ext4 setpriv
  truncate -s 16M "$SCRATCH/kept.img" && mkfs.ext4 -q -m 20 "$SCRATCH/kept.img" &&
    mkdir "$DIR/kept" && mount -o loop "$SCRATCH/kept.img" "$DIR/kept" || fail 'a small ext4'
  # By a user, whom the room that is kept for root is not for.
  setpriv --reuid 65011 --clear-groups dd bs=4k 2>/dev/null </dev/zero 1<>"$DIR/kept/filled"
  gathering python3 "$SCRATCH/dropping.py" "$DIR/kept/f" >"$SCRATCH/out" ||
    fail "room that is kept for root: $? $(cat "$SCRATCH/out")"
  [ "$(wc -c <"$DIR/kept/f")" = 64800 ] || fail "kept: $(wc -c <"$DIR/kept/f") bytes of 64800"
  rm "$DIR/kept/"*
  # What fits is written, though one large write of all would be refused.
  cat >"$SCRATCH/fills.py" <<'P'
import os, sys
f, told = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT), 0
try:
    while True: told += os.write(f, b"12345678" * 8)
except OSError: pass
print(os.fstat(f).st_size)
P
  python3 "$SCRATCH/fills.py" "$DIR/kept/bare" >"$SCRATCH/bare"
  rm "$DIR/kept/bare"
  gathering python3 "$SCRATCH/fills.py" "$DIR/kept/f" >"$SCRATCH/out" || fail "fills: status $?"
  between $(($(cat "$SCRATCH/bare") - 65536)) "$(cat "$SCRATCH/out")" "$(cat "$SCRATCH/bare")" \
    'bytes of a file that fills the disk'
  umount "$DIR/kept" || fail 'it is still in use'
fi

# What a program does between its writes is what it does bare.
for seed in ${SEEDS:-1 2 3 4 5 6}; do
  "$PROGRAMS/random_small" "$DIR" "$seed" "${STEPS:-300}" >"$SCRATCH/bare" 2>"$SCRATCH/err" ||
    fail "bare, seed $seed: status $?: $(tail -n 3 "$SCRATCH/err")"
  gathering "$PROGRAMS/random_small" "$DIR" "$seed" "${STEPS:-300}" >"$SCRATCH/gathered" \
    2>"$SCRATCH/err" || fail "seed $seed: status $?: $(tail -n 3 "$SCRATCH/err")"
  cmp "$SCRATCH/bare" "$SCRATCH/gathered" ||
    fail "seed $seed: $(diff "$SCRATCH/bare" "$SCRATCH/gathered" | head -n 6)"
  [ "$(gathered writes)" -gt 0 ] || fail "seed $seed: nothing was gathered"
done
gathering "$PROGRAMS/random_file" "$DIR" 1 500 >"$SCRATCH/gathered" || fail "random_file: $?"

# Threads, handlers, and jumps out of both.
gathering "$PROGRAMS/small_records" "$DIR/records" "${SECONDS_OF_RECORDS:-2}" || fail "records: $?"
[ "$(gathered writes)" -gt 0 ] || fail 'no record was gathered'

# What libc, a child or another thread does with the same file.
shared() {
  for what in $2; do
    rm -rf "$1/shared" && mkdir "$1/shared"
    "$PROGRAMS/small_shared" "$1/shared" "$what" >"$SCRATCH/bare" 2>"$SCRATCH/err" ||
      fail "bare, $what: status $?: $(tail -n 3 "$SCRATCH/err")"
    rm -rf "$1/shared" && mkdir "$1/shared"
    gathering "$PROGRAMS/small_shared" "$1/shared" "$what" >"$SCRATCH/gathered" \
      2>"$SCRATCH/err" || fail "$what: status $?: $(tail -n 3 "$SCRATCH/err")"
    cmp "$SCRATCH/bare" "$SCRATCH/gathered" ||
      fail "$what: $(diff "$SCRATCH/bare" "$SCRATCH/gathered" | head -n 6)"
  done
}
shared "$DIR" 'messages text later buffers streams reopened mapped watched cancelled ends starts
  turns looks wide libc raw late notified rights standard'
if [ -n "${HAS_OWN_MOUNTS:-}" ]; then
  need mkfs.xfs
  truncate -s 320M "$SCRATCH/xfs.img"
  mkfs.xfs -q "$SCRATCH/xfs.img" && mkdir "$DIR/xfs" || fail 'mkfs.xfs'
  mount -o loop "$SCRATCH/xfs.img" "$DIR/xfs" || fail 'mount'
  shared "$DIR/xfs" cloned
  grep -q 'cloned: a000' "$SCRATCH/bare" || fail "nothing was cloned: $(cat "$SCRATCH/bare")"
  umount "$DIR/xfs"
fi

# Half a million writes of 7 bytes are a handful for the kernel, and for a limit. Each of 1 MiB ends
# at a multiple of that, within a write of dd.
head -c 3500000 /dev/urandom >"$SCRATCH/from"
# One that takes longer than a second writes once more in each.
SECONDS=0
LIMIT="write=20/s@$DIR" gathering dd if="$SCRATCH/from" of="$DIR/to" bs=7 status=none ||
  fail "dd: status $?"
more=$((SECONDS + 1))
cmp "$SCRATCH/from" "$DIR/to" || fail 'dd: other bytes'
between 499900 "$(gathered writes)" 500000 'gathered writes of dd'
between 4 "$(gathered flushes)" $((5 + more)) 'flushes of dd'
between 36 "$(count call write calls)" $((39 + more)) 'calls of dd that were metered'
between 3500000 "$(count call write bytes)" 3500000 'bytes of dd that were metered'

# Others see nothing until fsync; who is killed loses what was not written out yet.
cat >"$SCRATCH/tell.py" <<'P'
import os, sys
f = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
for step in range(3):
    for _ in range(1000): assert os.write(f, b"0123456789") == 10
    if step == 1: os.fsync(f)
    os.write(1, b"%d %d\n" % (step, os.getpid()))
    os.read(0, 1)
P
mkfifo "$SCRATCH/go"
exec 8<>"$SCRATCH/go"
gathering python3 "$SCRATCH/tell.py" "$DIR/told" <"$SCRATCH/go" >"$SCRATCH/steps" 8>&- &
job=$!
has_reached() { grep -q "^$1 " "$SCRATCH/steps"; }
until_true has_reached 0 || fail 'it does not write'
between 0 "$(stat -c %s "$DIR/told")" 10000 'bytes that others see at once'
echo >&8
until_true has_reached 1 || fail 'it does not sync'
between 20000 "$(stat -c %s "$DIR/told")" 20000 'bytes that others see after fsync'
echo >&8
until_true has_reached 2 || fail 'it does not go on'
kill -KILL "$(awk '{ print $2; exit }' "$SCRATCH/steps")"
wait "$job" 2>/dev/null
between 20000 "$(stat -c %s "$DIR/told")" 30000 'bytes of one who was killed'

# What waited for a second goes with the next write: somebody follows what a slow program writes.
cat >"$SCRATCH/follow.py" <<'P'
import os, sys, time
f = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
for i in range(100_000):
    os.write(f, b"%07d\n" % i)
    time.sleep(0.001)
    if i > 40 and not i % 100 and os.path.exists(sys.argv[2]): sys.exit(0)
sys.exit("nobody saw any of it")
P
TIME=200 gathering python3 "$SCRATCH/follow.py" "$DIR/followed" "$SCRATCH/seen" & job=$!
sees_more() { [ "$(stat -c %s "$DIR/followed" 2>/dev/null || echo 0)" -ge 4000 ]; }
until_true sees_more || fail 'nobody sees what a slow program writes'
touch "$SCRATCH/seen"
wait "$job" || fail "the slow program: status $?"

# At exit nothing is lost, however it ends.
for end in 'sys.exit(3)' 'os._exit(3)' 'os.execv("/bin/sh", ["sh", "-c", "exit 3"])'; do
  gathering python3 -c "import os, sys
f = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
for _ in range(100): os.write(f, b'x' * 7)
$end" "$DIR/ends"
  [ $? = 3 ] || fail "$end: status $?"
  between 700 "$(stat -c %s "$DIR/ends")" 700 "bytes after $end"
done

# A full file system is told of once, by write, fsync or close; what is there is a beginning.
if [ -n "${HAS_OWN_MOUNTS:-}" ]; then
  mkdir "$DIR/full"
  mount -t tmpfs -o size=1m none "$DIR/full" || fail 'mount'
  gathering python3 - "$DIR/full/f" <<'P' || fail "a full file system: status $?"
import errno, os, sys
f = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
told = written = 0
for i in range(300000):
    try:
        written += os.write(f, b"%08d" % i)
    except OSError as e:
        assert e.errno == errno.ENOSPC, e
        told += 1
        break
try:
    os.close(f)
except OSError as e:
    assert e.errno == errno.ENOSPC, e
    told += 1
assert told == 1, told
data = open(sys.argv[1], "rb").read()
assert len(data) == 1 << 20 and all(data[8 * i:8 * i + 8] == b"%08d" % i for i in range(1 << 17))
P
  [ "$(gathered failures)" = 1 ] || fail "failures: $(gathered failures)"
  # One page is left, and fsync hears that the rest did not fit.
  gathering python3 - "$DIR/full/f" "$DIR/full/g" <<'P' || fail "a full page: status $?"
import errno, os, sys
os.truncate(sys.argv[1], (1 << 20) - 4096)
f = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT)
told = 0
try:  # after a second a write hears it
    for i in range(1000): assert os.write(f, b"%08d" % i) == 8
except OSError as e:
    assert e.errno == errno.ENOSPC, e
    told += 1
try:
    os.fsync(f)
except OSError as e:
    assert e.errno == errno.ENOSPC, e
    told += 1
assert told == 1, told
os.fsync(f)
os.close(f)
assert open(sys.argv[2], "rb").read() == b"".join(b"%08d" % i for i in range(512))
P
  umount "$DIR/full"
fi

# Closes of what was held are counted as others are.
cat >"$SCRATCH/closes.py" <<'P'
import os, sys
for i in range(10):
    f = os.open(sys.argv[1] + str(i), os.O_WRONLY | os.O_CREAT)
    for _ in range(500): os.write(f, b"12345678")
    os.close(f)
P
gathering python3 "$SCRATCH/closes.py" "$DIR/closed" || fail "closes.py: status $?"
[ "$(gathered writes)" -gt 4000 ] || fail "closes.py: $(gathered writes) were gathered"
counted 10 10 call close calls

# Of memory that libc maps and unmaps the kernel is asked at each write. That costs as much as the
# write of a disk's file, and little beside the request to a server.
mapped='import os, sys
f = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
for i in range(30000): os.write(f, b"%07d\n" % i)'
served() { # DIR: what was gathered
  MALLOC=pymalloc gathering python3 -c "$mapped" "$1/mapped" || fail "mapped: status $?"
  seq -f %07.0f 0 29999 | cmp - "$1/mapped" || fail "mapped, in $1: other bytes"
  gathered writes
}
if [ -n "${HAS_OWN_MOUNTS:-}" ]; then
  need mkfs.ext4
  mkdir "$DIR/disk"
  truncate -s 64M "$SCRATCH/disk.img" && mkfs.ext4 -q "$SCRATCH/disk.img" &&
    mount -o loop "$SCRATCH/disk.img" "$DIR/disk" || fail 'an ext4'
  between 1 "$(served "$DIR/disk")" 10000 'gathered from mapped memory, of a disk'
  umount "$DIR/disk" || fail 'the ext4 is still in use'
fi

# A file system of a server, for which it is meant.
if [ -n "${HAS_OWN_MOUNTS:-}" ] && [ -e /dev/fuse ]; then
  need bindfs
  mkdir "$DIR/served" "$SCRATCH/behind"
  bindfs "$SCRATCH/behind" "$DIR/served" || fail 'bindfs'
  "$PROGRAMS/random_small" "$DIR/served" 11 200 >"$SCRATCH/bare" 2>"$SCRATCH/err" ||
    fail "FUSE, bare: status $?: $(tail -n 3 "$SCRATCH/err")"
  gathering "$PROGRAMS/random_small" "$DIR/served" 11 200 >"$SCRATCH/gathered" 2>"$SCRATCH/err" ||
    fail "FUSE: status $?: $(tail -n 3 "$SCRATCH/err")"
  cmp "$SCRATCH/bare" "$SCRATCH/gathered" ||
    fail "FUSE: $(diff "$SCRATCH/bare" "$SCRATCH/gathered" | head -n 6)"
  [ "$(gathered writes)" -gt 0 ] || fail 'FUSE: nothing was gathered'
  [ "$(served "$DIR/served")" -gt 25000 ] || fail "FUSE: of mapped memory $(gathered writes)"
  umount "$DIR/served"
fi

# A filter that was there before, and kills for a call that the program does not make.
cat >"$SCRATCH/below.py" <<'P'
import ctypes, os, struct, sys
kills = b"".join(struct.pack("<HBBI", *row) for row in (
    (0x20, 0, 0, 0), (0x15, 0, 1, 310 if os.uname().machine == "x86_64" else 270),
    (0x06, 0, 0, 0x80000000), (0x06, 0, 0, 0x7fff0000)))
class program(ctypes.Structure):
    _fields_ = [("size", ctypes.c_ushort), ("filter", ctypes.c_char_p)]
p, prctl = program(4, kills), ctypes.CDLL(None, use_errno=True).prctl
assert prctl(38, 1, 0, 0, 0) == 0 and prctl(22, 2, ctypes.byref(p), 0, 0) == 0
os.execvp(sys.argv[1], sys.argv[1:])
P
printf '#!/bin/sh\nexec python3 "%s" "%s" "$@"\n' "$SCRATCH/below.py" "$SLUICE" >"$SCRATCH/below"
chmod +x "$SCRATCH/below"
rm -rf "$DIR/shared" && mkdir "$DIR/shared"
SLUICE=$SCRATCH/below gathering "$PROGRAMS/small_shared" "$DIR/shared" mapped >/dev/null ||
  fail "below a filter: status $?"
SLUICE=$SCRATCH/below gathering dd if="$SCRATCH/from" of="$DIR/to" bs=7 status=none ||
  fail "dd below a filter: status $?"
cmp "$SCRATCH/from" "$DIR/to" || fail 'dd below a filter: other bytes'
[ "$(gathered writes)" -gt 0 ] || fail 'nothing was gathered below a filter'

# A limit of the size of files is told at the very write, so nothing is gathered below one.
gathering python3 - "$DIR/limited" <<'P' || fail "a limit of sizes: status $?"
import errno, os, resource, signal, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
f = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
n = 0
try:
    while True: n += os.write(f, b"x" * 10)
except OSError as e:
    assert e.errno == errno.EFBIG, e
assert n == 8192 == os.fstat(f).st_size, n
P

# Programs that know nothing of it.
work() {
  rm -rf "$1" && mkdir "$1" && cd "$1" || exit 1
  sqlite3 db 'create table t (a); insert into t values (1), (2); select sum(a) from t' || exit 1
  git init -q . && git add db && git -c user.name=x -c user.email=x@y commit -qm one || exit 1
  git fsck --strict 2>&1 && git log --format=%s || exit 1
  python3 -c 'import logging
logging.basicConfig(filename="log", level=logging.INFO, format="%(message)s")
for i in range(500): logging.info("line %d", i)' || exit 1
  tar cf t.tar log && tar tf t.tar && cksum log || exit 1
}
export -f work
bash -c "work '$DIR/tree'" >"$SCRATCH/bare" || fail 'bare'
gathering bash -c "work '$DIR/tree'" >"$SCRATCH/gathered" || fail "programs: status $?"
cmp "$SCRATCH/bare" "$SCRATCH/gathered" || fail "$(diff "$SCRATCH/bare" "$SCRATCH/gathered")"

# Who may ask for it, and where it cannot be.
refused() { # WORDS CMD…
  local words=$1
  shift
  "$@" 2>"$SCRATCH/err"
  [ $? = 2 ] || fail "not refused: $*"
  grep -q "$words" "$SCRATCH/err" || fail "$(cat "$SCRATCH/err")"
}
refused 'only a policy says it' \
  "$SLUICE" --no-daemon run --small "close-to-open@$DIR" -- true
refused 'use one of the two' "$SLUICE" --run-dir "$SCRATCH/run" --no-daemon run \
  --policy "$SCRATCH/policy.json" --order "durable@$DIR" -- true
"$SLUICE" policy check "$SCRATCH/policy.json" | grep -q 'small writes are gathered' ||
  fail "$("$SLUICE" policy check "$SCRATCH/policy.json")"
