#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# libc changes the current directory in fts without FTS_NOCHDIR and in nftw with FTW_CHDIR, a
# program does by syscall(2): the next bare name is charged where it lies now.
. test/libinterpose/common.bash

limited "unlink=1000/s@$DIR" "$PROGRAMS/unusual" changing_walks "$DIR" || fail "status $?"
counted 31 31 channel "unlink@$DIR" calls
