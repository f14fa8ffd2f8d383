#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A program that only asks whether it could enter a sandbox is metered as before.
. test/libinterpose/common.bash

guest read=1000/s "$PROGRAMS/unusual" seccomp_probe "$DIR"
counted 20 20 channel read calls
counted 0 0 passthrough sandboxed calls
