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
  grep -qE "^  $1: [a-z ]+: ${2//(2)/\\(2\\)}" "$SCRATCH/said" || fail "$2: $(cat "$SCRATCH/said")"
  json "$SCRATCH/r.json" "d['$1']['why_none']" | grep -qF "$2" || fail "as JSON: $2"
}
does 'pass' 'nothing was seen to be written'
says hints 'no file on a disk or server was seen to be overwritten'
says buffered 'nothing was seen to be read'
does '[os.pwrite(f, b"x", 0) for i in range(50)]' 'all was written by other calls than write(2)'
does '[os.write(f, bytes(65536)) for i in range(50)]' 'no write was small enough, at most 16 KiB'
does '[os.write(f, b"x") for i in range(5)]' 'only 5 were made: it begins after 32 small ones'
does '[os.write(f, b"x") or os.lseek(f, 0, 0) for i in range(20)]; [os.write(f, bytes(20000)) and
  os.write(f, b"x") for i in range(20)]' 'none had the habit: it begins after 32 small ones'
"$SLUICE" report "$SCRATCH/r.json" >"$SCRATCH/out" || fail report
tr -s ' \n' ' ' <"$SCRATCH/out" |
  grep -qF 'No small writes were gathered, though it was asked for: none had the habit' ||
  fail "report: $(cat "$SCRATCH/out")"

# What the shell opened, it shares.
run sh -c "python3 -c 'import os; [os.write(1, b\"x\") for i in range(100)]' >'$SCRATCH/late/g'"
says gathered 'once others may share the file'

# Where something came of it, there is no reason.
run python3 -c "import os; f = os.open('$SCRATCH/late/f', os.O_RDWR | os.O_CREAT)
piece = bytes(10)
for i in range(500): os.write(f, piece)"
[ "$(json "$SCRATCH/r.json" "d['gathered']['writes'] > 0, d['gathered'].get('why_none')")" = \
  '(True, None)' ] || fail "gathered: $(cat "$SCRATCH/said")"
grep -qE '^  gathered: [1-9][0-9]* small writes, ' "$SCRATCH/said" || fail "$(cat "$SCRATCH/said")"
