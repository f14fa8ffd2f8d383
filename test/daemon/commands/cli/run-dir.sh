#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The run directory: private, refused when it is not, and empty when all is over.
set -u
. test/lib/lib.sh
umask 000
"$SLUICE" --run-dir "$SCRATCH/run" run -- \
  sh -c "cd $SCRATCH && stat -c '%a %n' run run/jobs/* run/jobs/*/segment" \
  >"$SCRATCH/modes" || fail "run"
[ "$(cut -d' ' -f1 "$SCRATCH/modes" | tr '\n' ' ')" = '700 700 600 ' ] ||
  fail "modes: $(cat "$SCRATCH/modes")"
"$SLUICE" --run-dir "$SCRATCH/run" run --report "$SCRATCH/r" -- true
[ -z "$(ls -A "$SCRATCH/run/jobs")" ] || fail "left behind: $(ls -A "$SCRATCH/run/jobs")"
"$SLUICE" --run-dir "$SCRATCH/run" run -- sh -c 'exit 1'
"$SLUICE" --run-dir "$SCRATCH/run" run --report "$SCRATCH/r" -- true
[ -z "$(ls -A "$SCRATCH/run/jobs")" ] || fail "an ended job was not cleared away"
mkdir -m 777 "$SCRATCH/open"
mkdir -m 700 "$SCRATCH/with blank"
for dir in "$SCRATCH/open" "$SCRATCH/with blank"; do
  "$SLUICE" --run-dir "$dir" run -- true 2>/dev/null
  [ $? = 125 ] || fail "$dir was accepted"
done
# Who may rename what is above it may put another directory in its place.
mkdir -m 777 "$SCRATCH/above" "$SCRATCH/above/between"
chmod 755 "$SCRATCH/above/between"
"$SLUICE" --run-dir "$SCRATCH/above/between/run" run -- true 2>"$SCRATCH/why"
[ $? = 125 ] || fail "a directory below one that all may write was accepted"
grep -q "below $SCRATCH/above, which can be written by others" "$SCRATCH/why" ||
  fail "the reason: $(cat "$SCRATCH/why")"
chmod 1777 "$SCRATCH/above"
"$SLUICE" --run-dir "$SCRATCH/above/between/run" run -- true || fail "below a sticky directory"
if [ "$(id -u)" = 0 ] && chown 12345 "$SCRATCH/above" 2>/dev/null; then
  "$SLUICE" --run-dir "$SCRATCH/above/between/run" run -- true 2>"$SCRATCH/why"
  [ $? = 125 ] || fail "a directory below another user's was accepted"
  grep -q 'belongs to uid 12345' "$SCRATCH/why" || fail "the reason: $(cat "$SCRATCH/why")"
fi
mkdir -m 700 "$SCRATCH/xdg"
XDG_RUNTIME_DIR="$SCRATCH/xdg" "$SLUICE" run -- true || fail "XDG_RUNTIME_DIR"
[ -d "$SCRATCH/xdg/sluice/jobs" ] || fail "the default run directory is elsewhere"
