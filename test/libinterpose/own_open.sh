#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A program with its own open, pread, fstat and syscall: we never call them.
. test/libinterpose/common.bash

guest stat=200/s,access=200/s "$PROGRAMS/own_open" "$DIR"
counted 20 20 channel stat calls
