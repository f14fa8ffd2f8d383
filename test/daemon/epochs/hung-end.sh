#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# Jobs of a node of a cluster end while a target's root does not answer: what they wrote is lost for
# the cluster, and their folders go. So they take no place of their user's next jobs.
set -u
. test/daemon/epochs/two.bash
serve far 27 # OPENDIR
cat >"$SCRATCH/site.json" <<END
{"targets": {"far": {"path": "$SCRATCH/far", $AFTER: "1s"}}}, "control": {"nodes": "n1"}}
END
start_below
at_rest=$(children)
jobs h 6
touch "$SCRATCH/far-armed"
end_jobs
[ "$(syncs)" -le 4 ] || fail "$(syncs) processes of one user"
[ "$(hang)" -ge 1 ] || fail 'none hangs'
exit 0
