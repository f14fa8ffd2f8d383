# SPDX-License-Identifier: Apache-2.0
# What the tests of small reads and writes share: runs below `sluice run --small WORD`, and random
# programs that are compared with a bare run.
. test/libinterpose/common.bash

# below WORD DIR CMD…: close-to-open, which only a policy says, too. Python has its small objects in
# the heap, where they are known to stay.
below() {
  local word=$1 where=$2 how=(--small "$1@$2")
  shift 2
  if [ "$word" = close-to-open ]; then
    cat >"$SCRATCH/policy.json" <<P
{"targets": {"scratch": {"path": "$where", "small": "$word"}}}
P
    how=(--policy "$SCRATCH/policy.json")
  fi
  rm -f "$report"
  PYTHONMALLOC=${MALLOC:-malloc} timeout -s KILL "${TIME:-100}" \
    "$SLUICE" --run-dir "$SCRATCH/run" --no-daemon run -q ${JOB:+--job "$JOB"} "${how[@]}" \
    --report "$report" --no-summary ${LIMIT:+--limit "$LIMIT"} -- "$@"
}

same() {
  cmp "$SCRATCH/bare" "$SCRATCH/out" ||
    fail "$1: $(diff "$SCRATCH/bare" "$SCRATCH/out" | head -n 6)"
}

# compare WORD PROGRAM STEPS DIR SEED: with a second process, of the job or from outside.
compare() {
  local word=$1 program=$PROGRAMS/$2 steps=$3 dir=$4 seed=$5 arguments=() other=
  mkdir -p "$dir"
  "$program" "$dir" "$seed" "$steps" >"$SCRATCH/bare" 2>"$SCRATCH/err" ||
    fail "bare, seed $seed: status $?: $(tail -n 3 "$SCRATCH/err")"
  if [ $((seed % 2)) = 0 ]; then
    [ -p "$SCRATCH/tell" ] || mkfifo "$SCRATCH/tell" "$SCRATCH/answer"
    "$program" "$dir" serve "$SCRATCH/tell" "$SCRATCH/answer" & other=$!
    arguments=("$SCRATCH/tell" "$SCRATCH/answer")
  fi
  below "$word" "$dir" "$program" "$dir" "$seed" "$steps" "${arguments[@]}" \
    >"$SCRATCH/out" 2>"$SCRATCH/err" || fail "seed $seed: status $?: $(tail -n 3 "$SCRATCH/err")"
  [ -z "$other" ] || wait "$other" || fail "seed $seed: the other process: status $?"
  same "seed $seed in $dir"
}

# mount_disks [TYPE…]: $DIR/ext4, xfs and btrfs, or those, each its own.
mount_disks() {
  local type
  [ $# -gt 0 ] || set -- ext4 xfs btrfs
  need "${@/#/mkfs.}"
  for type in "$@"; do
    truncate -s 320M "$SCRATCH/$type.img"
    "mkfs.$type" -q "$SCRATCH/$type.img" >/dev/null && mkdir "$DIR/$type" || fail "mkfs.$type"
    mount -o loop "$SCRATCH/$type.img" "$DIR/$type" || fail "mount $type"
  done
}

# mount_overlay: $DIR/overlay, in $DIR/ext4.
mount_overlay() {
  mkdir "$DIR/overlay" "$DIR/ext4"/{upper,work,lower}
  mount -t overlay -o "lowerdir=$DIR/ext4/lower,upperdir=$DIR/ext4/upper,workdir=$DIR/ext4/work" \
    none "$DIR/overlay" || fail 'mount overlay'
}
