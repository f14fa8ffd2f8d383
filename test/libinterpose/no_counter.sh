#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A program that forbids itself the processor's counter of time is paced by the kernel's clock.
. test/libinterpose/common.bash

echo x >"$DIR/file"
[ "$(limited open=1000/s "$PROGRAMS/no_counter" "$DIR/file")" = 200 ] || fail "it has ended early"
counted 200 200 op read calls
counted 1 200 channel open delayed
