#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A user without a home: a run directory is found elsewhere, and where there is none the program
# runs all the same, as where that has no room, or no process is to be had. What lies there and is
# not ours is not taken.
set -u
. test/lib/lib.sh
[ "$(id -u)" = 0 ] || skip "needs root to be a user without a home"
need setpriv
own_mounts
mount -t tmpfs -o mode=1777 none /dev/shm && mount -t tmpfs -o mode=1777 none /run ||
  skip "needs mounts of its own"
mkdir -p "$SCRATCH/tmp" "$SCRATCH/files"
chmod 755 "$SCRATCH" && chmod 1777 "$SCRATCH/tmp" "$SCRATCH/files"
touch "$SCRATCH/files/a"
as=(setpriv --reuid=64001 --regid=64001 --clear-groups env -i PATH="$PATH" SLUICE_LIB="$SLUICE_LIB")

"${as[@]}" TMPDIR="$SCRATCH/tmp" HOME=/nonexistent "$SLUICE" run --limit metadata=1000/s \
  --report "$SCRATCH/files/r.json" -- cat "$SCRATCH/files/a" 2>"$SCRATCH/why" ||
  fail "no home: $(cat "$SCRATCH/why")"
[ "$(json "$SCRATCH/files/r.json" 'd["channels"][0]["calls"]')" -gt 0 ] || fail "not limited"
[ "$(stat -c '%a %u' "$SCRATCH/tmp/sluice-64001")" = '700 64001' ] || fail "not in \$TMPDIR"
[ ! -s "$SCRATCH/why" ] || fail "it said: $(cat "$SCRATCH/why")"

# Another user was there first: not taken, whatever it looks like.
rm -rf "$SCRATCH/tmp/sluice-64001"
mkdir -m 777 "$SCRATCH/tmp/sluice-64001" /dev/shm/sluice-64001
mkdir -m 700 "$SCRATCH/files/own" && chown 64001 "$SCRATCH/files/own"
rmdir /dev/shm/sluice-64001 && ln -s "$SCRATCH/files/own" /dev/shm/sluice-64001
"${as[@]}" TMPDIR="$SCRATCH/tmp" "$SLUICE" run --limit open=1/h -- cat "$SCRATCH/files/a" \
  2>"$SCRATCH/files/a.why" || fail "nowhere: the program did not run"
grep -q 'warning: the program runs without limits' "$SCRATCH/files/a.why" ||
  fail "it said: $(cat "$SCRATCH/files/a.why")"
[ -z "$(ls -A "$SCRATCH/files/own")$(ls -A "$SCRATCH/tmp/sluice-64001")" ] ||
  fail "a stranger's directory was used"

# A home that somebody filled, and a limit of the shell's: the program runs, and this is told.
mkdir "$SCRATCH/full" && mount -t tmpfs -o mode=1777,size=1M none "$SCRATCH/full"
runs_without() { # WHY HOME SCRIPT: begins with that, and is told.
  "${as[@]}" HOME="$2" sh -c "$3; exec \"\$@\"" - \
    "$SLUICE" run --limit open=1/h -- cat "$SCRATCH/files/a" 2>"$SCRATCH/files/b.why" ||
    fail "$1: the program did not run: $(cat "$SCRATCH/files/b.why")"
  grep -q "runs without limits: .*$1" "$SCRATCH/files/b.why" ||
    fail "$1: it said: $(cat "$SCRATCH/files/b.why")"
}
runs_without 'No space left' "$SCRATCH/full" :
runs_without 'File too large' "$SCRATCH/tmp" 'ulimit -f 100'

# No place for another process: the program runs in that of sluice, and this is told.
printf 'what it reads\n' >"$SCRATCH/files/a"
for wish in --small=strict --small=reads --paths "--report=$SCRATCH/files/none.json"; do
  "${as[@]}" HOME="$SCRATCH/tmp" bash -c 'ulimit -u 1; exec "$@"' - \
    "$SLUICE" run "$wish" -- cat "$SCRATCH/files/a" >"$SCRATCH/out" 2>"$SCRATCH/why" ||
    fail "$wish: status $?: $(cat "$SCRATCH/why")"
  cmp "$SCRATCH/files/a" "$SCRATCH/out" || fail "$wish: the program did not run"
  [ "$(grep -c 'warning: fork: .*: the program runs without all that' "$SCRATCH/why")" = 1 ] ||
    fail "$wish: it said: $(cat "$SCRATCH/why")"
done

# A running job is found again.
rm /dev/shm/sluice-64001
"${as[@]}" "$SLUICE" run --job hydro -- sh -c ": >'$SCRATCH/files/on'; exec sleep 100" &
job=$!
until [ -e "$SCRATCH/files/on" ]; do
  kill -0 "$job" || fail "the job did not start"
  sleep 0.05
done
"${as[@]}" "$SLUICE" jobs | grep -q hydro || fail "not found: $("${as[@]}" "$SLUICE" jobs 2>&1)"
kill "$job"
exit 0
