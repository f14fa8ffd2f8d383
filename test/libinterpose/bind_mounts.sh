#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A bind mount of the target shows the same files: they are metered there too.
. test/libinterpose/common.bash

need unshare
mkdir -p "$DIR/t" "$DIR/view"
cp "$DIR/file" "$DIR/t/file"
unshare -m true 2>"$SCRATCH/log" || skip 'needs the privilege to mount'
inside="mount --bind $DIR/t $DIR/view && exec $PROGRAMS/fd_travel open $DIR/view/file 40"
limited "read=5000/s@$DIR/t" unshare -m sh -c "$inside" || fail "status $?"
counted 40 40 channel "read@$DIR/t" calls
