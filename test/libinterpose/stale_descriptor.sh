#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A number that syscall(SYS_dup2) gave to a file is that file's.
. test/libinterpose/common.bash

guest read=1000/s "$PROGRAMS/unusual" stale_descriptor "$DIR"
counted 20 20 channel read calls
