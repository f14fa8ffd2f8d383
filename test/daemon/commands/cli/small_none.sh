#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where nothing came of small I/O, the summary and the report say why, as far as it is known.
set -u
. test/lib/lib.sh
need python3
mkdir "$SCRATCH/late"
echo "{\"targets\": {\"late\": {\"path\": \"$SCRATCH/late\", \"small\": \"close-to-open\"}}}" \
  >"$SCRATCH/p.json"
# Its bytes lie in the heap, and it reads nothing but its own code.
export PYTHONMALLOC=malloc PYTHONDONTWRITEBYTECODE=1
run() {
  "$SLUICE" --run-dir "$SCRATCH/run" --no-daemon run -q --policy "$SCRATCH/p.json" --small hints \
    --small "reads@$SCRATCH/late" --summary --report "$SCRATCH/r.json" -- "$@" 2>"$SCRATCH/said" ||
    fail "status $?: $(cat "$SCRATCH/said")"
}
# does PYTHON WHY: f is a file of its own.
does() {
  run python3 -c "import os; f = os.open('$SCRATCH/late/f', os.O_RDWR | os.O_CREAT); $1"
  says gathered "$2"
}
says() { # KEY WHY
  local text=${2//\(/\\(}
  grep -qE "^  $1: [a-z ]+: ${text//\)/\\)}" "$SCRATCH/said" || fail "$2: $(cat "$SCRATCH/said")"
  json "$SCRATCH/r.json" "d['$1']['why_none']" | grep -qF "$2" || fail "as JSON: $2"
}
does 'pass' 'nothing was seen to be written'
says hints 'no small overwrites or strided reads were seen'
says buffered 'nothing was seen to be read'
does '[os.pwrite(f, b"x", 0) for i in range(50)]' 'all was written by other calls than write(2)'
does '[os.write(f, bytes(65536)) for i in range(50)]' 'no write was small enough (16 KiB at most)'
does '[os.write(f, bytes(20000)) for i in range(50)]' \
  'no write was below 16 KiB, and few or none had just that'
does '[os.write(f, b"x") for i in range(5)]' 'only 5 were made: it begins after 32 small ones'
does '[os.write(f, b"x") or os.lseek(f, 0, 0) for i in range(20)]; [os.write(f, bytes(20000)) and
  os.write(f, b"x") for i in range(20)]' 'none had the habit: it begins after 32 small ones'
"$SLUICE" report "$SCRATCH/r.json" >"$SCRATCH/out" || fail report
tr -s ' \n' ' ' <"$SCRATCH/out" |
  grep -qF 'No small writes were gathered, though it was asked for: none had the habit' ||
  fail "report: $(cat "$SCRATCH/out")"

# Where none waited, as it ended just when they were to wait, nothing is lost.
does '[os.write(f, b"x") for i in range(32)]' 'none had the habit: it begins after 32 small ones'

# A program that is killed has counted nothing. What waited in its own memory is lost.
cat >"$SCRATCH/killed.py" <<'P'
import os, signal, sys
f = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
for i in range(40): os.write(f, b"12345678")
os.kill(os.getpid(), signal.SIGKILL)
P
# On a machine that stands still for a second in between, some was written.
all_is_lost() {
  rm -f "$SCRATCH/late/f"
  run sh -c "python3 '$SCRATCH/killed.py' '$SCRATCH/late/f'; :"
  [ "$(stat -c %s "$SCRATCH/late/f")" -lt $((33 * 8)) ]
}
until_true 60 all_is_lost || fail "all was written: $(cat "$SCRATCH/said")"
says gathered 'what waited was lost, as the program was killed'

# What the shell opened, it shares.
run sh -c "python3 -c 'import os; [os.write(1, b\"x\") for i in range(100)]' >'$SCRATCH/late/g'"
says gathered '1 look: others may share the file'

# A soft limit of files is told by its name.
(ulimit -Sf 12000 && does '[os.write(f, b"x") for i in range(99)]' '1 look: it is no plain file') ||
  exit 1
grep -qF 'files are limited (ulimit -f)' "$SCRATCH/said" || fail "$(cat "$SCRATCH/said")"

# Where something came of it, there is no reason.
run python3 -c "import os; f = os.open('$SCRATCH/late/f', os.O_RDWR | os.O_CREAT)
piece = bytes(10)
for i in range(500): os.write(f, piece)"
[ "$(json "$SCRATCH/r.json" "d['gathered']['writes'] > 0, d['gathered'].get('why_none')")" = \
  '(True, None)' ] || fail "gathered: $(cat "$SCRATCH/said")"
grep -qE '^  gathered: [1-9][0-9]* small writes, ' "$SCRATCH/said" || fail "$(cat "$SCRATCH/said")"
grep -q 'ended' "$SCRATCH/said" && fail "it did not end: $(cat "$SCRATCH/said")"

# Where it came to little, each reason why it ended is told.
run python3 -c "import os; f = os.open('$SCRATCH/late/f', os.O_RDWR | os.O_CREAT)
for i in range(3000):
  os.write(f, b'x')
  if i % 40 == 39: os.lseek(f, 0, 0)"
grep -qE '; ended ([0-9]+ times|once), as too few came between the calls that needed them written' \
  "$SCRATCH/said" || fail "it ended: $(cat "$SCRATCH/said")"
[ "$(json "$SCRATCH/r.json" "d['gathered']['ended_asked']")" -gt 0 ] || fail 'ended, as JSON'
