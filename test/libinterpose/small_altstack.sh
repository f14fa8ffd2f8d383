#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A handler on an alternate stack of the least useful size does I/O on a target that is a directory.
. test/libinterpose/common.bash

guest "all=1000/s@$DIR" "$PROGRAMS/small_altstack" "$DIR"
counted 5 5 op rename calls

under_names "$PROGRAMS/small_altstack" "$DIR"
