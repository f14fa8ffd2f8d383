#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Advice and asynchronous reads of far more than there is are charged for what there is.
. test/libinterpose/common.bash

rm -f "$DIR/file"
TIME=8 guest read=1MB/s "$PROGRAMS/unusual" advice "$DIR"
counted 20480 20480 channel read amount
TIME=8 guest read=1MB/s "$PROGRAMS/unusual" submission "$DIR"
counted 4096 4096 channel read amount
