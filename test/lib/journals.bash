# SPDX-License-Identifier: Apache-2.0
# A node whose sluiced keeps journals for two users, $ann and $bob: an ext4 of its own at
# $SCRATCH/data, in which all may write, and a run directory $RUN. Sourced after nothing.
. test/lib/site.bash
own_mounts
need python3
two_users
own_ext4 "$SCRATCH/data" || skip 'needs mkfs.ext4 and loop devices'
trap 'kill -9 "${pids[@]}" 2>/dev/null; umount -l "$SCRATCH/data"; rm -rf "$SCRATCH"' EXIT
chmod 777 "$SCRATCH/data"
[ -x "${SLUICE%/*}/sluice-order" ] || skip 'sluice-order is not built'
RUN="$SCRATCH/run"
cat >"$SCRATCH/policy.json" <<END
{"targets": {"data": {"path": "$SCRATCH/data", "order": "durable"}}}
END
