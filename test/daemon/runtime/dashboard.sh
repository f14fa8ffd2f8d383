#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# starves
# The dashboard of a node in headless Chromium: jobs appear, are filtered and sorted, a click shows
# the history of one; nothing on the console, nothing fetched from elsewhere, light and dark.
set -u
. test/lib/site.bash
[ -x /usr/bin/python3 ] || skip "needs /usr/bin/python3"
mkdir "$SCRATCH"/{data,quiet}
printf x >"$SCRATCH/data/file"
cat >"$SCRATCH/p.json" <<END
{"targets": {"scratch": {"path": "$SCRATCH/data",
                         "capacity": {"metadata": "600/s", "data": "1GiB/s"}},
             "quiet": {"path": "$SCRATCH/quiet", "capacity": {"metadata": "100k/s"}}},
 "classes": {"gold": {"scratch": {"metadata": {"weight": 3}}},
             "bulk": {"scratch": {"metadata": {"limit": "200/s"}}}},
 "control": {"nodes": "n1", "default_class": "bulk"}}
END
start node --role node --name n1 --policy "$SCRATCH/p.json" --run-dir "$SCRATCH/n"
node=$PID
job() { # NAME CLASS
  "$SLUICE" --run-dir "$SCRATCH/n" run --job "$1" --class "$2" --no-summary -- \
    "$PROGRAMS/steady" 600 "$SCRATCH/data" >/dev/null 2>&1 &
  pids+=("$!")
}
job hydro gold
job backup bulk
is_remembered() {
  "$SLUICE" report --history --run-dir "$SCRATCH/n" --last 5s --json | grep -q '"job": "backup"'
}
until_true 10 is_remembered || fail "no history of the job: $(cat "$LOG")"
ops_are_known() {
  "$SLUICE" report --job hydro --run-dir "$SCRATCH/n" --last 10s -o "$SCRATCH/hydro.html" &&
    grep -q 'aria-label="operations over time"' "$SCRATCH/hydro.html"
}
until_true 10 ops_are_known || fail "no heatmap in the report of the history"
"$SLUICE" report --job hydro --run-dir "$SCRATCH/n" --last 10s --json >"$SCRATCH/hydro.json"
json "$SCRATCH/hydro.json" '{o["op"] for o in d[0]["ops"]} >= {"open", "read", "close"}' |
  grep -q True || fail "ops of the history: $(json "$SCRATCH/hydro.json" 'd[0]["ops"]')"

url=$("$SLUICE" report --dashboard --run-dir "$SCRATCH/n") || fail "no address of the page"
case $url in
  "http://$METRICS/#"*) ;;
  *) fail "the address is $url, metrics at $METRICS" ;;
esac
URL=$url PYTHONPATH=$top/test/lib /usr/bin/python3 test/daemon/runtime/dashboard.py
status=$?
[ $status = 77 ] && skip "needs chromium, chromium-driver and python3-selenium"
[ $status = 0 ] || exit $status
stop "$node"
