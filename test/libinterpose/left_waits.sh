#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Who leaves a wait without making the call gives back what it had booked. An open costs two seconds
# here. If those after them waited for the 60 that were not made as well, that would take two
# minutes.
# timeout: 400
. test/libinterpose/common.bash

for how in jumped killed cancelled exited; do
  TIME=60 limited open=30/min "$PROGRAMS/left_waits" "$how" "$DIR" || fail "$how: status $?"
done

# Tries that are ended sooner than an open is due: each begins where the last one waited. Whom
# `timeout` leaves behind when it kills itself as well, somebody else asks for some time.
retry() {
  local passed=0
  cat "$1"
  while [ $passed -lt 2 ]; do timeout $2 1 cat "$1" && passed=$((passed + 1)); done
}
export -f retry
for way in '' '-s KILL'; do
  TIME=90 limited open=20/min bash -c "retry '$DIR/file' '$way'" &>"$SCRATCH/read" ||
    fail "retries $way: status $?"
done
