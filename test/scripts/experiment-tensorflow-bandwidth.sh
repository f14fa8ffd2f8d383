#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# starves
# Four readers with guarantees: parts that move cost next to no time against no limits, and nobody
# is below the guarantee while reading; fixed parts take much longer, no limits break guarantees.
set -u
. test/scripts/experiment.bash
experiment tensorflow-bandwidth
json "$SCRATCH/tensorflow-bandwidth.json" '(lambda s: s["static"]["makespan_s"] >
  1.4 * s["dynamic"]["makespan_s"] and sum(s["none"]["seconds_below"].values()) > 5)(
  {s["setup"]: s for s in d["setups"]})' | grep -q True || fail "the others do not differ"
