#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# waits
# What a replay needs of memory does not grow with the operations it sends, the files it has or the
# time it takes: latencies are counted, names are made when needed, intervals are merged.
set -u
. test/daemon/commands/replay/replay.bash
trap 'rm -rf "$SCRATCH"' EXIT
mkdir "$SCRATCH/d"

# peak TRACE OPTION...: KiB of the largest of its processes.
peak() {
  python3 - "$(dirname "$SLUICE")/sluice-replay" "$@" --target "$SCRATCH/d" -q <<'E2'
import resource, subprocess, sys
if subprocess.run(sys.argv[1:]).returncode != 0:
    sys.exit(1)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
E2
}
trace "$SCRATCH/few.csv" 1 getattr,open,close 1000,100,100
trace "$SCRATCH/many.csv" 1 getattr,open,close 1000000,100000,100000
{
  echo '# interval: 60s'
  echo 'time_s,getattr,open,close'
  seq 0 43199 | awk '{ print $1 * 60 ",6000,600,600" }'
} >"$SCRATCH/month.csv"

few=$(peak "$SCRATCH/few.csv" --files 100) || fail "few"
between 1 "$few" 100000 "KiB of a small replay"
many=$(peak "$SCRATCH/many.csv" --files 20000 --closed-loop) || fail "many"
between 1 "$many" $((few + 8000)) "KiB with 1000 times the operations and 200 times the files"
month=$(peak "$SCRATCH/month.csv" --files 100 --time-scale 1300000 --jobs 4) || fail "month"
between 1 "$month" $((few + 60000)) "KiB of a month of minutes for four jobs"
is_empty "$SCRATCH/d" memory
