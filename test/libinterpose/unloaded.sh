#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What the loader's list ended with when we looked first is unloaded: a name that no library has is
# looked for to the end of the list that is left.
. test/libinterpose/common.bash
need python3

export PLUG=$PROGRAMS/plugin
cat >"$SCRATCH/work.py" <<'P'
import ctypes, sys
print(ctypes.CDLL(sys.argv[1]).unload())
names = ctypes.CDLL(None, use_errno=True)
for _ in range(2):
    print(names.openat2(-100, b"/etc/hostname", None, 0), ctypes.get_errno() != 0)
P
LD_PRELOAD=$PROGRAMS/unloads limited open=100k/s python3 "$SCRATCH/work.py" "$PROGRAMS/unloads" \
  >"$SCRATCH/out" || fail "status $?: $(cat "$SCRATCH/out")"
printf '0\n-1 True\n-1 True\n' | cmp - "$SCRATCH/out" || fail "$(cat "$SCRATCH/out")"
