#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a running daemon of root can still do: one thread of a node may change owners and open files
# of users, others may look at processes. The loop and the threads that read HTTP and ZeroMQ can do
# nothing of it, and a cluster can do nothing; no exec gets anything back.
set -u
. test/lib/site.bash
[ "$(id -u)" = 0 ] || skip "needs root"
policy "$SCRATCH/p.json"
chown_override=$(printf '%016x' $((1 << 0 | 1 << 1)))
search_ptrace=$(printf '%016x' $((1 << 2 | 1 << 19)))
none=0000000000000000

# The thread of rights has these sets, that which looks at processes those, all others of PID
# nothing; it stays so.
holds() { # WHAT RIGHTS [WALK]
  local status wanted threads=0 keepers=0
  for status in /proc/"$PID"/task/*/status; do
    wanted=$none
    case $(sed -n 's/^Name:[[:space:]]*//p' "$status") in
      sluiced-rights) wanted=$2 keepers=$((keepers + 1)) ;;
      sluiced-launch | sluiced-walk) wanted=${3:-} ;;
    esac
    threads=$((threads + 1))
    for set in CapPrm="$wanted" CapEff="$wanted" CapBnd="$wanted"; do
      grep -q "^${set%=*}:[[:space:]]${set#*=}$" "$status" ||
        fail "$1: not $set in $status: $(grep Cap "$status")"
    done
    for set in CapInh CapAmb; do
      [ "$(awk -v s="$set:" '$1 == s {print $2}' "$status")" = $none ] || fail "$1: $set"
    done
    grep -q '^NoNewPrivs:.*1' "$status" || fail "$1: could get new privileges"
  done
  [ "$2" = "$none" ] || [ "$keepers" = 1 ] || fail "$1: $keepers threads of rights"
  [ "$threads" -gt 1 ] || fail "$1: has no threads for strangers"
}

start node --role node --policy "$SCRATCH/p.json" --run-dir "$SCRATCH/n"
holds node "$chown_override" "$search_ptrace"
grep -q 'capabilities=cap_chown,cap_dac_override ' "$LOG" || fail "$(cat "$LOG")"
grep -q 'watching=cap_dac_read_search,cap_sys_ptrace' "$LOG" || fail "$(cat "$LOG")"
stop "$PID"
start cluster --role cluster --policy "$SCRATCH/p.json" --run-dir "$SCRATCH/c" \
  --listen 'tcp://127.0.0.1:*' --plain
holds cluster $none
grep -q 'capabilities=none' "$LOG" || fail "$(cat "$LOG")"
stop "$PID"

# As another user, whose directories are made for it; a second start finds them.
id nobody >/dev/null 2>&1 || exit 0
chmod 755 "$SCRATCH"
for _ in 1 2; do
  start other --role cluster --policy "$SCRATCH/p.json" --run-dir "$SCRATCH/o" \
    --listen 'tcp://127.0.0.1:*' --plain --user nobody
  holds "cluster of nobody" $none
  [ "$(awk '$1 == "Uid:" {print $2, $3, $4, $5}' /proc/$PID/status)" = \
    "$(id -u nobody) $(id -u nobody) $(id -u nobody) $(id -u nobody)" ] || fail "is not nobody"
  grep -q "^Groups:.*\b0\b" /proc/$PID/status && fail "kept root's group"
  stop "$PID"
done
