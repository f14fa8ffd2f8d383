#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What starting a program costs, in system calls and in page faults, which do not scatter as times
# do: natively, with the library alone, and in a job. A build runs thousands of programs that live a
# millisecond.
. test/libinterpose/common.bash

need strace
most_alone=7 most_joined=20
most_faults_alone=6 most_faults_joined=15
strace -o "$SCRATCH/try" true 2>/dev/null || skip 'cannot trace here'

calls() { strace -f -o "$SCRATCH/$1" "${@:2}" || fail "$1: status $?"; grep -c '(' "$SCRATCH/$1"; }
native=$(calls native /bin/true) || exit 1
alone=$(calls alone -E LD_PRELOAD="$SLUICE_LIB" /bin/true) || exit 1
# The least of some starts: what else the kernel does meanwhile only adds to it.
cat >"$SCRATCH/faults.py" <<'END'
import os, sys
def once(env):
    child = os.posix_spawn('/bin/true', ['/bin/true'], env)
    return os.wait4(child, 0)[2].ru_minflt
def least(env):
    return min(once(env) for _ in range(20))
native = least({})
print(*(least({'LD_PRELOAD': name}) - native for name in sys.argv[1:]))
END
limited none bash -c 'echo "$LD_PRELOAD" >"$1"
  strace -o "$2/joined" -E LD_PRELOAD="$LD_PRELOAD" /bin/true
  env -u LD_PRELOAD python3 "$2/faults.py" "$3" "$LD_PRELOAD" >"$2/faults"' \
  bash "$SCRATCH/name" "$SCRATCH" "$SLUICE_LIB" || fail "in a job: $?"
joined=$(grep -c '(' "$SCRATCH/joined")
echo "system calls of /bin/true: $native natively, $alone with the library, $joined in a job"
[ $((alone - native)) -le $most_alone ] || fail "$((alone - native)) more with the library"
[ $((joined - native)) -le $most_joined ] || fail "$((joined - native)) more in a job"
read -r faults_alone faults_joined <"$SCRATCH/faults"
echo "page faults of /bin/true: $faults_alone more with the library, $faults_joined in a job"
[ "$faults_alone" -le $most_faults_alone ] || fail "$faults_alone more faults with the library"
[ "$faults_joined" -le $most_faults_joined ] || fail "$faults_joined more faults in a job"

# None of them makes files of /proc: that costs more than all else.
grep -q '"/proc/self/' "$SCRATCH/joined" && fail "$(grep '"/proc/self/' "$SCRATCH/joined")"
exit 0
