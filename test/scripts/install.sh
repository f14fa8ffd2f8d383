#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# beside
# What `make install` leaves: programs without debug symbols that work where they are, documents;
# `make uninstall` takes all of it away again.
set -u
. test/lib/lib.sh
need make readelf

root=$SCRATCH/root
make -C "$top" -s --no-print-directory install DESTDIR="$root" PREFIX=/usr \
  >"$SCRATCH/log" 2>&1 || fail "install: $(tail -n 5 "$SCRATCH/log")"

programs=0
while read -r file; do
  [ "$(head -c 4 "$file")" = $'\x7fELF' ] || continue
  programs=$((programs + 1))
  readelf -S --wide "$file" | grep -q '\.debug_info' && fail "$file has debug symbols"
done < <(find "$root/usr/bin" "$root/usr/sbin" "$root/usr/lib" -type f)
[ "$programs" -ge 4 ] || fail "only $programs programs were installed"

unset SLUICE_LIB
"$root/usr/bin/sluice" --run-dir "$SCRATCH/run" run --limit open=1000/s \
  --report "$SCRATCH/report.json" -- cat "$root/usr/share/doc/sluice/README.md" \
  >"$SCRATCH/page" || fail "the installed sluice: status $?"
cmp "$SCRATCH/page" "$top/README.md" || fail 'the program did not print the page'
[ "$(json "$SCRATCH/report.json" 'd["channels"][0]["calls"]')" -ge 1 ] ||
  fail 'the installed library counted nothing'
"$root/usr/bin/sluice" trace --help >"$SCRATCH/log" || fail 'sluice trace is not found'

make -C "$top" -s --no-print-directory uninstall DESTDIR="$root" PREFIX=/usr ||
  fail 'uninstall'
left=$(find "$root" -type f)
[ -z "$left" ] || fail "uninstall left: $left"
