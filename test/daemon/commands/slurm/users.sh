#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# starves
# Two users: a class that is not his is refused when he submits, nothing that he can write inside
# his job makes it another, and of another user's job he sees nothing and changes nothing.
# timeout: 150
set -u
. test/daemon/commands/slurm/site.bash
need python3
site --fs plain

# ---- the right to a class ----
for cmd in 'srun' 'salloc' 'sbatch --wrap'; do
  out=$(as bob $cmd --io-class=gold true 2>&1) && fail "$cmd: bob has gold"
done
out=$(as bob srun --io-class=gold true 2>&1)
has "$out" 'user bob may not use the class "gold" (but: silver, bronze, scavenger)' 'refused'
out=$(as bob sluice submit --class gold --wrap true 2>&1) && fail 'submit: bob has gold'
has "$out" 'may not use' 'submit'
as ann srun --io-class=gold true || fail 'ann may not use gold'

# ---- ann's job, for bob to look at ----
cat >/mnt/home/ann/wait.sh <<'JOB'
#!/bin/sh
while [ ! -e stop ]; do stat /mnt/scratch >/dev/null; sleep 0.2; done
JOB
hers=$(as ann sbatch --parsable -w n0 --io-class=gold -o /dev/null wait.sh) || fail 'sbatch'
in_class() { at_cluster --json jobs | python3 -c 'import json, sys
sys.exit([j["class"] for j in json.load(sys.stdin)
          if j["job"] == sys.argv[1] and j["nodes"]] != [sys.argv[2]])' "$@"; }
until_true in_class "$hers" gold || fail "ann's job: $(at_cluster jobs)"

# ---- on the login node: each sees his own, wherever it runs ----
has "$(as ann sluice jobs)" "$hers" "ann's jobs on the login node"
lacks "$(as bob sluice jobs 2>&1)" "$hers" "bob's jobs on the login node"
has "$(as ann sluice explain --job "$hers")" 'class gold' 'explain on the login node'
for verb in "explain --job $hers" "report --job $hers" "set $hers metadata=1/s" "pause $hers" \
  "set $hers class=bronze" "stat ann@$hers"; do
  out=$(as bob sluice $verb 2>&1) && fail "bob, on the login node: $verb"
  grep -qE 'no (such )?job' <<<"$out" || fail "bob, on the login node: $verb: $out"
done
as ann sluice set "$hers" metadata=100/s >/dev/null || fail 'ann cannot lower her job'
out=$(as ann sluice set "$hers" class=bronze 2>&1) && fail 'ann changes her class'
has "$out" 'only an operator' 'the class on the login node'
as ann sluice pause "$hers" >/dev/null || fail 'ann cannot pause her job'
has "$(at_cluster jobs)" paused 'paused from the login node'
as ann sluice resume "$hers" >/dev/null || fail 'ann cannot resume her job'
is_reported() { as ann sluice report --job "$hers" --last 60s | grep -q 'metadata@scratch'; }
until_true is_reported || fail "report on the login node: $(as ann sluice report --job "$hers")"

# ---- bob, inside his own job on the same node ----
cat >/mnt/home/bob/forge.sh <<JOB
#!/bin/bash
echo "mine=\$SLURM_JOB_ID"
own=\$SLURM_JOB_ID
say() { echo "\$1: \$(shift; "\$@" 2>&1)"; }
say run-gold env SLUICE_CLASS=gold $SLUICE run --class gold -- echo RAN
say run-hers env SLURM_JOB_ID=$hers SLUICE_JOB_ID=$hers $SLUICE run --no-summary --job $hers \
  -- sh -c 'echo preload=\$LD_PRELOAD'
say left-behind setsid $SLUICE run --no-summary --job new -- sh -c 'echo preload=\$LD_PRELOAD'
say hers LD_PRELOAD=/run/sluice/jobs/20001@$hers/libinterpose.so \
  python3 -c 'print(open("/proc/self/maps").read().count("20001@"))'
for verb in "stat $hers" "explain --job $hers" "set $hers metadata=1/s" "pause $hers" \
  "set $hers class=bronze" "stat ann@$hers"; do
  say "\$verb" $SLUICE \$verb
done
say own-class $SLUICE set \$own class=gold
say jobs $SLUICE jobs
say register $SLUICE hook prolog --job 999 --uid 20002 --class gold
python3 - <<'P'
import json, socket
for verb in ("register", "release", "step"):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect("/run/sluice/sluiced.sock")
    s.send(json.dumps({"verb": verb, "job": "$hers", "uid": 20002}).encode())
    print(verb + ":", json.loads(s.recv(65536)).get("error"))
P
JOB
out=$(as bob sbatch --parsable -W -w n0 --io-class=bronze -o forged forge.sh) || fail "bob: $out"
mine=${out%%;*}
out=$(cat /mnt/home/bob/forged)
has "$out" "run-gold: sluice: this is job $mine, which is in class \"bronze\"" 'a class from inside'
has "$out" "run-hers: preload=/run/sluice/jobs/20002@$mine/" 'the name of her job'
has "$out" "left-behind: preload=/run/sluice/jobs/20002@$mine/" 'a process that left'
lacks "$out" RAN 'what was refused'
[ "$(grep -c "no job" <<<"$out")" -ge 6 ] || fail "her job can be seen: $out"
has "$out" 'own-class: sluice: only an operator' 'his own class'
lacks "$(grep '^jobs:' -A9 <<<"$out")" 'ann' 'jobs'
[ "$(grep -cE 'only an operator may ask for .(register|release|step)' <<<"$out")" = 3 ] ||
  fail "verbs of root: $out"
in_class "$hers" gold || fail "ann's job was changed: $(at_cluster jobs)"

# ---- a class that came past the check of the submit host ----
"$sandbox" -n n0 exec "$SLUICE" hook prolog --job 777 --uid 20002 --class gold 2>"$SCRATCH/err"
has "$(cat "$SCRATCH/err")" 'may not use' 'a forged announcement'
gold() { "$sandbox" -n n0 exec "$SLUICE" --json jobs |
  grep -A4 '"job": "777"' | grep -q '"class": "gold"'; }
gold && fail 'bob has gold'
"$sandbox" -n n0 exec "$SLUICE" hook epilog --job 777 2>/dev/null

touch /mnt/home/ann/stop
wait_job "$hers" || fail "ann's job does not end"
until_true same_jobs || fail "jobs: \"$(sluice_jobs)\", squeue: \"$(slurm_jobs)\""
