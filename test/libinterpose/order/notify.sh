#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 180
# A program in C that sleeps on an eventfd until its barriers are durable: built with the header
# alone it runs bare and static; below sluice it is told, also while the log daemon is killed and
# stopped, and nothing of it hangs.
. test/lib/order.bash

build() {
  gcc -std=c11 -Wall -Wextra -Wpedantic -Werror -O1 -Ilibinterpose "$@" \
    test/libinterpose/order/notify.c -o "$SCRATCH/notify" 2>"$SCRATCH/said" ||
    fail "does not build: $(cat "$SCRATCH/said")"
}

build
"$SCRATCH/notify" "$DATA" 5 || fail "bare: status $?"
for word in ordered durable; do
  ORDER=$word durable -- "$SCRATCH/notify" "$DATA" 20 || fail "$word: status $?"
done
barriers=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["order"]["barriers"])' \
  "$SCRATCH/report.json")
[ "$barriers" -gt 20 ] || fail "only $barriers barriers"

# meanwhile WHAT: that happens to the log daemon.
meanwhile() {
  local sluice_pid daemon
  rm -f "$DATA"/notified*
  "$SLUICE" --run-dir "$SCRATCH/run" run --order "ordered@$DATA" --no-summary \
    --report "$SCRATCH/report.json" -- timeout -s KILL 100 "$SCRATCH/notify" "$DATA" 400 \
    >"$SCRATCH/out" 2>"$SCRATCH/said" &
  sluice_pid=$!
  daemon=$(log_daemon $sluice_pid) || exit 1
  grown "$DATA/notified3" $((10 * 4096))
  "$1" "$daemon"
  wait $sluice_pid || fail "$1: status $?: $(cat "$SCRATCH/said")"
}
meanwhile killed
meanwhile stopped

build -static
durable -- "$SCRATCH/notify" "$DATA" 5 || fail "static: status $?"
