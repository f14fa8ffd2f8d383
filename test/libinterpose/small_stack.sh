#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Threads of the least stack size do every kind of call.
. test/libinterpose/common.bash

guest open=400/s,read=400/s,rename=400/s "$PROGRAMS/small_stack" "$DIR"
counted 80 80 channel rename calls

under_names "$PROGRAMS/small_stack" "$DIR"
