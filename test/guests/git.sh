#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# git builds, packs, checks and clones a repository; same history, same objects.
# timeout: 60
. test/guests/common
need git
make_tree "$SCRATCH/tree"
export HOME=$SCRATCH GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_DATE='2020-01-01T00:00:00Z'
export GIT_COMMITTER_DATE=$GIT_AUTHOR_DATE GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=e@example.org
export GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=e@example.org
cat >"$SCRATCH/job" <<'END'
set -e
mkdir "$2" && cd "$2"
git init -q -b main r && cp -r "$1" r/tree && cd r
git add . && git commit -qm first
git mv tree/d0/f1 moved && echo more >>tree/d1/f2 && git commit -qam second
git gc -q && git fsck --strict
git clone -q --no-local . ../c
cd ../c && git fsck --strict && git log --format='%H %T' >../log
END
sh "$SCRATCH/job" "$SCRATCH/tree" "$SCRATCH/bare" || fail 'bare git'
limited --limit metadata=1500/s --limit open=600/s -- \
  sh "$SCRATCH/job" "$SCRATCH/tree" "$SCRATCH/gated" || fail "git with limits: $?"
delayed
cmp "$SCRATCH/bare/log" "$SCRATCH/gated/log" || fail 'commits or trees differ'
