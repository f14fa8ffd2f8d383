#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What is offered is what the trace says, in every interval to within one operation or 1 %: also
# scaled, looped, staggered, shared by threads and processes. What was sent in all is the same.
set -u
. test/daemon/commands/replay/replay.bash
trap 'rm -rf "$SCRATCH"' EXIT
mkdir "$SCRATCH/d"
trace "$SCRATCH/t.csv" 60 open,close,getattr 60000,6000,120000 0,600,30000 17400,17400,6060

check() { # NAME WANTED-PER-SECOND OPTION...
  local name=$1 wanted=$2
  shift 2
  "$SLUICE" replay "$SCRATCH/t.csv" --target "$SCRATCH/d" --files 50 -q -o "$SCRATCH/r.json" \
    --time-scale 60 "$@" || fail "$name: status $?"
  rows "$SCRATCH/r.json" offered getattr | python3 -c '
import sys
wanted = eval(sys.argv[1])
got = [float(x) for x in sys.stdin]
got += [0] * (len(wanted) - len(got))
assert len(got) == len(wanted), (got, wanted)
for i, (g, w) in enumerate(zip(got, wanted)):
    assert abs(g - w) <= max(float(sys.argv[2]), 0.01 * w), (i, g, w)' "$wanted" "${slack:-1}" ||
    fail "$name: getattr offered differs from the trace"
  [ "$(total "$SCRATCH/r.json" submitted)" = "$(total "$SCRATCH/r.json" offered)" ] ||
    fail "$name: what was sent is not what was offered"
  [ "$(total "$SCRATCH/r.json" done)" = "$(total "$SCRATCH/r.json" submitted)" ] ||
    fail "$name: what was done is not what was sent"
}

check plain '[2000, 500, 101]'
check scaled '[600, 150, 30.3]' --rate-scale 0.3
check looped '[200, 50, 10.1, 200, 50, 10.1]' --rate-scale 0.1 --loops 2
slack=2 check copies '[400, 100, 20.2]' --rate-scale 0.1 --jobs 2
slack=2 check staggered '[200, 250, 60.1, 10.1]' --rate-scale 0.1 --jobs 2 --stagger 1s
check threads '[2000, 500, 101]' --threads 3 --processes 2
check per-op '[2000, 500, 101]' --threads-per-op 3
check cut '[2000, 250]' --duration 1.5s
check warm '[2000, 500, 101]' --warm-up 500ms

# Poisson arrivals: the result counts the very times that were drawn.
"$SLUICE" replay "$SCRATCH/t.csv" --target "$SCRATCH/d" --files 50 -q -o "$SCRATCH/r.json" \
  --time-scale 60 --arrivals poisson --seed 5 --threads-per-op 2 || fail "poisson: status $?"
drawn=$(total "$SCRATCH/r.json" offered) sent=$(total "$SCRATCH/r.json" submitted)
[ "$drawn" = "$sent" ] || fail "poisson: offered $drawn, sent $sent"
between 2300 "$(total "$SCRATCH/r.json" done getattr)" 2900 'poisson: getattr'

# Another time for the closed loop: all is sent, nothing is late.
"$SLUICE" replay "$SCRATCH/t.csv" --target "$SCRATCH/d" --files 50 -q -o "$SCRATCH/r.json" \
  --closed-loop || fail "closed loop: status $?"
between 156059 "$(total "$SCRATCH/r.json" done getattr)" 156061 'closed loop: getattr'
[ "$(total "$SCRATCH/r.json" delayed)" = 0 ] || fail 'closed loop: something was late'
is_empty "$SCRATCH/d" fidelity
