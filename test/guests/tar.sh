#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tar packs and unpacks the same tree under a limit on metadata and bytes.
. test/guests/common
need tar sha256sum
cd_work=$SCRATCH/work
mkdir -p "$cd_work" && make_tree "$cd_work/tree"
pack='cd "$1" && tar --sort=name -cf "$2.tar" tree && mkdir "$2" && tar xf "$2.tar" -C "$2"'
sh -c "$pack" x "$cd_work" bare || fail 'bare tar'
limited --limit metadata=400/s --limit data=1MiB/s -- sh -c "$pack" x "$cd_work" gated ||
  fail "tar with limits: $?"
delayed
cmp "$cd_work/bare.tar" "$cd_work/gated.tar" || fail 'the archives differ'
[ "$(digest "$cd_work/bare")" = "$(digest "$cd_work/gated")" ] || fail 'the trees differ'
