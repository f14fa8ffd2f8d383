#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# starves
# timeout: 300
# An unmodified RocksDB on a disk of known speed, without and with a control of its background
# work: both come to their end, work is held back while the load has bursts, and it is told for
# which part of the time, and what was put off. Speeds are for the long form.
set -u
. test/lib/lib.sh
need db_bench losetup mkfs.ext4 unshare
scripts/experiments/rocksdb-tail-latency --help >/dev/null || fail help
[ "$(id -u)" = 0 ] || skip 'needs root'
[ -d /sys/fs/cgroup/blkio ] || [ -e /sys/fs/cgroup/cgroup.controllers ] || skip 'needs cgroups'
mkdir "$SCRATCH/results"
scripts/experiments/rocksdb-tail-latency --short --seconds 12 --variants plain,tail-latency \
  -o "$SCRATCH/results" >"$SCRATCH/out" 2>&1
status=$?
[ $status = 77 ] && skip "$(tail -n 1 "$SCRATCH/out")"
[ $status = 0 ] || fail "status $status: $(cat "$SCRATCH/out")"
result=$SCRATCH/results/rocksdb-tail-latency.json
is() { [ "$(json "$result" "$1")" = True ] || fail "not so: $1; $(cat "$SCRATCH/out")"; }
is 'all(r["done"] > 0 and len(r["p99_ms"]) == 12 for r in d["rows"])'
is '[r["variant"] for r in d["rows"]] == ["plain", "tail-latency"]'
is 'all(r["held"]["holding"] > 0 for r in d["rows"] if r["variant"] == "tail-latency")'
is 'all(0.99 < sum(r["held"].values()) < 1.01 for r in d["closed"] if r["held"])'
is 'all(r["per_s"] > 0 for r in d["closed"])'
grep -q 'pending MiB' "$SCRATCH/out" || fail "what was put off is not told: $(cat "$SCRATCH/out")"
python3 -c 'import sys, xml.dom.minidom as x; x.parse(sys.argv[1])' \
  "$SCRATCH/results/rocksdb-tail-latency.svg" || fail "the plot is no XML"
left=$(find "$SCRATCH" -mindepth 1 -maxdepth 1 -name 'sluice-*')
[ -z "$left" ] || fail "it left $left"
exit 0
