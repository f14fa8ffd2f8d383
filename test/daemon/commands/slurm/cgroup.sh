#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# starves
# Slurm with control groups (version 1): a process that left its step, and has no ancestor there,
# is in the job that its group names, whichever other job of its user it asks for.
# timeout: 120
set -u
. test/daemon/commands/slurm/site.bash
need python3
for controller in freezer cpuset memory devices; do
  [ -w /sys/fs/cgroup/$controller ] || skip "needs the control group $controller, of version 1"
done
site --fs plain --cgroup

cat >/mnt/home/bob/second.sh <<'JOB'
#!/bin/sh
while [ ! -e stop ]; do sleep 0.2; done
JOB
second=$(as bob sbatch --parsable -w n0 --io-class=silver -o /dev/null second.sh) || fail 'sbatch'
known() { at_cluster --json jobs | grep -q "\"job\": \"$1\""; }
until_true known "$second" || fail "the second job: $(at_cluster jobs)"

cat >/mnt/home/bob/first.sh <<JOB
#!/bin/bash
( setsid sh -c 'sleep 0.5; exec >left 2>&1; unset SLURM_JOB_ID; grep freezer /proc/self/cgroup
  echo parent=\$(sed "s/.*) . //; s/ .*//" /proc/\$\$/stat)
  echo comm=\$(cat /proc/\$(sed "s/.*) . //; s/ .*//" /proc/\$\$/stat)/comm)
  $SLUICE run --no-summary --job $second -- sh -c "echo preload=\\\$LD_PRELOAD"' & )
until grep -q preload= left; do sleep 0.2; done
JOB
first=$(as bob sbatch --parsable -w n0 --io-class=bronze -o first.out first.sh) || fail 'sbatch'
wait_job "$first" || fail 'the first job does not end'
out=$(cat /mnt/home/bob/left)
has "$out" "/slurm_n0/uid_20002/job_$first/" 'its control group'
has "$out" "preload=/run/sluice/jobs/20002@$first/" 'a process that left its step'

# ---- version 2: Slurm refuses hosts that have both, so its group is made here ----
unified=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
group=$unified/system.slice/slurmstepd.scope/job_7
if [ -n "$unified" ] && mkdir -p "$group/step_0" 2>/dev/null; then
  for id in 7 8; do
    "$sandbox" -n n1 exec "$SLUICE" hook prolog --job $id --uid 20002 --class bronze 2>/dev/null
  done
  cat >/mnt/home/inside.sh <<JOB
echo 0 >$group/step_0/cgroup.procs || exit
exec setpriv --reuid 20002 --regid 20002 --clear-groups \
  $SLUICE run --no-summary --job 8 -- sh -c 'echo preload=\$LD_PRELOAD'
JOB
  out=$("$sandbox" -n n1 exec sh /mnt/home/inside.sh)
  for id in 7 8; do
    "$sandbox" -n n1 exec "$SLUICE" hook epilog --job $id 2>/dev/null
  done
  rmdir "$group/step_0" "$group" "${group%/*}" "$unified/system.slice" 2>/dev/null
  has "$out" 'preload=/run/sluice/jobs/20002@7/' 'a group of version 2'
else
  echo 'without version 2: no group can be made'
fi

touch /mnt/home/bob/stop
wait_job "$second" || fail 'the second job does not end'
until_true same_jobs || fail "jobs: \"$(sluice_jobs)\", squeue: \"$(slurm_jobs)\""
[ "$(sinfo -h -N -o %T | sort -u)" = idle ] || fail "nodes: $(sinfo -h -N -o '%N %T')"
