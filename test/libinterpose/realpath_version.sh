#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# realpath@GLIBC_2.2.5 and realpath@@GLIBC_2.3 keep their difference.
. test/libinterpose/common.bash

guest readlink=500/s "$PROGRAMS/realpath_version" "$DIR"
counted 10 30 op readlink calls
