#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A thread makes no call of the stage's own any more when another one has entered a sandbox for
# both, also where it was in the middle of an open at that time.
. test/libinterpose/common.bash

timeout -s KILL 20 "$PROGRAMS/seccomp_threads" "$DIR"
case $? in 0) ;; 77) skip 'no page faults for programs (userfaultfd) here' ;; *) fail bare ;; esac
guest "open=1M/s@$DIR" "$PROGRAMS/seccomp_threads" "$DIR"
