#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# starves
# timeout: 300
# An unmodified database on a disk of known speed, without and with a control of its background
# work: all comes to its end, the background work is done and told by role, and a fixed limit holds
# it back. Speeds and the other databases are for the long form.
set -u
. test/lib/lib.sh
need losetup mkfs.ext4 unshare setpriv python3
scripts/experiments/database-background --help >/dev/null || fail help
[ "$(id -u)" = 0 ] || skip 'needs root'
[ -d /sys/fs/cgroup/blkio ] || [ -e /sys/fs/cgroup/cgroup.controllers ] || skip 'needs cgroups'
mkdir "$SCRATCH/results"
scripts/experiments/database-background --short --json --only sqlite \
  --variants plain,limit,tail-latency -o "$SCRATCH/results" >"$SCRATCH/out" 2>"$SCRATCH/err"
status=$?
[ $status = 77 ] && skip "$(tail -n 1 "$SCRATCH/out")"
[ $status = 0 ] || fail "status $status: $(cat "$SCRATCH/err")"
result=$SCRATCH/results/database-background.json
is() { [ "$(json "$result" "$1")" = True ] || fail "not so: $1; $(cat "$result")"; }
is 'len(d["rows"]) >= 3 and len(d["rows"]) % 3 == 0'
is 'all(r["per_s"] > 0 and r["max_ms"] >= r["p99_ms"] >= r["p50_ms"] > 0 for r in d["rows"])'
is 'all(r["spans"] and r["background_s"] > 0 for r in d["rows"])'
is 'all(bool(r["moved"]) == (r["variant"] != "plain") for r in d["rows"])'
is 'all(sum(m["mib"] for m in r["moved"].values()) > 0 for r in d["rows"] if r["moved"])'
is 'all(sum(m["delayed"] for m in r["moved"].values()) > 0 for r in d["rows"]
        if r["variant"] == "limit")'
is 'all(0.99 < sum(r["held"].values()) < 1.01 for r in d["rows"] if r["variant"] == "tail-latency")'
is 'all(r["written_mib"] > 0 and r["held_back_mib"] > 0 for r in d["rows"])'
json "$SCRATCH/out" 'd["sums"][0]["p99_ms"]' >/dev/null || fail "no JSON: $(cat "$SCRATCH/out")"
python3 -c 'import sys, xml.dom.minidom as x; x.parse(sys.argv[1])' \
  "$SCRATCH/results/database-background.svg" || fail "the plot is no XML"
left=$(find "$SCRATCH" -mindepth 1 -maxdepth 1 -name 'sluice-*')
[ -z "$left" ] || fail "it left $left"
exit 0
