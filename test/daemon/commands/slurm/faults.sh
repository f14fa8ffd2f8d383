#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# starves
# Each part is killed in turn while a job runs on two nodes: it ends as it would have, and after
# recovery `sluice jobs` says what squeue says. Jobs also begin while sluiced is dead or hangs.
# A job ends when it is told to: what a slurmctld that is away is told of an end, it hears late.
# timeout: 300
set -u
. test/daemon/commands/slurm/site.bash
need python3
site

cat >/mnt/home/ann/work.sh <<'JOB'
#!/bin/bash
srun sh -c 'for i in $(seq 25); do
  f=/mnt/scratch/$SLURM_JOB_ID.$SLURMD_NODENAME.$i
  echo $i >$f && stat $f >/dev/null && cat $f && rm $f
  sleep 0.1
done
until [ -e '"$1"' ]; do sleep 0.1; done' | sort -n | md5sum
JOB
may_end() { echo "/mnt/home/ann/may-end.$1"; }
submit() {
  as ann sbatch --parsable -N2 -w n0,n1 --io-class=silver -o "out.$1" work.sh "$(may_end "$1")"
}
wanted() { for n in 1 2; do seq 25; done | sort -n | md5sum; }
running() { [ "$(squeue -h -j "$1" -o %T)" = RUNNING ]; }
is_right() {
  touch "$(may_end "$2")"
  wait_job "$1" || fail "$2: the job does not end"
  has "$(cat "/mnt/home/ann/out.$2")" "$(wanted)" "$2: the job's output"
}
calm() {
  until_true same_jobs || fail "$1: jobs \"$(sluice_jobs)\", squeue \"$(slurm_jobs)\""
  all_idle() { [ "$(sinfo -h -N -o %T | sort -u)" = idle ]; }
  until_true all_idle || fail "$1: nodes $(sinfo -h -N -o '%N=%T' | tr '\n' ' ')"
}
# What it has not written yet when it is killed, slurmctld does not know afterwards; it writes some
# seconds after a change.
save_state() {
  touch "$SCRATCH/now"
  scontrol update "JobId=$1" Comment=changed || fail "scontrol update $1"
  is_saved() { [ "$SLUICE_SITE/state/job_state" -nt "$SCRATCH/now" ]; }
  until_true is_saved || fail 'slurmctld saves nothing'
}

for part in 'sluiced n1' cluster 'slurmd n1' slurmctld mds; do
  id=$(submit "${part// /-}") || fail "$part: sbatch"
  until_true running "$id" || fail "$part: job $id does not start"
  sleep 0.5
  [ "$part" != slurmctld ] || save_state "$id"
  "$sandbox" kill $part || fail "kill $part"
  sleep 1
  "$sandbox" start $part || fail "start $part"
  [ "$part" = mds ] || until_true same_jobs ||
    fail "$part, back: jobs \"$(sluice_jobs)\", squeue \"$(slurm_jobs)\""
  is_right "$id" "${part// /-}"
  calm "$part"
done

# ---- a job that begins while nobody is there ----
for n in n0 n1; do "$sandbox" kill sluiced $n; done
id=$(submit dead) || fail 'sbatch without sluiced'
until_true running "$id" || fail 'without sluiced no job starts'
for n in n0 n1; do "$sandbox" start sluiced $n; done
until_true same_jobs || fail "announced to the dead: jobs \"$(sluice_jobs)\", $(slurm_jobs)"
is_right "$id" dead
calm dead

# ---- one that ends while nobody is there, and one while it hangs ----
id=$(submit ends) || fail 'sbatch'
until_true running "$id" || fail 'ends: does not start'
for n in n0 n1; do "$sandbox" kill sluiced $n; done
is_right "$id" ends
for n in n0 n1; do "$sandbox" start sluiced $n; done
calm ends
for n in n0 n1; do "$sandbox" kill sluiced $n STOP; done
id=$(submit hangs) || fail 'sbatch'
is_right "$id" hangs
for n in n0 n1; do "$sandbox" kill sluiced $n CONT; done
calm hangs
