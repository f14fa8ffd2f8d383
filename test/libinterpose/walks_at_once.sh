#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Walks by nftw may be under way at once in one thread, may be left by longjmp, and may have more
# callbacks than the stage has places for: each callback sees its own entries.
. test/libinterpose/common.bash

mkdir -p "$DIR/few" "$DIR/more"
touch "$DIR"/few/{1,2,3} "$DIR"/more/{1,2,3,4,5,6}
for how in turns jumps many; do
  native=$("$PROGRAMS/walks" $how "$DIR/few" "$DIR/more") || fail "$how natively: $?"
  ours=$(limited "walk=100k/s@$DIR" "$PROGRAMS/walks" $how "$DIR/few" "$DIR/more") ||
    fail "$how: $?"
  [ "$ours" = "$native" ] || fail "$how: $ours, natively $native"
done
# Each of the 40 callbacks saw the directory and its three files, and all of it was charged.
between 160 "$(count call nftw calls)" 160 'entries that were charged'
