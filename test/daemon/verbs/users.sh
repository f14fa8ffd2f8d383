#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# root's daemon serves another user, who may use some classes, change only own jobs and only
# downwards, and sees nothing of the others' jobs.
set -u
. test/lib/lib.sh
[ "$(id -u)" = 0 ] || skip "needs root"
need setpriv
. test/lib/node.bash
jobs=
trap 'kill $jobs 2>/dev/null; [ -z "$NODE" ] || kill -9 $NODE; rm -rf "$SCRATCH"' EXIT
chmod 755 "$SCRATCH"
mkdir "$SCRATCH/tree" "$SCRATCH/home"
echo x >"$SCRATCH/tree/f"
chown 65534 "$SCRATCH/home"
# As nobody, with a home of its own.
as_other=(setpriv --reuid=65534 --regid=65534 --clear-groups
  env HOME="$SCRATCH/home" XDG_RUNTIME_DIR=)
other() { "${as_other[@]}" "$@"; }
other test -r "$SLUICE_LIB" || skip "the build is not readable for others"
cat >"$SCRATCH/policy.json" <<P
{"targets": {"scratch": {"path": "$SCRATCH/tree", "capacity": {"metadata": "10k/s"}}},
 "classes": {"gold": {"scratch": {"metadata": {"weight": 4}}},
             "bronze": {"scratch": {"metadata": {"weight": 1, "limit": "100/s"}}}},
 "access": {"gold": {"users": ["root"]}}, "control": {"default_class": "bronze"}}
P
start_node
refused() { # WORDS...: status 2
  other $S "$@" >"$SCRATCH/out" 2>"$SCRATCH/err"
  local got=$?
  [ $got = 2 ] || fail "$*: status $got: $(cat "$SCRATCH/out" "$SCRATCH/err")"
}
$S run --job ours --class gold -- sleep 100 &
jobs=$!
"${as_other[@]}" $S run --job theirs -- sh -c "while :; do : <$SCRATCH/tree/f; done" &
jobs="$jobs $!"
until_true is True '{j["job"] for j in d} == {"ours", "theirs"}' || fail "jobs: $(field d)"
is "[('ours', 0, 'gold'), ('theirs', 65534, 'bronze')]" \
  'sorted((j["job"], j["uid"], j["class"]) for j in d)' || fail "jobs: $(field d)"

refused run --class gold -- true
grep -q 'sluice: .*gold' "$SCRATCH/err" || fail "refusal of gold: $(cat "$SCRATCH/err")"
refused pause ours
refused set ours metadata=5/s
refused explain --job ours
refused set theirs metadata=5k/s
refused set theirs class=gold
other $S --json jobs >"$SCRATCH/seen.json" || fail "jobs of the other"
[ "$(json "$SCRATCH/seen.json" '[j["job"] for j in d]')" = "['theirs']" ] ||
  fail "seen: $(cat "$SCRATCH/seen.json")"
other $S stat ours 2>/dev/null && fail "stat of another's job"
other cat "$RUN/jobs/ours/segment" >/dev/null 2>&1 && fail "another's segment can be read"
other ls "$RUN/jobs" >/dev/null 2>&1 && fail "the names of jobs can be listed"
other $S set theirs metadata=50/s >"$SCRATCH/out" || fail "an own job cannot be lowered"
other $S set theirs metadata=policy >/dev/null || fail "an own change cannot be withdrawn"
$S set nobody@theirs metadata=40/s >/dev/null || fail "an operator cannot set"
refused set theirs metadata=policy
grep -q 'only an operator' "$SCRATCH/err" || fail "set =policy: $(cat "$SCRATCH/err")"
other $S stat theirs >"$SCRATCH/out" || fail "stat of an own job"
grep -q 'metadata@scratch' "$SCRATCH/out" || fail "stat says: $(cat "$SCRATCH/out")"
other $S run --report "$SCRATCH/home/r.json" -- cat "$SCRATCH/tree/f" >/dev/null || fail "report"
channels=$(json "$SCRATCH/home/r.json" '[c["name"] for c in d["channels"]]')
[ "$channels" = "['metadata@scratch']" ] ||
  fail "report: $(cat "$SCRATCH/home/r.json")"
$S pause nobody@theirs >/dev/null || fail "an operator cannot pause"
$S stat nobody@theirs | grep -q ' process, .* running' || fail "an operator cannot look"

# Dead, its directory is not the other's to use: the program runs in a job of its own.
kill_node
other $S run -- sh -c 'echo $LD_PRELOAD; exit 9' >"$SCRATCH/out" 2>"$SCRATCH/err"
[ $? = 9 ] || fail "a dead daemon of root: $(cat "$SCRATCH/err")"
grep -q "^$SCRATCH/home/.cache/sluice/run/" "$SCRATCH/out" || fail "job in $(cat "$SCRATCH/out")"
