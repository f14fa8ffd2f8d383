#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Virtual IOPs of what the device does: the page cache is free, a read pays for what was read ahead,
# many small writes of a page pay for the page, and what goes past the cache costs what its size
# says. What was not asked of a device is not waited for.
# timeout: 200
. test/lib/lib.sh
own_mounts
[ -n "${HAS_OWN_MOUNTS:-}" ] || skip 'needs root'
. test/libinterpose/common.bash
need python3 losetup mkfs.ext4 mkfs.xfs mkfs.btrfs

cat >"$SCRATCH/cost.json" <<'C'
{"version": 1, "max_vops": 8000, "provisionable_vops": 4000, "charge": "device",
 "read": {"aligned": [[4096, 1], [65536, 4]], "unaligned": [[4096, 3], [65536, 8]]},
 "write": {"aligned": [[4096, 2], [65536, 10]], "unaligned": [[4096, 6], [65536, 30]]},
 "ops": {"open": 2, "create": 5, "stat": 0.25, "fsync": 20}}
C

# vops RATE CODE: Python code with `f`, an open file of 1 MiB, cold(), which empties its cache, and
# cached(), which fills it and keeps it full: a machine that lacks memory takes no locked page.
vops() {
  rm -f "$report"
  timeout -s KILL 60 "$SLUICE" --run-dir "$SCRATCH/run" --no-daemon run -q \
    --limit "vops=$1@$DISK" --cost "$SCRATCH/cost.json" --report "$report" --no-summary -- \
    python3 -c "import ctypes, mmap, os, sys, time
d = sys.argv[1]
f = os.open(d + '/data', os.O_RDWR)
def cold(how=os.POSIX_FADV_NORMAL):
    os.fdatasync(f)
    os.posix_fadvise(f, 0, 0, os.POSIX_FADV_DONTNEED)
    os.posix_fadvise(f, 0, 0, how)
def cached():
    libc = ctypes.CDLL(None)  # Python's own mmap asks for the file's size, which costs
    libc.mmap.restype = ctypes.c_void_p
    begin = libc.mmap(None, ctypes.c_size_t(1 << 20), mmap.PROT_READ, mmap.MAP_SHARED, f, 0)
    assert libc.mlock(ctypes.c_void_p(begin), ctypes.c_size_t(1 << 20)) == 0
$2" "$DISK" || fail "$fs: status $?: $2"
}
cost_of() { count channel "vops@$DISK" amount; }
# costs LEAST MOST CODE: in VOPs, beside the opening, 20 for each time it is made cold, and a map.
costs() {
  vops 1M/s "$3"
  local besides="2 - 20 * ${SYNCED:-0} - 0.25 * ${MAPPED:-0}"
  between "$1" "$(python3 -c "print(round($(cost_of) - $besides, 3))")" "$2" "$fs: $3: VOPs"
}
# below_filter CMD…: below a seccomp filter that lets everything through.
below_filter() {
  python3 -c 'import ctypes, os, sys
prctl = ctypes.CDLL(None, use_errno=True).prctl
allow = ctypes.create_string_buffer((6).to_bytes(4, "little") + (0x7fff0000).to_bytes(4, "little"))
class program(ctypes.Structure):
    _fields_ = [("size", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
p = program(1, ctypes.addressof(allow))
assert prctl(38, 1, 0, 0, 0) == 0 and prctl(22, 2, ctypes.byref(p), 0, 0) == 0
os.execvp(sys.argv[1], sys.argv[1:])' "$@"
}
{
  echo '#!/bin/bash'
  declare -p SLUICE
  declare -f below_filter
  echo 'below_filter "$SLUICE" "$@"'
} >"$SCRATCH/below"
chmod +x "$SCRATCH/below"
is_below_filter() { ! grep -Eq '^Seccomp:[[:space:]]*0' /proc/self/status; }
for fs in ext4 xfs btrfs; do
  DISK="$SCRATCH/$fs"
  mkdir "$DISK"
  truncate -s 400M "$DISK.image"
  "mkfs.$fs" -q "$DISK.image" >/dev/null 2>&1 && mount -o loop "$DISK.image" "$DISK" ||
    fail "no $fs"
  head -c 1048576 /dev/urandom >"$DISK/data"
  sync -f "$DISK"

  # Such a filter may not like what a stage asks more for that, so sizes count below it.
  SLUICE="$SCRATCH/below" costs 1000 1000 'for i in range(1000): os.pread(f, 4096, 0)'
  is_below_filter && continue

  MAPPED=1 costs 0 0 'cached()
for i in range(1000): os.pread(f, 4096, 4096 * (i % 256)); os.read(f, 100)'
  SYNCED=1 costs 10 10 'cold(os.POSIX_FADV_RANDOM)
for i in range(10): os.pread(f, 4096, 65536 * i)'
  SYNCED=1 costs 10 10 'cold(os.POSIX_FADV_RANDOM)
for i in range(10): os.pread(f, 100, 65536 * i + 50)'
  SYNCED=1 costs 60 90 'cold()
for i in range(256): assert len(os.read(f, 4096)) == 4096'  # by requests: 256
  MAPPED=1 costs 2 2 'cached()
for i in range(100): os.pwrite(f, b"x" * 40, 8192 + 40 * i)'
  SYNCED=1 costs 3 3 'cold(os.POSIX_FADV_RANDOM); os.pwrite(f, b"x" * 100, 65536 + 1000)'
  costs 16 16 'g = os.open(d + "/data", os.O_RDWR | os.O_DIRECT)
b = mmap.mmap(-1, 65536)
assert os.preadv(g, [b], 262144) == 65536
assert os.pwritev(g, [b], 262144) == 65536'

  # A child of a handler that forked in a read owes nothing for it.
  timeout -s KILL 60 "$SLUICE" --run-dir "$SCRATCH/run" --no-daemon run -q --no-summary \
    --limit "vops=1M/s@$DISK" --cost "$SCRATCH/cost.json" --report "$report" -- \
    "$PROGRAMS/measured_fork" "$DISK" >"$SCRATCH/out" || fail "$fs: a fork in a read: status $?"
  between 20 "$(cost_of)" 60 "$fs: $(cat "$SCRATCH/out") forks in reads: VOPs"

  # At one VOP a second: the cache is there at once, beside the opening; the disk is not.
  vops 1/s 'cached()
for i in range(2000): os.pread(f, 4096, 4096 * (i % 256))'
  counted 0 1 channel "vops@$DISK" delayed
  vops 100/s 'os.posix_fadvise(f, 0, 0, os.POSIX_FADV_DONTNEED)
os.posix_fadvise(f, 0, 0, os.POSIX_FADV_RANDOM)
begun = time.monotonic()
for i in range(100): os.pread(f, 4096, 8192 * i)
took = time.monotonic() - begun
sys.exit(0 if took > 0.85 else f"100 reads at 100/s took {took} s")'
done
exit 0
