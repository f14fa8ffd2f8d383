#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What starting a program and forking a child cost, in system calls and in page faults, which do not
# scatter as times do: natively, with the library alone, and in a job. A build runs thousands of
# programs that live a millisecond, and forks twice as many children.
. test/libinterpose/common.bash

need strace
most_alone=7 most_joined=20
most_faults_alone=6 most_faults_joined=15
declare -A most_faults_forked=([opens]=9 [speaks]=6)
strace -o "$SCRATCH/try" true 2>/dev/null || skip 'cannot trace here'

# A slot that another process has by the chance of their pids is asked for with `kill(PID, 0)`.
count() { grep '(' "$1" | grep -vc '^kill([0-9]*, 0) '; }
calls() { strace -o "$SCRATCH/$1" "${@:2}" || fail "$1: status $?"; count "$SCRATCH/$1"; }
native=$(calls native /bin/true) || exit 1
alone=$(calls alone -E LD_PRELOAD="$SLUICE_LIB" /bin/true) || exit 1
# The least of some starts: what else the kernel does meanwhile only adds to it.
cat >"$SCRATCH/faults.py" <<'END'
import os, sys
def once(env):
    child = os.posix_spawn('/bin/true', ['/bin/true'], env)
    return os.wait4(child, 0)[2].ru_minflt
def least(env):
    return min(once(env) for _ in range(300))
native = least({})
print(*(least({'LD_PRELOAD': name}) - native for name in sys.argv[1:]))
END
# What is started in a job has the library even without the variable, so who compares is outside.
mkfifo "$SCRATCH/go_on"
limited metadata=1000000/s bash -c 'strace -o "$1/joined" -E LD_PRELOAD="$LD_PRELOAD" /bin/true
  echo "$LD_PRELOAD" >"$1/name"; read -r <"$1/go_on"' bash "$SCRATCH" &
job=$!
until [ -s "$SCRATCH/name" ] || ! kill -0 $job 2>/dev/null; do sleep 0.02; done
name=$(cat "$SCRATCH/name") || fail 'no job'
python3 "$SCRATCH/faults.py" "$SLUICE_LIB" "$name" >"$SCRATCH/faults" || fail "faults: $?"
joined=$(count "$SCRATCH/joined")
echo "system calls of /bin/true: $native natively, $alone with the library, $joined in a job"
[ $((alone - native)) -le $most_alone ] || fail "$((alone - native)) more with the library"
[ $((joined - native)) -le $most_joined ] || fail "$((joined - native)) more in a job"
read -r faults_alone faults_joined <"$SCRATCH/faults"
echo "page faults of /bin/true: $faults_alone more with the library, $faults_joined in a job"
[ "$faults_alone" -le $most_faults_alone ] || fail "$faults_alone more faults with the library"
[ "$faults_joined" -le $most_faults_joined ] || fail "$faults_joined more faults in a job"

# A child of fork: one that opens a file, one that only writes into a pipe. Where the loader puts
# the parts of a program decides a few faults, so the least of some programs counts.
least() { # WORK PRELOAD
  for _ in $(seq 16); do
    env ${2:+LD_PRELOAD="$2"} "$PROGRAMS/fork_cost" "$DIR" "$1" 6 || fail "$1: $?"
  done | sort -n | head -n 1
}
for work in opens speaks; do
  more=$(($(least $work "$name") - $(least $work '')))
  echo "page faults of a forked child that $work: $more more in a job"
  [ "$more" -le "${most_faults_forked[$work]}" ] || fail "$work: $more faults more in a child"
done
echo >"$SCRATCH/go_on"
wait $job || fail "in a job: $?"

# None of them makes files of /proc: that costs more than all else.
grep -q '"/proc/self/' "$SCRATCH/joined" && fail "$(grep '"/proc/self/' "$SCRATCH/joined")"
exit 0
