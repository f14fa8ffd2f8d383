#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# starves
# beside
# The comparison of the algorithms in policies/README.md and its drawing are what the code gives.
# After a change of an algorithm: make compare.
set -u
. test/lib/lib.sh
simulate=${BUILD:-$top/build}/test/simulate
[ -x "$simulate" ] || skip "needs $simulate"
cp "$top/policies/README.md" "$SCRATCH/README.md" || fail "no policies/README.md"
"$simulate" compare --readme "$SCRATCH/README.md" --svg "$SCRATCH/compare.svg" \
  --record "$SCRATCH" || fail "compare ended with $?"
diff "$top/policies/README.md" "$SCRATCH/README.md" >"$SCRATCH/diff" ||
  fail "the tables are older than the code: $(head -n 5 "$SCRATCH/diff")"
cmp "$top/policies/compare.svg" "$SCRATCH/compare.svg" || fail "the drawing is older than the code"
head -n 1 "$SCRATCH/mix.demand" | grep -q '^sluice-demand 1 mix 220000 ' ||
  fail "no recorded demand"

# The default leaves less undone than any other, wherever demand moves.
python3 - "$SCRATCH/README.md" <<'EOF' || fail "maxmin is not ahead"
import re, sys
text = open(sys.argv[1]).read().split("**Shortfall**")[1].split("**Its causes**")[0]
rows = {r[0]: [float(v) for v in r[1:]] for r in
        ([c.strip() for c in line.strip("| \n").split("|")] for line in text.split("\n")
         if re.match(r"\| [a-z]", line))}
best = rows.pop("maxmin")
rows.pop("drf")  # the same with one resource
assert len(rows) == 6, rows
for name, values in rows.items():
    for scenario in (3, 4, 5):
        assert best[scenario] < values[scenario] * 0.7, (name, scenario)
EOF
