#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# execl hands on any number of arguments, and a start that libc does not have says ENOSYS.
. test/libinterpose/common.bash

guest open=1000/s "$PROGRAMS/exec_edges" "$DIR"
