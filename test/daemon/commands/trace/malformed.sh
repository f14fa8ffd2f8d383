#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What is wrong with a file is told with file and line (a Darshan log has none), the status is 2,
# and no output file is there, not even half of one; one that was there before stays what it was.
set -u
. test/lib/lib.sh
samples=$PWD/test/daemon/commands/trace/samples
cd "$SCRATCH" || exit 1
trace() { "$SLUICE" trace "$@"; }

# refused FORMAT FILE PATTERN [OPTION…]: FILE is in the current directory.
refused() {
  local format=$1 file=$2 pattern=$3
  shift 3
  echo before >out.csv
  (ulimit -v 4000000; "$SLUICE" trace convert --from "$format" "$@" -o out.csv "$file" 2>err)
  [ $? = 2 ] || fail "$format: $file was not refused with status 2: $(cat err)"
  grep -qE "^sluice: $file:$pattern" err || fail "$format: $file: $(cat err), wanted :$pattern"
  [ "$(cat out.csv)" = before ] || fail "$format: $file: the output was touched"
  [ -z "$(ls -- out.csv.* 2>/dev/null)" ] || fail "$format: $file: left behind $(ls)"
  # A new file is not made either.
  trace convert --from "$format" "$@" -o new.csv "$file" 2>/dev/null
  [ ! -e new.csv ] || fail "$format: $file: a file was made"
}

# The same for every format: random bytes, a line without end, nothing at all.
head -c 5000 /dev/urandom >random
head -c 3000000 /dev/zero | tr '\0' 'a' >long
: >empty
for format in csv lustre strace iolog jsonl; do
  refused $format random '[0-9]+: '
  refused $format long '1: the line is longer than 1 MiB'
done
for format in csv iolog; do refused $format empty '1: '; done
for format in lustre strace jsonl; do
  trace convert --from $format empty -o new.csv 2>err && fail "$format: an empty file"
  [ ! -e new.csv ] || fail "$format: a file from nothing"
done

# CSV
head=$'# interval: 1s\ntime_s,open,read\n'
printf '%s0,1,2\n1,1' "$head" >f && refused csv f '4: 2 cells where the columns are 3'
printf '%s0,-1,2\n' "$head" >f && refused csv f '3: open is -1: a count is never negative'
printf '%s5,1,2\n4,1,2\n' "$head" >f && refused csv f '4: time 4 after 5: out of order'
printf '%s0,1e30,2\n' "$head" >f && refused csv f '3: open is 1e30: more than'
printf '%s0,1,2\n1e10,1,2\n' "$head" >f && refused csv f '4: the trace would have more than'
printf '# intervals: 3\n%s0,1,2\n1,1,2\n' "$head" >f && refused csv f '5: .*it was cut'
python3 -c 'print("# interval: 1s\ntime_s,op,count,job")
for i in range(20000): print("0,open,1,job%d" % i)' >f &&
  refused csv f '8195: more than 8192 columns'

# Lustre
cp "$samples/mds-1.md_stats" f && head -c 700 "$samples/mds-2.md_stats" >>f
refused lustre f '[0-9]+: .*cut'
sed 's/2049 samples/-2049 samples/' "$samples/mds-1.md_stats" >f
refused lustre f '5: open is -2049: a counter is never negative'
cat "$samples/mds-2.md_stats" "$samples/mds-1.md_stats" >f
refused lustre f '18: snapshot_time .* out of order'
sed 's/2049 samples/99999999999999999999999999 samples/' "$samples/mds-1.md_stats" >f
refused lustre f '5: open is 99999999999999999999999999: more than 1e\+18'
sed 's/1322494496/132249449600000/' "$samples/jobs-old.job_stats" >f
refused lustre f '11: snapshot_time is "132249449600000"'
sed '3d' "$samples/jobs-old.job_stats" >f && refused lustre f '3: "open" before any snapshot_time'
head -c 200 "$samples/jobs-old.job_stats" >f && refused lustre f '6: .*cut'
sed '/MDT/d' "$samples/mds-1.md_stats" >f && refused lustre f '[0-9]+: two snapshots .* without -n'
cp "$samples/mds-1.md_stats" f && refused lustre f ' ?one snapshot only'

# strace
head -c 3000 "$samples/python.strace" | head -c -20 >f && refused strace f '[0-9]+: .*(cut|not)'
sed '20s/ 17952/ -17952/' "$samples/python.strace" >f &&
  refused strace f '20: the time is out of range'
sed '20s/ 17952/ 17951/' "$samples/python.strace" >f && refused strace f '20: out of order'
sed '20s/ 17952[0-9]*/ 99999999999999999/' "$samples/python.strace" >f &&
  refused strace f '20: the time'
sed '20s/= [0-9]*/= 9999999999999999999/; 20s/[a-z]*(/read(/' "$samples/python.strace" >f
trace convert --from strace f -o x.csv || fail 'a result that no call has is not counted'
sed '20s/ 17952/ 19952/' "$samples/python.strace" >f && refused strace f '2[01]: '
trace convert --from strace --unordered --interval 1min f -o new.csv 2>err
grep -qE ':[0-9]+: .*more than [0-9]+ (intervals|counts)' err && [ ! -e new.csv ] ||
  fail "$(cat err)"

# fio
head -c 150 "$samples/fio.iolog" >f && refused iolog f '[0-9]+: .*cut'
sed '5s/.*/-5 data.a read 0 4096/' "$samples/fio.iolog" >f &&
  refused iolog f '5: .*a negative number'
sed '5s/.*/300 data.a read 0 -4096/' "$samples/fio.iolog" >f &&
  refused iolog f '5: .*a negative number'
sed '9s/^[0-9]*/1/' "$samples/fio.iolog" >f && refused iolog f '9: out of order'
sed '5s/65536/1e20/' "$samples/fio.iolog" >f && refused iolog f '5: .*a number above 1e18'
sed '5s/write/wipe/' "$samples/fio.iolog" >f && refused iolog f '5: .*unknown action'
sed '1s/3/4/' "$samples/fio.iolog" >f && refused iolog f '1: .*the first line is not'
sed '9s/^[0-9]*/90000000000000/' "$samples/fio.iolog" >f &&
  refused iolog f '[0-9]+: (the trace would|out of)'

# JSON lines
head -c 700 "$samples/calls.jsonl" >f && refused jsonl f '3: no JSON: the line was cut'
sed '2s/"return_value": 4096/"return_value": 1e30/' "$samples/calls.jsonl" >f
refused jsonl f '2: 1e\+30 bytes in one call'
sed '2s/, "return_value": 4096//; 2s/"size": 4096/"size": -1/' "$samples/calls.jsonl" >f
refused jsonl f '2: a read or write needs return_value or size'
sed '3s/12:34:57/12:34:50/' "$samples/calls.jsonl" >f && refused jsonl f '3: out of order'
sed '3s/2023-10-17/2023-13-17/' "$samples/calls.jsonl" >f &&
  refused jsonl f '3: timestamp "2023-13-17'
sed '2s/systemcall/sytemcall/' "$samples/calls.jsonl" >f &&
  refused jsonl f '2: the call has no name'
sed '3s/2023-/9023-/' "$samples/calls.jsonl" >f && refused jsonl f '[34]: '
printf '[1]\n' >f && refused jsonl f '1: no JSON object'
python3 -c 'print("[" * 500000)' >f && refused jsonl f '1: no JSON'

# Darshan: what its package cannot read, or dies of.
if "${SLUICE_PYTHON:-python3}" -c 'import darshan' 2>/dev/null; then
  for size in 100 1000 2500; do
    head -c $size "$samples/ior.darshan" >f && refused darshan f ' '
  done
  refused darshan random ' '
fi

# A disk that is full in the middle of writing: the shell's limit on the size of files acts as one.
echo before >out.csv
(trap '' XFSZ; ulimit -f 16; "$SLUICE" trace generate checkpoint -o out.csv 2>err)
[ $? = 125 ] || fail "a full disk: status $?, $(cat err)"
grep -q '^sluice: out.csv: cannot be written: ' err || fail "a full disk: $(cat err)"
[ "$(cat out.csv)" = before ] || fail 'a full disk: half a file'
[ -z "$(ls -- out.csv.* 2>/dev/null)" ] || fail "a full disk: left behind $(ls)"
"$SLUICE" trace generate checkpoint -o /dev/full 2>err
[ $? = 125 ] || fail 'the device that is always full'

# The command line.
trace convert random 2>err && fail 'a file of no format'
grep -q 'random:1: of no known format' err || fail "$(cat err)"
for wrong in '--from=tar f' '--jobs-by=user f' '--interval=5 f' '--below=here f' 'missing' '.' \
  '-o /nowhere/x.csv f' '-o . f' '--iolog f'; do
  printf '%s0,1,2\n' "$head" | cut -d, -f1,2 >f
  # shellcheck disable=SC2086
  trace convert $wrong 2>err >out
  [ $? = 2 ] && [ -s err ] && [ ! -s out ] || fail "convert $wrong: $(cat err out)"
done
trace generate no-such 2>err && fail 'an unknown preset'
grep -q 'there are: abci-like ai-training checkpoint' err || fail "$(cat err)"
for wrong in --mean=5 --mean=10/s\ --peak=5/s --mix=open --mix=read=5 --mix=opne=1 --bytes=open=5 \
  --jobs=0 --shares=1,2 --length=1y --length=1s --seed=x --noise=3 --regular=maybe --burst=1h; do
  # shellcheck disable=SC2086
  trace generate $wrong -o new.csv 2>err
  [ $? = 2 ] || [ "$wrong" = --mean=5 ] || fail "generate $wrong was accepted: $(cat err)"
done
[ -z "$(ls -- *.csv.* 2>/dev/null)" ] || fail "left behind: $(ls)"
