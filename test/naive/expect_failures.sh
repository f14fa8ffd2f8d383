#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The guest-safety tests test something: each guest below runs well bare and must not under the
# naive shim. Run by test/libinterpose/naive_shim.sh. A guest that hangs is ended after three
# seconds.
. test/lib/lib.sh

"$(dirname "$0")/build" "${BUILD:-$(dirname "$PROGRAMS")/..}/test/naive" || fail "does not build"
naive=$(cd "${BUILD:-$(dirname "$PROGRAMS")/..}/test/naive" && pwd)/libnaive.so

mkdir "$SCRATCH/bare" "$SCRATCH/shim"
for dir in bare shim; do "$PROGRAMS/loop" prepare 1 "$SCRATCH/$dir" >"$SCRATCH/log"; done

# One line per hazard: what the shim does wrong, the guest, its environment under the shim.
hazards='state made in a constructor|early DIR
lookup and allocation in mmap|allocators DIR|libjemalloc.so.2
mutex across a sleep, handler does I/O|signal_io DIR
mutex across a sleep, handler jumps|longjmp DIR
mutex across a sleep, fork|fork_threads DIR
mutex across a sleep, cancelled|cancel DIR
vfork wrapped in C|vfork DIR
large thread-local storage|small_stack DIR
a descriptor kept open|close_all DIR
a sleep under seccomp|seccomp_strict DIR
prints|quiet DIR
errno not kept|errno_kept DIR
mode lost|modes DIR
pipes and devices delayed|never_delayed DIR
RWF_NOWAIT sleeps|nowait DIR short
EINTR|interrupted DIR
libc called by name|own_open DIR
default version of realpath|realpath_version DIR'

run_one() {  # NUMBER WHAT WORDS PRELOAD: writes the verdict
  local words=($3) verdict
  words[0]=$PROGRAMS/${words[0]}
  if [ "${words[0]##*/}" != nowait ]; then
    timeout -s KILL 10 "${words[@]/#DIR/$SCRATCH/bare}" >"$SCRATCH/$1.bare" 2>&1 ||
      { echo "not bare: $2" >"$SCRATCH/$1.verdict"; return; }
  fi
  timeout -s KILL 3 env LD_PRELOAD="$naive${4:+:$4}" "${words[@]/#DIR/$SCRATCH/shim}" \
    >"$SCRATCH/$1.shim" 2>&1 && verdict="survives the naive shim: $2" || verdict=good
  echo "$verdict" >"$SCRATCH/$1.verdict"
}

number=0
while IFS='|' read -r what words preload; do
  number=$((number + 1))
  mkdir -p "$SCRATCH/bare" "$SCRATCH/shim"
  run_one "$number" "$what" "$words" "$preload" 2>/dev/null &
  [ $((number % 9)) = 0 ] && wait
done <<<"$hazards"
wait

bad=$(cat "$SCRATCH"/*.verdict | grep -v '^good$')
[ -z "$bad" ] || fail "$bad"
[ "$(cat "$SCRATCH"/*.verdict | wc -l)" = "$number" ] || fail "a verdict is missing"
echo "$number hazards, each one fails under the naive shim"
