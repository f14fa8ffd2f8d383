#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A wait that seems to be left, by the stack on which its thread waits next, may go on all the same.
# Its open is paid all the same.
# timeout: 200
. test/libinterpose/common.bash

for how in fibers stacked disarmed; do
  TIME=60 limited open=20/s "$PROGRAMS/kept_waits" "$how" "$DIR/file" 20 || fail "$how: status $?"
done
