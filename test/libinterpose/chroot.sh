#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Who goes into a root without /proc is metered there by names and by descriptors, as before.
. test/libinterpose/common.bash
need python3
[ "$(id -u)" = 0 ] || skip 'needs root'
mkdir -p "$DIR/new/data"
head -c 65536 /dev/zero >"$DIR/new/data/file"
head -c 65536 /dev/zero >"$DIR/new/other"
limited "read=100/s@$DIR/new/data" python3 -c "import os, sys
os.chroot(sys.argv[1])
os.chdir('/')
for name, times in (('/data/file', 20), ('/other', 7), ('data/file', 10)):
    f = os.open(name, os.O_RDONLY)
    for i in range(times): assert os.pread(f, 4096, 0)
    os.close(f)" "$DIR/new" || fail "status $?"
counted 30 30 channel "read@$DIR/new/data" calls
counted 1 30 channel "read@$DIR/new/data" delayed
