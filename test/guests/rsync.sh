#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# rsync copies a tree twice (the second time nothing is to do) over its own pipes and processes.
. test/guests/common
need rsync sha256sum
make_tree "$SCRATCH/tree"
limited --limit metadata=300/s --limit data=500KiB/s -- \
  rsync -aH "$SCRATCH/tree/" "$SCRATCH/copy/" || fail "rsync with limits: $?"
delayed
[ "$(digest "$SCRATCH/tree")" = "$(digest "$SCRATCH/copy")" ] || fail 'the trees differ'
again=$(limited --limit metadata=300/s -- rsync -aHic "$SCRATCH/tree/" "$SCRATCH/copy/") ||
  fail "second rsync: $?"
[ -z "$again" ] || fail "rsync found differences: $again"
