#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# starves
# Without the plugin: Prolog, Epilog and TaskProlog call `sluice hook`, and `sluice submit` brings
# the class through whatever is exported. A user chooses once, among what is his.
# timeout: 120
set -u
. test/daemon/commands/slurm/site.bash
need python3
site --fs plain --no-plugin

cat >/mnt/home/bob/job.sh <<'JOB'
#!/bin/bash
echo "preload=$LD_PRELOAD"
/usr/bin/srun /bin/sh -c 'echo "step=$LD_PRELOAD"'
/bin/stat /mnt/scratch >/dev/null
JOB
sed 's/^echo .*/#SBATCH --export=NONE\n&/' /mnt/home/bob/job.sh >/mnt/home/bob/none.sh
sed '3a /bin/sleep 1' /mnt/home/bob/job.sh >/mnt/home/bob/long.sh
row() { # NAME WORD… : what the batch step is preloaded with
  local name=$1 id
  shift
  id=$(as bob sluice submit "$@") || fail "$name: submit"
  id=${id##* }
  wait_job "$id" || fail "$name: does not end"
  out=$(cat "/mnt/home/bob/out.$id")
}
for export in ALL NONE FOO=1; do
  row "$export" --class silver --export=$export -o out.%j job.sh
  has "$out" 'preload=/run/sluice/jobs/20002@' "--export=$export"
done
row script --class silver -o out.%j none.sh
has "$out" 'preload=/run/sluice/jobs/20002@' '#SBATCH --export=NONE'
[ "$(as bob sluice submit --class silver --dry-run --export NONE job.sh)" = \
  'sbatch --export SLUICE_CLASS=silver job.sh' ] || fail '--dry-run'

out=$(as bob sluice submit --class gold job.sh 2>&1) && fail 'bob submits gold'
has "$out" 'may not use' 'a class that is not his'
out=$(cd /mnt/home/bob && SLUICE_CLASS=gold as bob srun /bin/sh -c 'echo "step=$LD_PRELOAD"' 2>&1)
has "$out" 'may not use' 'a class that is not his, past the check'
lacks "$out" 'libinterpose' 'a class that is not his, past the check'
out=$(as bob srun /bin/sh -c 'echo "step=$LD_PRELOAD"' 2>&1)
lacks "$out" 'libinterpose' 'no class'

row long --class bronze -o out.%j long.sh
has "$out" 'step=/run/sluice/jobs/20002@' 'an inner step'
[ "$(sinfo -h -N -o %T | sort -u)" = idle ] || fail "nodes: $(sinfo -h -N -o '%N %T')"
until_true same_jobs || fail "jobs: \"$(sluice_jobs)\", squeue: \"$(slurm_jobs)\""
