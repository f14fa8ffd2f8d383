#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# sync(2) and syncfs(2) while the log daemon is dead: what they make durable is not to be undone by
# the log, so the log itself bears the mark. With a daemon they ask it, and mark nothing.
. test/lib/order.bash
need python3 pgrep

cat >"$SCRATCH/sync.py" <<'END'
import ctypes, os, signal, subprocess, sys
data, log, how, dies = sys.argv[1:5]
libc = ctypes.CDLL(None, use_errno=True)

def has_mark():
    try:
        return len(os.getxattr(log, "user.sluice.order")) > 0
    except OSError:
        return False

fd = os.open(data + "/file-" + how, os.O_RDWR | os.O_CREAT)
os.write(fd, b"x")
os.fsync(fd)
if dies == "dies":
    pid = int(subprocess.check_output(["pgrep", "-P", str(os.getppid()), "-x", "sluice-order"]))
    os.kill(pid, signal.SIGKILL)
os.write(fd, b"y")
libc.sync() if how == "sync" else libc.syncfs(fd)
print("marked" if has_mark() else "not marked")
os.fsync(fd)
END

with_fake sync
for how in sync syncfs; do
  for fate in dies lives; do
    rm -f "$SCRATCH/log"
    said=$("$SLUICE" --run-dir "$SCRATCH/run" run --order "durable@$DATA" --no-summary \
      --order-journal "$SCRATCH/log" --report "$SCRATCH/report.json" -- \
      python3 "$SCRATCH/sync.py" "$DATA" "$SCRATCH/log" $how $fate 2>"$SCRATCH/said") ||
      fail "$how, the daemon $fate: $? $(cat "$SCRATCH/said")"
    [ $fate = lives ] || [ "$said" = marked ] || fail "$how: the log says nothing of it"
    # On a machine that is busy enough a living daemon may be silent for a moment.
    [ $fate = dies ] || [ "$said" = 'not marked' ] ||
      [ "$(json "$SCRATCH/report.json" 'd["order"]["silent"] + d["order"]["absent"]')" -gt 0 ] ||
      fail "$how: the log is void though the daemon answered"
  done
done
