#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Bad input: every mistake ends with status 2 and a message that names it; nothing is run.
set -u
. test/lib/lib.sh
S="$SLUICE --run-dir $SCRATCH/run"
refused() { # TEXT ARGS...
  local text=$1
  shift
  $S "$@" >"$SCRATCH/out" 2>"$SCRATCH/err"
  local got=$?
  [ $got = 2 ] || fail "$*: status $got"
  grep -qF -- "$text" "$SCRATCH/err" || fail "$*: says $(cat "$SCRATCH/err"), wanted $text"
  [ ! -e "$SCRATCH/ran" ] || fail "$*: the program was run"
}
ran="touch $SCRATCH/ran"
refused 'subcommand is required'
refused 'there is no verb "nonsense"' nonsense
refused 'did you mean "jobs"?' jbos
refused 'did you mean "submit"?' --json sumbit --class x
refused '--limt' run --limt open=1/s -- $ran
refused 'nothing to run' run --limit open=1/s
refused 'did you mean "open"?' run --limit opne=1/s -- $ran
refused 'wanted SELECTOR[:ROLE]=AMOUNT' run --limit open -- $ran
refused 'the target comes last: --limit data=5MiB/s@/tmp' run --limit data@/tmp=5MiB/s -- $ran
refused 'the target comes first: data@scratch=5MiB/s' set nobody data=5MiB/s@scratch
refused 'expected s, min or h' run --limit open=5/day -- $ran
refused 'a limit in bytes is for data' run --limit open=5MB/s -- $ran
refused 'No such file' run --limit open=5/s@/no/such/tree -- $ran
refused 'is not a directory' run --limit open=5/s@/etc/passwd -- $ran
refused 'already has a limit' run --limit open=5/s --limit open=6/s -- $ran
refused '--class x: --no-daemon keeps from asking one; --policy FILE would' \
  run --no-daemon --class x -- $ran
refused '--class x: with --order-journal a job does without the daemon' \
  run --class x --order durable@$SCRATCH --order-journal $SCRATCH/log -- $ran
refused '--class x: of a call and a path no daemon is asked' explain --class x open /tmp
refused 'No such file' run --policy /no/such/policy -- $ran
refused 'job name' run --job ../x -- $ran
refused 'no job nobody' stat nobody
refused 'no job nobody' pause nobody
refused 'no call "opne"' explain opne /tmp
refused 'there is no process' explain 4194999
for word in nan inf -1 0x1 1e999; do
  refused "-i: \"$word\" is no number from 0.1 to 86400" stat -i "$word" nobody
  refused "-i: \"$word\" is no number from 0.1 to 86400" top --batch -i "$word"
  refused "-i: \"$word\" is no number from 0.1 to 86400" order -i "$word"
  refused "-n: \"$word\" is no number from 0 to" top --batch -n "$word"
  refused 'wanted a part of the time' calibrate /tmp -o $SCRATCH/c.json --budget "$word%"
  refused "\"$word\" is not a version number" policy diff "$word"
  refused '--paths: ' run --paths="$word" -- $ran
done
cat >"$SCRATCH/p.json" <<'P'
{
  "channels": [
    {"name": "a",
     "limt": "5/s"}
  ]
}
P
refused 'p.json:4:6: unknown key "limt" in channels[0]; did you mean "limit"?' \
  policy check "$SCRATCH/p.json"
# What is no policy at all is told as what it is.
: >"$SCRATCH/empty.json"
mkfifo "$SCRATCH/fifo"
refused "$SCRATCH: it is a directory" policy check "$SCRATCH"
refused "empty.json: it is empty" policy check "$SCRATCH/empty.json"
refused "fifo: it is a FIFO to which nobody wrote" policy check "$SCRATCH/fifo"
refused "none.json: No such file" policy check "$SCRATCH/none.json"
refused 'larger than 1 MiB' policy check /dev/zero
if [ "$(id -u)" != 0 ]; then
  chmod 0 "$SCRATCH/empty.json"
  refused 'empty.json: Permission denied' policy check "$SCRATCH/empty.json"
fi
echo '{"classes": {"gold": {}, "bronze": {}}}' >"$SCRATCH/two.json"
refused '(it has: gold, bronze)' run --policy "$SCRATCH/two.json" --class silver -- $ran
refused 'unknown key "limt"' run --policy "$SCRATCH/p.json" -- $ran
$S --help | grep -q 'run a program with limits' || fail "--help"
$S run --help | grep -q -- '--limit' || fail "run --help"

# The help that is named is the verb's, and what cannot be printed is told.
refused '(see sluice pause --help)' pause
refused '(see sluice doctor --help)' doctor
for words in --help 'run --help' 'doctor /bin/true'; do
  $S $words >/dev/full 2>"$SCRATCH/err"
  [ $? = 125 ] && grep -q 'standard output cannot be written: No space' "$SCRATCH/err" ||
    fail "$words: $(cat "$SCRATCH/err")"
done
