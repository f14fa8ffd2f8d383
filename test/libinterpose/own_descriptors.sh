#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A name below /proc/self/fd or /dev/fd means the file of that descriptor, and is charged so.
. test/libinterpose/common.bash
need python3

cat >"$SCRATCH/work.py" <<'P'
import os, sys
path = os.open(sys.argv[1], os.O_PATH)
for folder in "/proc/self/fd", "/proc/thread-self/fd", "/dev/fd":
    for _ in range(10):
        os.stat(f"{folder}/{path}")
        os.close(os.open(f"{folder}/{path}", os.O_RDONLY))
    try:
        os.stat(f"{folder}/999999")
    except FileNotFoundError:
        pass
    os.listdir(folder)
P
echo x >"$DIR/file"
limited "stat=10k/s@$DIR,open=10k/s@$DIR" python3 "$SCRATCH/work.py" "$DIR/file" || fail "status $?"
counted 30 30 channel "stat@$DIR" calls
counted 31 31 channel "open@$DIR" calls
