#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# In a strict sandbox the stage makes no system call of its own, and says that it let pass.
. test/libinterpose/common.bash

guest read=50/s "$PROGRAMS/seccomp_strict" "$DIR"
counted 1 300 passthrough sandboxed calls
