# SPDX-License-Identifier: Apache-2.0
# A job whose background work is held back: `background_policy TARGET` writes the policy,
# `foreground little|much|none` says what people want of it; nothing: it ends. `told EXPR` evaluates
# Python over the row that `sluice explain` has of it, b. Needs $S, $SCRATCH and $DATA.

# The foreground of the guest is below 7 MB/s when it does little, and hundreds when it does much.
background_policy() {
  cat <<P
{"roles": {"db": {"flush": {"thread": "bg:flush"}, "compaction-low": {"thread": "bg:low"},
                  "compaction-high": {"thread": "bg:high"}, "foreground": {"rest": true}}},
 "targets": {"s": {"path": "$1", "capacity": {"data": "100MB/s"}}},
 "classes": {"kv": {"s": {"data": {"algorithm": "tail-latency", "foreground": "20MB/s",
                                   "floor": "5MB/s"}}},
             "plain": {"s": {"data": {"weight": 1}}}}}
P
}

foreground() {
  [ -n "${1:-}" ] || { rm -f "$DATA/foreground" && return; }
  echo "$1" >"$DATA/foreground.new" && mv "$DATA/foreground.new" "$DATA/foreground"
}

guest() { exec "$@" python3 "$top/test/lib/background_guest.py" "$DATA"; }

told() {
  $S --json explain --job "$JOB" >"$SCRATCH/said.json" 2>"$SCRATCH/said.err" || return 1
  json "$SCRATCH/said.json" "(lambda b: $1)((d.get('background') or [{}])[0])"
}
holds() { [ "$(told "$1" 2>/dev/null)" = True ]; }

# is_held MOST: each kind has a limit, and none has more, in MB/s.
is_held() {
  holds "b.get('sign') == 'holding' and all(0 < (l['rate_per_s'] or 0) < $1e6 for l in b['limits'])"
}
is_saturated() {
  holds "b.get('sign') == 'saturation' and all(l['rate_per_s'] is None for l in b['limits'])"
}

# channels EXPR: over c, by channel of a role what it may have in a second.
channels() {
  [ "$($S --json stat "$JOB" | python3 -c 'import json, sys
c = {x["name"]: x["rate_per_s"] for x in json.load(sys.stdin)["channels"] if ":" in x["name"]}
print('"$1"')')" = True ]
}
is_lifted() { channels 'min(c.values()) > 1e11'; }

# says COMMAND… PATTERN
says() { "${@:1:$#-1}" | grep -Eq "${@: -1}"; }
