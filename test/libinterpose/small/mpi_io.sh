#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Ranks of an MPI program share a file by the barriers of MPI-IO: sync, atomic mode, close and
# collective calls. They read the same when small writes are gathered, wait outside the program, or
# small reads are answered from memory. Each library has drivers of its own: Open MPI's OMPIO, and
# ROMIO, whose driver for NFS locks, seeks and writes.
# timeout: 240
. test/lib/lib.sh
own_mounts
. test/libinterpose/small/runs.bash
ranks=2

declare -A mpirun=(
  [openmpi]="mpirun.openmpi --oversubscribe --mca plm isolated --mca ras ^slurm
    --mca btl self,vader --mca oob_tcp_if_include lo --mca orte_tmpdir_base $SCRATCH
    --mca mpi_yield_when_idle 1 --host localhost:$ranks"
  [mpich]='mpirun.mpich -launcher fork -iface lo'
)
[ "$(id -u)" != 0 ] || mpirun[openmpi]+=' --allow-run-as-root'
found=()
for mpi in "${!mpirun[@]}"; do
  command -v "mpicc.$mpi" >/dev/null && command -v "mpirun.$mpi" >/dev/null || continue
  "mpicc.$mpi" -O1 -o "$SCRATCH/$mpi" test/libinterpose/small/mpi_io.c || fail "mpicc.$mpi"
  found+=("$mpi")
done
[ ${#found[@]} -gt 0 ] || skip 'needs mpicc.openmpi and mpirun.openmpi, or those of mpich'

# run WORD DIR MPI OPTIONS PREFIX: what the ranks read, in an order of its own.
run() {
  local word=$1 at=$2 mpi=$3 to=out words
  rm -rf "$at" && mkdir "$at" || fail "$at"
  read -rd '' -a words <<<"${mpirun[$mpi]} $4 -n $ranks $SCRATCH/$mpi $at $5"
  if [ "$word" = bare ]; then
    to=bare
    timeout -s KILL 60 "${words[@]}"
  else
    below "$word" "$at" "${words[@]}"
  fi >"$SCRATCH/lines" 2>"$SCRATCH/err" || fail "$word, ${words[*]}: $? $(cat "$SCRATCH/err")"
  sort "$SCRATCH/lines" >"$SCRATCH/$to"
  grep -q "^$((ranks - 1)) own $((ranks - 1)): 480000 bytes" "$SCRATCH/$to" ||
    fail "$word, ${words[*]}: $(cat "$SCRATCH/lines" "$SCRATCH/err")"
}

# agree WORD DIR MPI OPTIONS PREFIX: as bare.
agree() {
  run "$@"
  same "$*"
}

waited=0 buffered=0
drivers() { # DIR MPI OPTIONS PREFIX
  run bare "$@"
  agree close-to-open "$@"
  # Of memory that libc maps little is gathered on a disk, and MPICH's is of that kind.
  case ${1##*/} in tmpfs) least=39000 ;; *) least=0 ;; esac
  [ "$(json "$report" "d['gathered']['writes']")" -gt $least ] || fail "$*: nothing is gathered"
  [ "${1##*/}" = ext4 ] || return 0
  agree strict "$@"
  waited=$((waited + $(json "$report" "d['gathered']['writes']")))
  agree reads "$@"
  buffered=$((buffered + $(json "$report" "d['buffered']['reads']")))
}

if [ -n "${HAS_OWN_MOUNTS:-}" ]; then
  mount_disks ext4
  mkdir "$DIR/tmpfs"
  mount -t tmpfs none "$DIR/tmpfs" || fail 'mount tmpfs'
fi
for type in tmpfs ext4; do
  at=$DIR/$type/$type
  mkdir -p "${at%/*}"
  for mpi in "${found[@]}"; do
    drivers "$at" "$mpi" '' ''
    [ "$mpi" != openmpi ] || drivers "$at" "$mpi" '--mca io romio321' nfs:
    [ "$mpi" != mpich ] || drivers "$at" "$mpi" '' nfs:
  done
done
[ "$waited" -gt 0 ] || fail 'strict: nothing waited'
[ "$buffered" -gt 0 ] || fail 'reads: nothing was buffered'
