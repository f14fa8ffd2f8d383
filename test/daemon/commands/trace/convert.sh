#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Each converter finds in a sample what is in it: in the stored ones the totals below, and in what
# strace and fio write here and now the totals that program or tool tells itself. What was converted
# is read back as the same trace.
set -u
. test/lib/lib.sh
samples=$PWD/test/daemon/commands/trace/samples
cd "$SCRATCH" || exit 1
trace() { "$SLUICE" trace "$@"; }

# totals FILE: `op=total …` in the order of the table.
totals() {
  trace --json info "$1" >info.json || fail "info $1"
  json info.json '" ".join("%s=%g" % (o["op"], o["total"]) for o in d["ops"])'
}

# converts WANTED ARGUMENTS…
converts() {
  local wanted=$1 got form
  shift
  trace convert "$@" -o c.csv || fail "convert $*"
  got=$(totals c.csv)
  [ "$got" = "$wanted" ] || fail "convert $*: $got, wanted $wanted"
  for form in --long ''; do
    # shellcheck disable=SC2086
    trace convert c.csv $form -o again.csv || fail "what convert $* wrote is not read"
    [ "$(totals again.csv)" = "$wanted" ] || fail "convert $*: not the same after $form"
  done
  cmp -s c.csv again.csv || fail "convert $*: wide, long and wide again is not the same"
}

converts 'open=662 close=600 mkdir=1 rename=60 getattr=300 statfs=6' "$samples"/mds-*.md_stats
[ "$(sed -n '/^0,/p' c.csv)" = '0,660,600,300,0,60,6' ] || fail "the first minute: $(cat c.csv)"
converts 'open=24 close=24 getattr=42 read=4096 write=3.14982e+06' \
  --jobs-by job "$samples/jobs-old.job_stats"
grep -q '^0,20,20,40,0,0,tar.500$' c.csv || fail 'a job that began between two snapshots'
converts 'open=300 close=299' "$samples"/jobs-new-?.job_stats
converts 'open=1 close=1 rename=1 read=4196' "$samples/calls.jsonl"
trace convert "$samples/calls.jsonl" --below /nowhere -o none.csv 2>err && fail 'nothing is below'
grep -q 'no call that a trace counts below /nowhere' err && [ ! -e none.csv ] || fail "$(cat err)"
converts 'open=1 close=1 sync=2 read=524288 write=524288' "$samples/fio.iolog" --interval 100ms
wanted='open=16 close=16 unlink=5 mkdir=1 rmdir=1 rename=5 getattr=16 sync=5 readdir=2'
converts "$wanted read=10000 write=5000" "$samples/python.strace" --interval 10ms
# What is written here and now.
if command -v strace >/dev/null && strace -o x true 2>/dev/null; then
  mkdir work
  cat >work.py <<'END'
import os
for i in range(50):
    fd = os.open("work/f%d" % i, os.O_RDWR | os.O_CREAT)
    os.write(fd, b"x" * 777)
    os.fsync(fd)
    os.lseek(fd, 0, 0)
    os.read(fd, 1000)
    os.close(fd)
    os.stat("work/f%d" % i)
    os.rename("work/f%d" % i, "work/g%d" % i)
    os.unlink("work/g%d" % i)
END
  strace -f -ttt -T -y -o app.strace python3 -I "$SCRATCH/work.py" || fail 'strace'
  wanted='open=50 close=50 unlink=50 rename=50 getattr=50 sync=50 read=38850 write=38850'
  trace convert app.strace --below "$SCRATCH/work" --interval 100ms -o app.csv || fail 'app.strace'
  [ "$(totals app.csv)" = "$wanted" ] || fail "strace: $(totals app.csv), wanted $wanted"
  # The same program recorded by sluice itself.
  "$SLUICE" run --no-daemon --no-summary --record own.csv -- python3 -I "$SCRATCH/work.py" ||
    fail 'sluice run --record'
  trace convert app.strace -o all.csv || fail 'app.strace'
  for op in unlink rename sync write; do
    [ "$(totals own.csv | grep -o "$op=[0-9]*")" = "$(totals all.csv | grep -o "$op=[0-9]*")" ] ||
      fail "$op: recorded $(totals own.csv), traced $(totals all.csv)"
  done
  strace -f -ttt -o bare.strace python3 -I "$SCRATCH/work.py" || fail 'strace without -y'
  trace convert bare.strace -o bare.csv && grep -q '^# note: strace ran without -y' bare.csv ||
    fail 'strace without -y'
  strace -f -tt -o clock.strace true && trace convert --from strace clock.strace -o x.csv 2>err
  grep -q 'clock.strace:1: .*run strace with -ttt' err || fail "-tt: $(cat err)"
fi
if command -v fio >/dev/null; then
  fio --name=a --rw=randrw --size=2m --bs=16k --rate_iops=500 --write_iolog=log --filename=data \
    --ioengine=psync --output-format=json --output=fio.json >/dev/null || fail 'fio'
  trace convert log --interval 100ms -o fio.csv || fail 'fio iolog'
  [ "$(totals fio.csv | grep -o 'read=.*')" = "$(json fio.json \
    '"read=%g write=%g" % tuple(d["jobs"][0][k]["io_bytes"] for k in ("read", "write"))')" ] ||
    fail "fio: $(totals fio.csv)"
  # And back: fio replays what is exported, the same bytes in the same time.
  trace convert fio.csv --iolog --io-size 16KiB -o back.iolog || fail 'export of an iolog'
  trace convert back.iolog --interval 100ms -o back.csv || fail 'own iolog'
  [ "$(totals back.csv | grep -o 'read=.*')" = "$(totals fio.csv | grep -o 'read=.*')" ] ||
    fail "own iolog: $(totals back.csv)"
  truncate -s 2m data.read data.write
  fio --name=b --read_iolog=back.iolog --ioengine=psync --output-format=json --output=b.json \
    >/dev/null 2>&1 || fail 'fio does not take the exported iolog'
  [ "$(json b.json 'd["jobs"][0]["read"]["io_bytes"]+d["jobs"][0]["write"]["io_bytes"]')" = \
    "$(json fio.json 'd["jobs"][0]["read"]["io_bytes"]+d["jobs"][0]["write"]["io_bytes"]')" ] ||
    fail 'fio replayed other bytes'
fi
python=${SLUICE_PYTHON:-python3}
if "$python" -c 'import darshan' 2>/dev/null; then
  converts 'open=22 close=22 getattr=4 read=4.2025e+06 write=4.1958e+06' "$samples/ior.darshan"
else
  trace convert "$samples/ior.darshan" -o no.csv 2>err && fail 'a Darshan log without its package'
  grep -q 'pip install darshan' err || fail "no advice: $(cat err)"
  [ ! -e no.csv ] || fail 'a file was left'
fi
SLUICE_PYTHON=/nowhere/python trace convert "$samples/ior.darshan" 2>err && fail 'no python'
grep -q 'pip install darshan' err || fail "no advice: $(cat err)"

# Several CSV files become the jobs of one trace; longer intervals are sums.
printf '# interval: 1s\ntime_s,open\n0,1\n1,2\n2,4\n' >one.csv
printf '# interval: 1s\ntime_s,open\n0,10\n' >two.csv
trace convert one.csv two.csv -o both.csv && grep -q '^0,10,two$' both.csv || fail 'two files'
[ "$(trace convert one.csv --interval 2s | tail -2 | tr '\n' ' ')" = '0,3 2,4 ' ] ||
  fail '--interval'
cat one.csv | trace convert --from csv - | grep -q '^2,4$' || fail 'standard input'
[ -z "$(ls -- *.csv.* 2>/dev/null)" ] || fail "left behind: $(ls)"
