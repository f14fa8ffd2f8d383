#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A file is taken away from the log (mapped to be written) while its disk refuses bytes that are
# still to be written, and no daemon is there: the error is not swallowed by the stage's own sync,
# the program's fsync is told.
. test/lib/order.bash
need python3
need_broken_disk

cat >"$SCRATCH/drain.py" <<'END'
import mmap, os, signal, subprocess, sys
disk, refuse = os.environ["DISK"], os.environ["REFUSE"]
ear = os.open(refuse, os.O_WRONLY)
fd = os.open(disk + "/file", os.O_RDWR | os.O_CREAT)
os.write(fd, bytes(65536))
os.fsync(fd)
os.sync()
pid = int(subprocess.check_output(["pgrep", "-P", str(os.getppid()), "-x", "sluice-order"]))
os.kill(pid, signal.SIGKILL)
os.pwrite(fd, b"x" * 4096, 8192)
os.write(ear, b"0 2 0 1")  # home, writes, at once, one of them
mmap.mmap(fd, 4096)
try:
    os.fsync(fd)
except OSError as error:
    sys.exit(0 if error.errno == 5 else 3)
sys.exit(4)
END

with_fake sync
export SLUICE
on_broken_disk bash -c '"$SLUICE" --run-dir "$SCRATCH/run" run --order "durable@$DISK" \
  --no-summary --order-journal "$SCRATCH/log" -- python3 "$SCRATCH/drain.py"' \
  >"$SCRATCH/said" 2>&1 ||
  fail "status $? (4: the fsync said 0): $(cat "$SCRATCH/said")"
