#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 180
# Ordered targets with a daemon that dies, hangs or stands still: the gate opens within bounded
# time, after a sync of its own, also when nobody has the file open any more; then the log itself
# is void.
. test/lib/order.bash
need pgrep python3
export ORDER=ordered

with_fake sync
loop left_alone
loop killed
loop stopped
ORDER_FAKE=native
loop left_alone

# A mail is delivered, and the daemon dies while nothing of it is durable and its file is closed.
cat >"$SCRATCH/deliver.py" <<'END'
import os, signal, subprocess, sys
data, log, fate = sys.argv[1:4]

def has_mark(path):
    try:
        return len(os.getxattr(path, "user.sluice.order")) > 0
    except OSError:
        return False

pid = int(subprocess.check_output(["pgrep", "-P", str(os.getppid()), "-x", "sluice-order"]))
fd = os.open(data + "/tmp", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
os.write(fd, b"mail")
os.fsync(fd)
if fate != "open":
    os.close(fd)
os.kill(pid, signal.SIGKILL if fate != "stopped" else signal.SIGSTOP)
os.rename(data + "/tmp", data + "/new")
os.kill(pid, signal.SIGCONT) if fate == "stopped" else None
print("file" if has_mark(data + "/new") else "log" if has_mark(log) else "none")
END

ORDER_FAKE=gate
for fate in open closed stopped; do
  rm -f "$SCRATCH/log" "$DATA/new"
  said=$(timeout -s KILL 60 "$SLUICE" --run-dir "$SCRATCH/run" run --no-summary \
    --order "ordered@$DATA" --order-journal "$SCRATCH/log" --report "$SCRATCH/report.json" -- \
    python3 "$SCRATCH/deliver.py" "$DATA" "$SCRATCH/log" $fate 2>"$SCRATCH/said") ||
    fail "$fate: $? $(cat "$SCRATCH/said")"
  [ $fate = open ] && marked=file || marked=log
  [ "$said" = $marked ] || fail "$fate: marked is $said, wanted $marked"
  [ "$(json "$SCRATCH/report.json" 'd["order"]["barriers"]')" -gt 0 ] || fail "$fate: no barrier"
done
