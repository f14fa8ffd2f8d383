#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# jemalloc and tcmalloc, preloaded before and after us.
. test/libinterpose/common.bash

found=0
for name in libjemalloc.so.2 libtcmalloc_minimal.so.4; do
  LD_PRELOAD=$name "$PROGRAMS/early" "$DIR" 2>&1 | grep -q 'cannot be preloaded' && continue
  found=1
  LD_PRELOAD=$name limited stat=2000/s "$PROGRAMS/allocators" "$DIR" || fail "$name after: $?"
  counted 200 200 channel stat calls
  limited stat=2000/s sh -c "LD_PRELOAD=$name:\$LD_PRELOAD exec $PROGRAMS/allocators $DIR" ||
    fail "$name before: $?"
  counted 200 250 channel stat calls
done
[ $found = 1 ] || skip 'needs libjemalloc2 or libtcmalloc-minimal4'
