#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# open passes the mode on for O_CREAT and O_TMPFILE.
. test/libinterpose/common.bash

guest open=200/s "$PROGRAMS/modes" "$DIR"
counted 18 100 op open calls
