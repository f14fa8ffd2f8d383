#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# starves
# timeout: 300
# Unmodified programs with small I/O in each mode: what is installed comes to its end with the same
# bytes as natively, and its report is told. A file that differs ends it with 1. Speeds are for the
# long form.
set -u
. test/lib/lib.sh
need python3 perl dd
experiment=$top/scripts/experiments/small-io
"$experiment" --help | grep -q -- --quick || fail help
mkdir "$SCRATCH/called-here" "$SCRATCH/tmp"
quick() { # what it prints goes to $SCRATCH/out
  (cd "$SCRATCH/called-here" && TMPDIR=$SCRATCH/tmp "$experiment" --quick "$@") \
    >"$SCRATCH/out" 2>"$SCRATCH/err"
}
is() { # EXPRESSION of the result
  [ "$(json "$SCRATCH/out" "$1")" = True ] || fail "not so: $1; $(head -c 2000 "$SCRATCH/out")"
}

quick --json --on tmpfs || fail "status $?: $(tail -n 5 "$SCRATCH/err")"
is 'all(r["same_bytes"] and not r["differ"] for r in d["rows"])'
is 'all(r["s"] > 0 and r["native_s"] > 0 and r["ratio"] > 0 for r in d["rows"])'
is 'all(len(r["rounds_s"]) == d["rounds"] == 1 for r in d["rows"])'
is 'all(("saved" in r and "refused" in r) == (r["mode"] != "native") for r in d["rows"])'
is '{r["mode"] for r in d["rows"]} == {
    "native", "metering", "strict", "close-to-open", "reads", "hints"}'
is 'all(r["saved"] == 0 for r in d["rows"] if r["mode"] in ("metering", "hints"))'
is 'all(r["saved"] > 1000 for r in d["rows"] if r["mode"] == "close-to-open" and
        r["program"] in ("dd-write", "python-unbuffered", "perl-logger"))'
is 'all(r["calls"] > 1000 for r in d["rows"] if r["mode"] == "metering" and
        r["program"] in ("dd-write", "python-unbuffered", "perl-logger"))'
is 'all("scripts/deps --install" in how for how in d["lacks"].values())'
is 'all(r["file_system"] == "tmpfs" for r in d["rows"])'
json "$SCRATCH/out" '["left out:", *d["lacks"]]'
cp "$SCRATCH/out" "$SCRATCH/all.json"
quick --from "$SCRATCH/all.json" --markdown && grep -q '^| dd-copy | ' "$SCRATCH/out" ||
  fail "no row of what is there: $(cat "$SCRATCH/out")"

quick --json --on ext4 --only dd-copy,dd-overwrite
status=$?
[ $status = 0 ] || [ $status = 77 ] || fail "ext4: status $status: $(tail -n 5 "$SCRATCH/err")"
[ $status = 77 ] || is 'len(d["rows"]) == 8 and all(r["same_bytes"] for r in d["rows"])'

quick --only dd-write --modes strict --at "$SCRATCH" --markdown ||
  fail "--at: $(cat "$SCRATCH/err")"
grep -q '^| dd-write | [0-9.]* | [0-9.]* | [0-9.]*.*|$' "$SCRATCH/out" ||
  fail "no row: $(cat "$SCRATCH/out")"

# A program whose files differ from run to run, and one that fails.
mkdir "$SCRATCH/bin"
printf '#!/bin/sh\necho $$ >out\n' >"$SCRATCH/bin/perl"
chmod +x "$SCRATCH/bin/perl"
PATH=$SCRATCH/bin:$PATH quick --only perl-logger --modes strict --at "$SCRATCH"
[ $? = 1 ] && grep -q '^DIFFERS: perl-logger on there, strict: out$' "$SCRATCH/err" ||
  fail "it does not say what differs: $(cat "$SCRATCH/err")"
printf '#!/bin/sh\nexit 3\n' >"$SCRATCH/bin/perl"
PATH=$SCRATCH/bin:$PATH quick --only perl-logger --at "$SCRATCH"
[ $? = 1 ] && grep -q 'perl-logger, native: status 3' "$SCRATCH/err" ||
  fail "it does not say what fails: $(cat "$SCRATCH/err")"
rm -r "$SCRATCH/bin"

for dir in called-here tmp; do
  [ -z "$(ls -A "$SCRATCH/$dir")" ] || fail "left in $dir: $(ls -A "$SCRATCH/$dir")"
done
left=$(find "$SCRATCH" -mindepth 1 -maxdepth 1 -name 'sluice-*')
[ -z "$left" ] || fail "it left $left"
exit 0
