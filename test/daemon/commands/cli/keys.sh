#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# keys becomes the sluiced that is installed beside, in bin or ../sbin, and passes all words on.
set -u
. test/lib/lib.sh
mkdir -p "$SCRATCH/bin" "$SCRATCH/sbin"
cp "$SLUICE" "$SCRATCH/bin/sluice"
"$SCRATCH/bin/sluice" keys new --dir x 2>"$SCRATCH/err"
[ $? = 125 ] || fail "status without sluiced"
grep -q "sluiced is neither in $SCRATCH/bin nor in $SCRATCH/sbin" "$SCRATCH/err" ||
  fail "$(cat "$SCRATCH/err")"
printf '#!/bin/sh\nprintf "%%s|" "$0" "$@"\nexit 9\n' >"$SCRATCH/sbin/sluiced"
chmod +x "$SCRATCH/sbin/sluiced"
"$SCRATCH/bin/sluice" -v keys new --dir 'a b' --help run -- >"$SCRATCH/out"
[ $? = 9 ] || fail "the status of sluiced was lost"
[ "$(cat "$SCRATCH/out")" = "$SCRATCH/sbin/sluiced|keys|--verbose|new|--dir|a b|--help|run|--|" ] ||
  fail "$(cat "$SCRATCH/out")"
