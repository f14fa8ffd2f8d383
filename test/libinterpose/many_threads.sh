#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# More threads at once than counters of their own: every call is counted and the limit holds.
. test/libinterpose/common.bash

begin=$(date +%s%N)
limited stat=4000/s "$PROGRAMS/many_threads" "$DIR" || fail "status $?"
between 1250 $((($(date +%s%N) - begin) / 1000000)) 20000 'milliseconds for 6000 stats at 4000/s'
counted 6000 6000 channel stat calls
counted 6000 6000 op stat calls
