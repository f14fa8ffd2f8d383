# SPDX-License-Identifier: Apache-2.0
# A job whose background work is held back: `background_policy TARGET` writes the policy,
# `foreground MB` says what its foreground wants a second; nothing: it ends. `told EXPR` evaluates
# Python over the row that `sluice explain` has of it, b. Needs $S, $SCRATCH and $DATA.
background_policy() {
  cat <<P
{"roles": {"db": {"flush": {"thread": "bg:flush"}, "compaction-low": {"thread": "bg:low"},
                  "compaction-high": {"thread": "bg:high"}, "foreground": {"rest": true}}},
 "targets": {"s": {"path": "$1", "capacity": {"data": "100MB/s"}}},
 "classes": {"kv": {"s": {"data": {"algorithm": "tail-latency", "foreground": "50MB/s",
                                   "floor": "5MB/s"}}},
             "plain": {"s": {"data": {"weight": 1}}}}}
P
}

foreground() {
  [ -n "${1:-}" ] || { rm -f "$DATA/rate" && return; }
  echo "$1" >"$DATA/rate.new" && mv "$DATA/rate.new" "$DATA/rate"
}

guest() { exec timeout -s KILL 60 "$@" python3 "$top/test/lib/background_guest.py" "$DATA"; }

told() {
  $S --json explain --job "$JOB" >"$SCRATCH/said.json" 2>"$SCRATCH/said.err" || return 1
  json "$SCRATCH/said.json" "(lambda b: $1)((d.get('background') or [{}])[0])"
}
holds() { [ "$(told "$1" 2>/dev/null)" = True ]; }

# What each kind has of what is left, in MB/s.
most_is() { # HIGH
  holds "b.get('sign') == 'holding' and max((l['rate_per_s'] or 1e12 for l in b['limits'])) < $1e6"
}
