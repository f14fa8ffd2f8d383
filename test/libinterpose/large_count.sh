#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A read is charged for what it returned: a large buffer costs nothing at the end of a file.
. test/libinterpose/common.bash

TIME=8 guest read=1MB/s "$PROGRAMS/large_count" "$DIR"
counted 81920 81920 channel read amount
TIME=8 guest all=100k/s,read=1MB/s "$PROGRAMS/large_count" "$DIR"
counted 81920 81920 channel read amount
