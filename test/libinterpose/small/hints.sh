#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# --small hints: what unaligned overwrites and strided reads need is read ahead and charged, where
# the job asked for it and can pay; no byte and no error of the program changes. Nothing is looked
# at for descriptors past the cache, and for files in memory.
. test/libinterpose/common.bash

# On a file system with a disk: a file in memory is always cached.
at=$BUILD
[ "$(stat -f -c %T "$at")" != tmpfs ] || at=/var/tmp
data=$(mktemp -d "$at/hints.XXXXXX")
memory=$(mktemp -d /dev/shm/hints.XXXXXX)
trap 'rm -rf "$data" "$memory"' EXIT
head -c 8388608 /dev/urandom >"$data/first"

cat >"$SCRATCH/work.py" <<'P'
import ctypes, fcntl, mmap, os, sys
what, path, piece = sys.argv[1], sys.argv[2], int(sys.argv[3])
modes = {"strides": os.O_RDONLY, "direct": os.O_RDWR | os.O_DIRECT, "later": os.O_RDWR}
fd = os.open(path, modes.get(what, os.O_WRONLY))
if "warm" in sys.argv:  # what is mapped stays in the cache, whoever empties it
    kept = mmap.mmap(os.open(path, os.O_RDONLY), 0, prot=mmap.PROT_READ)
    sum(kept[::4096])
else:
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
size = os.fstat(fd).st_size
if what == "append":
    os.lseek(fd, 0, os.SEEK_END)
    for i in range(1000):
        os.write(fd, b"a" * piece)
elif what == "write":
    for i in range(size // piece):
        assert os.write(fd, bytes([i % 251]) * piece) == piece
elif what == "pwrite":
    for i in range(size // piece):
        assert os.pwrite(fd, bytes([i % 251]) * piece, i * piece) == piece
elif what in ("direct", "later"):
    if what == "later":
        fcntl.fcntl(fd, fcntl.F_SETFL, os.O_DIRECT)
    page, libc = mmap.mmap(-1, 4096), ctypes.CDLL(None)
    at_page = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    size = min(size, 1 << 20)
    for call in libc.pread64, libc.pwrite64:
        for at in range(0, size, piece):
            n = call(fd, at_page, ctypes.c_size_t(512), ctypes.c_long(at))
            assert n == 512, (call, at, n)
elif what == "strides":
    print([hash(os.pread(fd, 100, at)) for at in range(0, size, piece)])
P

# hinted WHERE LIMIT… -- WHAT FILE PIECE [warm]: what came of it, in $report.
hinted() {
  local small=$1 args=()
  shift
  while [ "$1" != -- ]; do args+=(--limit "$1") && shift; done
  shift
  PYTHONHASHSEED=1 timeout -s KILL 60 "$SLUICE" --run-dir "$SCRATCH/run" --no-daemon run \
    --small "$small" "${args[@]}" -q --report "$report" --no-summary -- \
    python3 "$SCRATCH/work.py" "$@" >"$SCRATCH/out" 2>"$SCRATCH/err" ||
    fail "$*: $(cat "$SCRATCH/err")"
}
bare() { PYTHONHASHSEED=1 python3 "$SCRATCH/work.py" "$@"; }
hints() { json "$report" "d['hints']['$1']"; }
# none: nothing was advised.
none() { [ "$(hints advised)" = 0 ] || fail "$1: advised $(hints advised)"; }
# no_look: nobody asked what the cache has.
no_look() {
  none "$1"
  [ "$(hints cached) $(hints unpaid)" = '0 0' ] || fail "$1: looks at the cache"
}
fresh() { cp "$data/first" "$data/f" && cp "$data/first" "$data/g" && sync "$data/f" "$data/g"; }

# Nearly all of a cold file that is overwritten in odd pieces, and the same bytes as without.
for what in write pwrite; do
  for piece in 4097 8193 700; do
    fresh
    hinted "hints@$data" -- $what "$data/f" $piece
    between 6000000 "$(hints advised_bytes)" 8500000 "$what $piece"
    between 6 "$(hints advised)" 12 "$what $piece"
    bare $what "$data/g" $piece
    cmp "$data/f" "$data/g" || fail "$what $piece: other bytes"
  done
done

# Everywhere, and by a policy; in a directory of another name nothing.
fresh
hinted hints -- write "$data/f" 4097
between 6000000 "$(hints advised_bytes)" 8500000 everywhere
mkdir "$data/other"
hinted "hints@$data/other" -- write "$data/f" 4097
none 'outside the directory'
cat >"$SCRATCH/hints.json" <<P
{"targets": {"t": {"path": "$data", "small": "hints"}}}
P
"$SLUICE" --run-dir "$SCRATCH/run" --no-daemon run --policy "$SCRATCH/hints.json" --no-summary \
  --report "$report" -- python3 "$SCRATCH/work.py" write "$data/f" 4097 || fail policy
between 6000000 "$(hints advised_bytes)" 8500000 'by a policy'

# Whole pages need nothing, nor does what is added, nor what is in the cache.
hinted "hints@$data" -- write "$data/f" 4096
none 'whole pages'
hinted "hints@$data" -- append "$data/f" 1000
none 'appended'
hinted "hints@$data" -- write "$data/f" 4097 warm
none 'in the cache'
between 1 "$(hints cached)" 8 'looks at the cache'

# Strided reads: each once, and what they bring is the same.
fresh
hinted "hints@$data" -- strides "$data/f" 65536
bare strides "$data/g" 65536 | cmp - "$SCRATCH/out" || fail 'strided reads bring other bytes'
between 100 "$(hints advised)" 140 'strided reads'

# A reader is not held up by who has the lock of the file: to ask for extents takes it.
need strace
fresh
"$SLUICE" --run-dir "$SCRATCH/run" --no-daemon run -q --no-summary --small "hints@$data" \
  --report "$report" -- strace -qq -e trace=ioctl,fadvise64 -o "$SCRATCH/calls" \
  python3 "$SCRATCH/work.py" strides "$data/f" 65536 >"$SCRATCH/out" || fail "strides: status $?"
grep -q FADV_WILLNEED "$SCRATCH/calls" || fail 'nothing was advised'
grep -q FIEMAP "$SCRATCH/calls" && fail 'a reader asks for extents'

# Holes, and what was only allocated, are read from no disk; nor is what lies between them charged
# for more than itself, also where one answer of the file system does not tell all of it.
cat >"$SCRATCH/blanks.py" <<'P'
import fcntl, os, struct, sys
kind, path, size = sys.argv[1], sys.argv[2], 8 << 20
fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
os.ftruncate(fd, size)
try:
    fcntl.ioctl(fd, 0xC020660B, bytearray(struct.pack("QQIIII", 0, size, 0, 0, 0, 0)))
    if kind == "allocated":
        os.posix_fallocate(fd, 0, size)
except OSError as e:
    sys.exit(f"{path}: {e.strerror}")
if kind == "half":
    for at in range(0, size, 8192):
        os.pwrite(fd, b"h" * 4096, at)
P
blanks() { python3 "$SCRATCH/blanks.py" "$@"; }
if blanks allocated "$data/f"; then  # some file systems do not tell what lies where
  for kind in holes allocated; do
    for what in write pwrite; do
      blanks $kind "$data/f"
      hinted "hints@$data" "read=1TiB/s@$data" -- $what "$data/f" 777
      none "$what, $kind"
      between 1 "$(hints cached)" 8 "looks where there is nothing: $what, $kind"
      [ "$(json "$report" "d['channels'][0]['amount']")" = 0 ] || fail "$what, $kind: charged"
    done
    # A reader does not ask where its extents lie: it finds that nothing is read, and looks rarely.
    blanks $kind "$data/f"
    hinted "hints@$data" -- strides "$data/f" 65536
    between 1 "$(hints advised)" 24 "strided reads, $kind"
  done
  blanks half "$data/f"
  hinted "hints@$data" -- write "$data/f" 777
  between 3000000 "$(hints advised_bytes)" 4400000 'half of it are holes'
fi

# A descriptor past the cache, from its open or later, in strides and in a row.
for what in direct later; do
  for piece in 16384 512; do
    hinted "hints@$data" -- $what "$data/f" $piece warm
    no_look "$what $piece"
  done
done

# Holes of a file in memory: there is no disk to read them from.
for what in strides pwrite; do
  truncate -s 64M "$memory/f"
  hinted "hints@$memory" -- $what "$memory/f" 5000 warm
  no_look "$what in memory"
  rm "$memory/f"
done

# It is charged as reads, but no call is counted for it; and it waits for nothing.
fresh
hinted "hints@$data" "read=1TiB/s@$data" -- write "$data/f" 4097
json "$report" "d['channels'][0]['amount'] == d['hints']['advised_bytes']" | grep -q True ||
  fail "charged $(json "$report" "d['channels'][0]['amount']"), advised $(hints advised_bytes)"
[ "$(json "$report" "sum(c['calls'] for c in d['calls'] if c['call'] == 'posix_fadvise')")" = 0 ] ||
  fail 'advice was counted as a call of the program'
fresh
hinted "hints@$data" "read=0/s@$data" -- write "$data/f" 4097
none 'no tokens'
[ "$(hints unpaid)" -ge 1 ] || fail 'nobody says that it could not be paid'
[ "$(json "$report" "d['channels'][0]['delayed']")" = 0 ] || fail 'the program waited for hints'

# Words that are none.
for bad in hint read hints@ reads@ @/tmp; do
  "$SLUICE" --no-daemon run --small "$bad" -- true 2>"$SCRATCH/err" && fail "took --small $bad"
  [ $? -eq 2 ] || fail "--small $bad: not a usage error"
  grep -q -- "--small $bad" "$SCRATCH/err" || fail "--small $bad: $(cat "$SCRATCH/err")"
done
