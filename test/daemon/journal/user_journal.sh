#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Journals of two users whose runs were cut off, recovered by root: with each one's rights, whatever
# they put in the journal's place, and a damaged one keeps no other from coming home.
set -u
. test/lib/lib.sh
own_mounts
need python3
two_users
truncate -s 256M "$SCRATCH/image" # room for two journals
mkfs.ext4 -q "$SCRATCH/image" 2>/dev/null && mount -o loop "$SCRATCH/image" "$SCRATCH/data" ||
  skip 'needs mkfs.ext4 and loop devices'
pids=()
trap 'kill -9 "${pids[@]}" 2>/dev/null; umount -l "$SCRATCH/data"; rm -rf "$SCRATCH"' EXIT
[ -x "${SLUICE%/*}/sluice-order" ] || skip 'sluice-order is not built'
chmod 777 "$SCRATCH/data"
python=/usr/bin/python3 # one that everybody can reach
as $bob "$python" -c 'import json' 2>/dev/null || skip "needs $python"

cat >"$SCRATCH/work.py" <<'END'
import os, sys, time
os.chdir(sys.argv[1])
fd = os.open("file", os.O_RDWR | os.O_CREAT, 0o600)
for block in range(40):
    os.pwrite(fd, b"%04d" % block * 1024, block * 4096)
    os.fsync(fd)
open("done", "w").close()
time.sleep(600)
END
log() { echo "$SCRATCH/data/$1/.sluice-order.$1.log"; }
cut_off() { # UID: a run of his, and its journal's daemon, that end at once
  install -d -o "$1" "$SCRATCH/data/$1" "$SCRATCH/run-$1"
  as "$1" "$SLUICE" --run-dir "$SCRATCH/run-$1" run --order "durable@$SCRATCH/data/$1" \
    -- "$python" "$SCRATCH/work.py" "$SCRATCH/data/$1" 2>"$SCRATCH/err" &
  local run=$! all
  until_true 60 test -e "$SCRATCH/data/$1/done" ||
    fail "uid $1 does not work: $(cat "$SCRATCH/err")"
  all="$run $(pgrep -u "$1" -f "$SCRATCH" | tr '\n' ' ')"
  # Stopped first, or one that sees another end brings home what is to be left.
  # shellcheck disable=SC2086
  kill -STOP $all && kill -9 $all
  wait $run 2>/dev/null
  [ -s "$(log "$1")" ] || fail "uid $1 has no journal"
}
recover() { # STATUS WORDS…
  local want=$1
  shift
  timeout 60 "$SLUICE" recover "$@" >"$SCRATCH/out" 2>&1
  local had=$?
  [ $had = "$want" ] || fail "recover $*: $had: $(cat "$SCRATCH/out")"
}
for uid in $ann $bob; do cut_off $uid; done

# Of his files root is told the inode: no name says anything to the terminal.
inode=$(stat -c %i "$SCRATCH/data/$bob/file")
as $bob mv "$SCRATCH/data/$bob/file" "$SCRATCH/data/$bob/"$'f\e]0;x\a\n\xc2\x9bile'
as $bob "$python" - "$SCRATCH/data/$bob" <<'END' &
import fcntl, os, signal, sys, time
signal.signal(signal.SIGIO, signal.SIG_IGN)
name = [one for one in os.listdir(sys.argv[1]) if one.startswith("f\x1b")][0]
fd = os.open(sys.argv[1] + "/" + name, os.O_RDWR)
while True:
    try:
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        break
    except BlockingIOError:  # what was killed has it open still
        time.sleep(0.02)
open(sys.argv[1] + "/leased", "w").close()
signal.pause()
END
pids+=("$!")
until_true 30 test -e "$SCRATCH/data/$bob/leased" || fail 'no lease'
for how in '0 --dry-run' '125 --quiet'; do
  recover "${how% *}" "$(log $bob)" --replay "${how#* }"
  grep -q "a lease on it: the file with inode $inode on .*-inum $inode" "$SCRATCH/out" ||
    fail "no inode: $(cat -v "$SCRATCH/out")"
  tr -d '\n -~' <"$SCRATCH/out" | grep -q . && fail "to the terminal: $(cat -v "$SCRATCH/out")"
done
kill -9 "${pids[-1]}"
wait "${pids[-1]}" 2>/dev/null

# Hers is damaged: it is kept, and his comes home.
cp -p "$(log $ann)" "$SCRATCH/whole"
head -c 8192 /dev/zero | dd of="$(log $ann)" conv=notrunc status=none
recover 125 "$(log $ann)"
grep -q 'it is kept as it is' "$SCRATCH/out" || fail "damaged: $(cat "$SCRATCH/out")"
recover 0 "$(log $bob)"
grep -q 'generation' "$SCRATCH/out" || fail "his: $(cat "$SCRATCH/out")"
cp -p "$SCRATCH/whole" "$(log $ann)"
recover 0 "$(log $ann)" --dry-run
recover 0 "$(log $ann)"
[ "$(stat -c %u:%a "$(log $ann)")" = $ann:600 ] || fail "its owner: $(ls -l "$(log $ann)")"

# She stops the process that has her rights, again and again: root's does not wait for it.
as $ann "$python" - "$SCRATCH/data/$ann/stopped" "$(log $ann)" <<'END' &
import os, signal, sys
open(sys.argv[1], "w").close()
while True:
    for name in os.listdir("/proc"):
        try:
            if not name.isdigit() or int(name) == os.getpid():
                continue
            words = open("/proc/%s/cmdline" % name, "rb").read()
            if b"recover" in words and sys.argv[2].encode() in words:
                os.kill(int(name), signal.SIGSTOP)
        except OSError:
            pass
END
pids+=("$!")
until_true 30 test -e "$SCRATCH/data/$ann/stopped" || fail 'nobody stops'
# It is there until then: what it would print to is full.
mkfifo "$SCRATCH/full"
exec 9<>"$SCRATCH/full"
dd if=/dev/zero of="$SCRATCH/full" bs=4096 oflag=nonblock 2>/dev/null
timeout 60 "$SLUICE" recover "$(log $ann)" --dry-run >"$SCRATCH/full" 2>"$SCRATCH/out"
had=$?
exec 9>&-
kill -9 "${pids[-1]}"
wait "${pids[-1]}" 2>/dev/null
[ $had = 125 ] || fail "stopped: $had: $(cat "$SCRATCH/out")"
grep -q 'stopped its recovery again and again' "$SCRATCH/out" ||
  fail "stopped: $(cat "$SCRATCH/out")"

# It is she who reads it: what she cannot open is not opened for her.
chmod 000 "$(log $ann)"
recover 125 "$(log $ann)"
grep -q 'Permission denied' "$SCRATCH/out" || fail "read with other rights: $(cat "$SCRATCH/out")"
chmod 600 "$(log $ann)"

# Nothing that she puts there makes root wait, or root's own journal hers.
as $ann mkfifo "$SCRATCH/data/$ann/fifo"
for how in '' --dry-run; do
  recover 2 "$SCRATCH/data/$ann/fifo" $how
  grep -q 'is not a file' "$SCRATCH/out" || fail "a pipe: $(cat "$SCRATCH/out")"
done
install -m 600 "$SCRATCH/whole" "$SCRATCH/data/roots"
as $ann ln -s "$SCRATCH/data/roots" "$SCRATCH/data/$ann/link"
recover 125 "$SCRATCH/data/$ann/link"
cmp -s "$SCRATCH/whole" "$SCRATCH/data/roots" || fail "root's journal was written through a link"
as $ann "$python" - "$(log $ann)" <<'END' &
import fcntl, os, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
fd = os.open(sys.argv[1], os.O_RDONLY)
fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
open(os.path.dirname(sys.argv[1]) + "/leased", "w").close()
signal.pause()
END
pids+=("$!")
until_true 30 test -e "$SCRATCH/data/$ann/leased" || fail 'no lease'
recover 125 "$(log $ann)"
grep -q 'temporarily unavailable' "$SCRATCH/out" || fail "a lease: $(cat "$SCRATCH/out")"
