#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# starves
# --io-class wherever Slurm has options: each row says what the job's processes are preloaded with,
# and which class the daemon counts them in.
# timeout: 180
set -u
. test/daemon/commands/slurm/site.bash
need python3
site --fs plain

ours=libinterpose.so
show='echo "step=${SLURM_STEP_ID:-batch} node=$SLURMD_NODENAME preload=$LD_PRELOAD"'

# ---- srun ----
out=$(as ann srun --io-class=silver sh -c "$show") || fail "srun: $out"
has "$out" "/$ours" 'srun --io-class'
out=$(as ann srun --io-class=silver --export=NONE /bin/sh -c "$show") || fail "srun NONE: $out"
has "$out" "/$ours" 'srun --export=NONE'
out=$(as ann srun sh -c "$show") || fail "srun without: $out"
lacks "$out" "$ours" 'a job without a class is left alone'
out=$(as ann srun -n1 --io-class=silver sh -c "$show" : -n1 sh -c "$show") || fail "het: $out"
[ "$(grep -c "$ours" <<<"$out")" = 2 ] || [ "$(grep -c "$ours" <<<"$out")" = 1 ] ||
  fail "heterogeneous: $out"

# ---- what is wrong is told at submission ----
for cmd in 'srun' 'salloc'; do
  out=$(as ann $cmd --io-class=bogus true 2>&1) && fail "$cmd takes a class that is none"
  has "$out" 'no class "bogus"' "$cmd: bad class"
  has "$out" 'silver, bronze, scavenger' "$cmd: the list of classes"
done
out=$(as ann sbatch --io-class=bogus --wrap true 2>&1) && fail 'sbatch takes a class that is none'
has "$out" 'silver, bronze, scavenger' 'sbatch: the list of classes'
out=$(as ann srun --io-limit=rubbish true 2>&1) && fail 'srun takes a limit that is none'
has "$out" '--io-limit' 'a limit that is none'

# ---- sbatch: batch step and inner steps, whatever is exported ----
for export in ALL NONE NIL FOO=1; do
  four_steps() {
    batch ann --export=$export <<JOB
#!/bin/bash
#SBATCH --io-class=silver
$show
/usr/bin/srun /bin/sh -c '$show'
/usr/bin/srun --export=NONE /bin/sh -c '$show'
/usr/bin/srun --io-class=bronze /bin/sh -c '$show'
JOB
  }
  out=$(answered four_steps) || fail "sbatch --export=$export"
  [ "$(grep -c "preload=.*/$ours" <<<"$out")" = 4 ] || fail "sbatch --export=$export: $out"
  has "$out" 'sluice: job' 'the line at the end'
  has "$out" 'in class silver' 'the line at the end'
  has "$out" 'class of its job' 'a step of another class'
done

# ---- salloc, array, the user's own preload ----
out=$(as ann salloc -Q --io-class=silver srun sh -c "$show" 2>/dev/null) || fail "salloc: $out"
has "$out" "/$ours" 'salloc … srun'
id=$(printf '#!/bin/sh\n%s\n' "$show" >/mnt/home/ann/a.sh
  as ann sbatch --parsable --array=1-3 --io-class=bronze -o array.%a a.sh) || fail 'array'
wait_job "$id" || fail 'array'
[ "$(cat /mnt/home/ann/array.[123] | grep -c "/$ours")" = 3 ] || fail 'elements of an array'
cp "$(dirname "$SLUICE_LIB")/../lib/libinterpose.so" /mnt/home/theirs.so 2>/dev/null
theirs=$(ldconfig -p | sed -n 's/.*libm\.so\.6.*=> //p' | head -n 1)
out=$(LD_PRELOAD=$theirs as ann srun --io-class=silver sh -c "$show") || fail "preload: $out"
has "$out" "/$ours:$theirs" "the user's own preload"
long=$(printf "$theirs:%.0s" $(seq 200))$theirs
out=$(LD_PRELOAD=$long as ann srun --io-class=silver sh -c "$show") || fail "long preload: $out"
has "$out" "/$ours:$long" "the user's own long preload"

# ---- three nodes: one job, one segment on each ----
as ann srun -N3 -n6 --io-class=silver sh -c 'for i in 1 2 3 4 5 6 7 8; do cat /mnt/scratch/x; done
  until [ -e /mnt/home/ann/seen ]; do sleep 0.1; done' >/dev/null 2>&1 &
three() {
  at_cluster --json jobs | python3 -c 'import json, sys
sys.exit(not any(j["nodes"] == 3 and j["class"] == "silver" and j["user"] == "ann"
                 for j in json.load(sys.stdin)))'
}
until_true three || fail "three nodes: $(at_cluster jobs)"
until_true same_jobs || fail "sluice jobs is \"$(sluice_jobs)\", squeue is \"$(slurm_jobs)\""
id=$(slurm_jobs)
at_cluster set "$id" class=bronze >/dev/null || fail 'set class'
bronze() { at_cluster --json jobs | grep -q '"class": "bronze"'; }
until_true bronze || fail "set class: $(at_cluster jobs)"
touch /mnt/home/ann/seen
wait $!
until_true until_true same_jobs || fail "afterwards: \"$(sluice_jobs)\", \"$(slurm_jobs)\""
for n in 0 1 2; do
  result=$SLUICE_SITE/run/n$n/results/$id.json
  [ "$(json "$result" 'd["processes"]["attached"] >= 2')" = True ] || fail "result of n$n"
  # Root's, and hers to read by a list: 640 is the mask.
  [ "$(stat -c '%U %a' "$result")" = 'root 640' ] || fail "result: $(stat -c '%U %a' "$result")"
  as ann test -r "$result" || fail 'she cannot read her result'
  as ann test -w "$result" && fail 'she can change her result'
  as bob test -r "$result" && fail "bob reads ann's result"
done

# ---- a limit of the job's own ----
out=$(as ann srun --io-class=silver --io-limit=open=20/s python3 -c '
import time
begin = time.monotonic()
for i in range(30):
    open("/etc/hostname").close()
print("took", time.monotonic() - begin > 1)') || fail "--io-limit: $out"
has "$out" 'took True' '--io-limit'

# ---- MPI ----
if command -v mpirun >/dev/null && command -v mpicc >/dev/null; then
  cat >/mnt/home/ann/ranks.c <<'C'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
int main(int argc, char** argv) {
  int rank, sum = 0, one = 0;
  struct stat st;
  char path[64];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const char* p = getenv("LD_PRELOAD");
  for (int i = 0; i < 50; ++i) {
    snprintf(path, sizeof path, "/mnt/scratch/r%d.%d", rank, i);
    fclose(fopen(path, "w"));
    stat(path, &st);
    remove(path);
  }
  one = p && strstr(p, "libinterpose.so") ? 1 : 0;
  MPI_Reduce(&one, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("ranks with the library: %d\n", sum);
  MPI_Finalize();
}
C
  mpicc -o /mnt/home/ann/ranks /mnt/home/ann/ranks.c || fail 'mpicc'
  out=$(batch ann -n4 --io-class=silver <<'JOB'
#!/bin/bash
mpirun --oversubscribe --mca plm isolated --mca ras ^slurm --mca btl self,vader \
  --mca oob_tcp_if_include lo \
  --host localhost:4 -n 4 ./ranks
JOB
  ) || fail 'mpirun'
  has "$out" 'ranks with the library: 4' 'MPI'
  grep -qE 'in class silver: [0-9]{3,} calls' <<<"$out" || fail "MPI is not counted: $out"
else
  echo 'without MPI: mpirun and mpicc are not here'
fi

# ---- no node was drained, no job lost ----
[ "$(sinfo -h -N -o %T | sort -u)" = idle ] || fail "nodes: $(sinfo -h -N -o '%N %T')"
until_true until_true same_jobs || fail 'jobs at the end'
