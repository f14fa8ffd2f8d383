#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# beside
# A package that is not installed ends `make deb` with the command that installs it, before anything
# is compiled.
set -u
. test/lib/lib.sh
mkdir "$SCRATCH/bin" "$SCRATCH/tree"
cd "$top" && git ls-files -z -co --exclude-standard >"$SCRATCH/names" || skip "needs the repository"
tar --null -T "$SCRATCH/names" --ignore-failed-read -cf - 2>/dev/null | tar -C "$SCRATCH/tree" -xf -
cat >"$SCRATCH/bin/dpkg-checkbuilddeps" <<'P'
#!/bin/sh
echo 'dpkg-checkbuilddeps: error: Unmet build dependencies: debhelper-compat (= 13)' >&2
exit 1
P
printf '#!/bin/sh\necho compiled >&2\nexit 1\n' >"$SCRATCH/bin/dpkg-buildpackage"
chmod +x "$SCRATCH"/bin/*
PATH="$SCRATCH/bin:$PATH" "$SCRATCH/tree/scripts/packaging/build" deb >"$SCRATCH/out" 2>&1 &&
  fail "packages were built without their tools"
grep -q 'debhelper-compat (= 13): scripts/deps --install build packages' "$SCRATCH/out" ||
  fail "it does not name what to do: $(cat "$SCRATCH/out")"
grep -q compiled "$SCRATCH/out" && fail "it began to compile all the same"
exit 0
