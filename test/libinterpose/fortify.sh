#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Fortified and large-file names are wrapped: nothing gets by.
. test/libinterpose/common.bash

limited open=5000/s,read=5000/s,stat=5000/s "$PROGRAMS/fortify" "$DIR" || fail "status $?"
counted 41 41 channel open calls
counted 81 81 channel read calls
counted 40 40 channel stat calls
