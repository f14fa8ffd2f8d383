#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# starves
# A container in a job: with a /run of its own the program runs, unmetered, as it would without us;
# with /run/sluice bound into it, it is metered by the limit of its job.
# timeout: 90
set -u
. test/daemon/commands/slurm/site.bash
need python3
site --fs plain

cat >/mnt/home/inside.sh <<'C'
#!/bin/sh
# The image: the host's programs and libraries, its own /run and /tmp.
root=$(mktemp -d)
for d in usr etc proc mnt/scratch run; do mkdir -p "$root/$d"; done
for l in bin sbin lib lib64; do ln -s usr/$l "$root/$l"; done
for d in usr etc proc mnt/scratch; do mount --rbind /$d "$root/$d"; done
if [ "$1" = bound ]; then
  mkdir -p "$root/run/sluice" "$root$(dirname "$2")"
  mount --bind /run/sluice "$root/run/sluice"
  mount --bind "$(dirname "$2")" "$root$(dirname "$2")"
fi
exec chroot "$root" sh -c 'i=0; while [ $i -lt 20 ]; do cat /mnt/scratch/file; i=$((i + 1)); done'
C
echo x >/mnt/scratch/file
opens=()
library=$BUILD/lib/libinterpose.so
for how in bound bare; do
  out=$(srun --io-class=silver unshare --mount sh /mnt/home/inside.sh $how "$library" \
    2>"$SCRATCH/err") || fail "$how: status $?: $(cat "$SCRATCH/err")"
  [ "$(grep -c x <<<"$out")" = 20 ] || fail "$how: $out"
  until_true same_jobs || fail "$how: jobs"
  result=$(ls -t "$SLUICE_SITE"/run/n*/results/*.json | head -n 1)
  opens+=("$(json "$result" 'sum(c["calls"] for c in d["calls"] if c["op"] == "open")')")
done
[ "${opens[0]}" -ge 20 ] || fail "bound: ${opens[0]} opens were counted"
[ "${opens[1]}" -lt 20 ] || fail "bare: ${opens[1]} opens were counted"
