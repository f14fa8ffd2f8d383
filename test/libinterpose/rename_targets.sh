#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# rename from one target to another is charged on both, in either direction.
. test/libinterpose/common.bash

mkdir -p "$DIR/one" "$DIR/two"
cat >"$SCRATCH/move.py" <<'P'
import os, sys
for i in range(20):
    os.rename(sys.argv[1] + "/x", sys.argv[2] + "/x")
    os.rename(sys.argv[2] + "/x", sys.argv[1] + "/x")
P
echo x >"$DIR/one/x"
limited "rename=5000/s@$DIR/one,rename=5000/s@$DIR/two" \
  python3 "$SCRATCH/move.py" "$DIR/one" "$DIR/two" || fail "status $?"
counted 40 40 channel "rename@$DIR/one" calls
counted 40 40 channel "rename@$DIR/two" calls
counted 40 40 op rename calls
