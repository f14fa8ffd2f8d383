#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# fts with FTS_NOCHDIR, from elsewhere, is charged entry by entry on the tree it walks.
. test/libinterpose/common.bash

mkdir -p "$DIR/sub/b/c"
limited "walk=1000/s@$DIR" "$PROGRAMS/unusual" fts "$DIR" >"$SCRATCH/log" || fail "fts: $?"
entries=$(cat "$SCRATCH/log")
[ "$entries" -ge 8 ] || fail "walked $entries entries"
counted "$entries" "$entries" call fts_read calls
