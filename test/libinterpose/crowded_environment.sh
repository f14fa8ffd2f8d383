#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A program started from a thread of the least stack, with a large environment, stays in the job.
. test/libinterpose/common.bash

rm -f "$DIR/file"
guest read=1000/s "$PROGRAMS/unusual" crowded_environment "$DIR"
counted 1 2 channel read calls
counted 0 0 passthrough exec_environment calls
