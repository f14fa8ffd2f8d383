#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The disk refuses a new block of a file that the log has. What recovery then brings home, while the
# kernel still has the page as a clean one, is on the disk and not only in the cache.
. test/lib/order.bash
need python3
need_broken_disk

cat >"$SCRATCH/refused.py" <<'END'
import os
disk, refuse = os.environ["DISK"], os.environ["REFUSE"]
ear = os.open(refuse, os.O_WRONLY)
fd = os.open(disk + "/file", os.O_RDWR | os.O_CREAT)
for block in range(20):
    if block == 19:
        os.write(ear, b"0 2 0 1")  # home, writes, at once, one of them
    os.pwrite(fd, b"%04d" % block * 1024, block * 4096)
    os.fsync(fd)  # acknowledged: the log has it
try:
    os.sync()
    os.fsync(fd)
    raise SystemExit("nobody told of the error")
except OSError as error:
    print("told of", error.errno, flush=True)
END
cat >"$SCRATCH/there.py" <<'END'
import os
fd = os.open(os.environ["DISK"] + "/file", os.O_RDONLY)
os.fsync(fd)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
want = b"".join(b"%04d" % block * 1024 for block in range(20))
found = os.read(fd, 1 << 20)
lost = [b for b in range(20) if found[b * 4096:][:4096] != want[b * 4096:][:4096]]
raise SystemExit(f"not on the disk: blocks {lost}" if lost else 0)
END
cat >"$SCRATCH/hold.py" <<'END'
import mmap, os, sys
fd = os.open(os.environ["DISK"] + "/file", os.O_RDONLY)
with mmap.mmap(fd, 0, prot=mmap.PROT_READ) as pages:
    sum(pages[at] for at in range(0, len(pages), 4096))
    print("held", flush=True)
    sys.stdin.read()
END
cat >"$SCRATCH/work.sh" <<'END'
"$SLUICE" --run-dir "$SCRATCH/run" run --order "durable@$DISK" --no-summary \
  --order-journal "$SCRATCH/log" -- python3 "$SCRATCH/refused.py" || exit 10
# While somebody has the pages mapped the kernel keeps them. Older ones take no harm from that.
coproc python3 "$SCRATCH/hold.py"
read -r -u "${COPROC[0]}" || exit 13
is_harmless=false
"$SLUICE" recover "$SCRATCH/log" && is_harmless=true
exec {COPROC[1]}>&-
wait
$is_harmless || "$SLUICE" recover "$SCRATCH/log" || exit 11
python3 "$SCRATCH/there.py" || exit 12
END
export SLUICE
on_broken_disk bash "$SCRATCH/work.sh" >"$SCRATCH/said" 2>&1 ||
  fail "status $? (12: lost): $(cat "$SCRATCH/said")"
grep -q 'told of 5' "$SCRATCH/said" || fail "$(cat "$SCRATCH/said")"
! grep -q 'the journal is kept' "$SCRATCH/said" || grep -q 'mount it again' "$SCRATCH/said" ||
  fail "$(cat "$SCRATCH/said")"
grep -q 'brought home' "$SCRATCH/said" || fail "nothing was replayed: $(cat "$SCRATCH/said")"
