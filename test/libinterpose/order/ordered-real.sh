#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 300
# Real programs in an ordered target, with the real log daemon on a disk whose flushes are slow:
# barriers are posted and changes wait for them, and the files are what the programs wrote, also
# when the daemon is killed or stands still meanwhile.
. test/lib/order.bash
need pgrep python3
tool=${BUILD:-build}/test/crash/power_cut
[ -x "${SLUICE%/*}/sluice-order" ] || skip 'sluice-order is not built'
[ "$(id -u)" = 0 ] || skip 'needs root'
[ -x "$tool" ] || skip 'needs libfuse3-dev to be built'
need mkfs.ext4

cat >"$SCRATCH/deliver.py" <<'END'
import os, sys
top, count = sys.argv[1], int(sys.argv[2])
os.makedirs(top + "/tmp"), os.makedirs(top + "/new")
for i in range(count):
    fd = os.open(f"{top}/tmp/{i}", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    os.write(fd, b"m" * (i + 1))
    os.fsync(fd)
    os.close(fd)
    os.rename(f"{top}/tmp/{i}", f"{top}/new/{i}")
    at = os.open(top + "/new", os.O_RDONLY)
    os.fsync(at)
    os.close(at)
END

cat >"$SCRATCH/on-disk.sh" <<'END'
# on-disk.sh FATE BEGUN COMMAND…: with $DISK/data ordered; FATE befalls the daemon when BEGUN has
# something.
. test/lib/order.bash
DATA=$DISK/data
mkdir -p "$DATA"
fate=$1 begun=$2
shift 2
"$SLUICE" --run-dir "$SCRATCH/run" run --order "ordered@$DATA" --no-summary \
  --report "$SCRATCH/report.json" -- "$@" "$DATA" &
daemon=$(log_daemon $!) || exit 1
grown "$DATA/$begun" 1
$fate "$daemon"
wait $! || fail "$*: $?"
[ ! -e "$DATA/.sluice-order.$(id -u).log" ] || fail 'the log is still there'
check=$SCRATCH/check
[ ! -e "$check" ] || . "$check"
END

counted() { json "$SCRATCH/report.json" "d['order']['$1']"; }

for fate in left_alone killed stopped; do
  echo 'for i in $(seq 0 99); do [ "$(stat -c %s "$DATA/new/$i")" = $((i + 1)) ] ||
    fail "mail $i"; done' >"$SCRATCH/check"
  cat >"$SCRATCH/mail.sh" <<END
exec python3 "$SCRATCH/deliver.py" "\$1" 100
END
  "$tool" disk ext4 10000 bash "$SCRATCH/on-disk.sh" $fate new/29 sh "$SCRATCH/mail.sh" ||
    { status=$?; [ $status = 77 ] && exit 77; fail "mail, $fate: $status"; }
  [ "$(counted barriers)" -gt 20 ] || fail "$fate: $(counted barriers) barriers"
  [ "$(counted gated)" -gt 10 ] || fail "$fate: only $(counted gated) changes waited"
done

if command -v sqlite3 >/dev/null; then
  cat >"$SCRATCH/sql.sh" <<'END'
for mode in wal delete; do
  { echo "pragma journal_mode=$mode; pragma synchronous=full; create table t(a);"
    for i in $(seq 50); do echo "insert into t values($i);"; done
    echo 'pragma integrity_check; select count(*) from t;'; } | sqlite3 "$1/$mode.db" || exit 1
done >"$1/said"
END
  echo '[ "$(grep -cx -e ok -e 50 "$DATA/said")" = 4 ] || fail "$(cat "$DATA/said")"' \
    >"$SCRATCH/check"
  "$tool" disk ext4 5000 bash "$SCRATCH/on-disk.sh" killed wal.db sh "$SCRATCH/sql.sh" ||
    fail "sqlite: $?"
fi
