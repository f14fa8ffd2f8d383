#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Under a limit of file sizes (RLIMIT_FSIZE) a daemon lives on, as where the file system is full: a
# job that it has no room for runs without it, is told so, and all is well when the limit is gone.
set -u
. test/lib/node.bash
need prlimit
policy 5k/s
mkdir "$SCRATCH/state"
: >"$SCRATCH/log"
start_node --state-dir "$SCRATCH/state" 2> >(cat >>"$SCRATCH/log") # a pipe has no size
prlimit --pid "$NODE" --fsize=4096:unlimited || fail 'prlimit'
words() { cat "$SCRATCH/out" "$SCRATCH/log"; }
$S run --job small --no-summary -- echo ran >"$SCRATCH/out" 2>&1 || fail "run: $(words)"
grep -q '^ran$' "$SCRATCH/out" || fail "the program did not run: $(words)"
grep -q 'File too large' "$SCRATCH/out" || fail "nobody says why: $(words)"
$S policy get >/dev/null || fail "the daemon is gone: $(words)"

prlimit --pid "$NODE" --fsize=unlimited || fail 'prlimit'
$S run --job work --no-summary -- sleep 600 >"$SCRATCH/out" 2>&1 &
job=$!
trap 'kill "$job" 2>/dev/null; end_node' EXIT
until_true is "['work']" "[j['job'] for j in d]" || fail "no job: $(words)"
