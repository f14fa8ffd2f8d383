# SPDX-License-Identifier: Apache-2.0
# A policy by which names like a manifest's wait at a gate, for programs without a daemon.
. test/lib/lib.sh
need python3
cat >"$SCRATCH/policy.json" <<P
{"targets": {"data": {"path": "$SCRATCH/data",
   "after": {"write": "*/MANIFEST-*", "durable": "*/rank-*.dat"}}}}
P
mkdir "$SCRATCH/data"
