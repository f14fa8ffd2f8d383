#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# errno after success is what it was, after failure what the kernel said.
. test/libinterpose/common.bash

guest metadata=3000/s,data=3000/s "$PROGRAMS/errno_kept" "$DIR"
counted 300 5000 channel metadata calls
