#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Addresses that cannot be read: every call gives what the kernel gives, whatever is looked at.
. test/libinterpose/common.bash

bare() { timeout -s KILL 60 "$PROGRAMS/nowhere" "$DIR" >"$SCRATCH/bare" || fail "bare: $?"; }
same() {
  local what=$1
  shift
  "$@" "$PROGRAMS/nowhere" "$DIR" >"$SCRATCH/staged" || {
    tail -n 1 "$SCRATCH/staged"
    fail "$what: status $?"
  }
  diff "$SCRATCH/bare" "$SCRATCH/staged" >"$SCRATCH/diff" || {
    head -n 20 "$SCRATCH/diff"
    fail "$what: not what the kernel says"
  }
}
run() { timeout -s KILL 60 "$SLUICE" --run-dir "$SCRATCH/run" run --no-summary "$@"; }

bare
same 'counted only' limited none
same 'one limit' limited all=1M/s,data=1G/s
counted 100 5000 op stat calls
mkdir "$DIR/t"
same 'another tree' limited "all=1M/s@$DIR/t"
cat >"$SCRATCH/policy.json" <<P
{"channels": [{"name": "x", "match": {"call": "metadata", "path": "$DIR/*.x"}, "limit": "1M/s"},
   {"name": "y", "match": {"call": "data", "path": "*.y"}, "limit": "1G/s"}]}
P
same 'patterns' run --policy "$SCRATCH/policy.json"
same 'noted paths' run --paths --limit all=1M/s
same 'durable' run --order "durable@$DIR" --order-journal "$SCRATCH/log" --limit all=1M/s
same 'ordered' run --order "ordered@$DIR" --order-journal "$SCRATCH/log" --limit all=1M/s
