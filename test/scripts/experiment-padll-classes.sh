#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# starves
# Limits per operation, class and job that change while a program runs are kept at every step.
set -u
. test/scripts/experiment.bash
experiment padll-classes
[ "$(json "$SCRATCH/padll-classes.json" 'len(d["cases"])')" = 10 ] || fail "cases are missing"
