#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Arguments that the kernel refuses are refused as ever: no crash on the way, and the same errno.
. test/libinterpose/common.bash

mkdir "$DIR/t"
guest all=20000/s,data=100MB/s "$PROGRAMS/bad_arguments" "$DIR"
guest "all=20000/s@$DIR/t" "$PROGRAMS/bad_arguments" "$DIR"
