#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a running daemon of root can still do: the loop of a node may change owners and open files of
# users, and has neither in force while it listens; its threads that look at processes do nothing
# else, a cluster can do nothing. Threads that read HTTP and ZeroMQ can do nothing of it on a node
# either; no exec gets anything back.
set -u
. test/lib/site.bash
[ "$(id -u)" = 0 ] || skip "needs root"
policy "$SCRATCH/p.json"
chown_override=$(printf '%016x' $((1 << 0 | 1 << 1)))
search_ptrace=$(printf '%016x' $((1 << 2 | 1 << 19)))
none=0000000000000000

# The loop of PID has these sets, that which looks at processes those, the others nothing; it stays
# so.
holds() { # WHAT LOOP [WALK]
  local status wanted bound now threads=0
  for status in /proc/"$PID"/task/*/status; do
    wanted=$none
    bound=$2
    [ "$status" != "/proc/$PID/task/$PID/status" ] || wanted=$2
    now=$none
    case $(sed -n 's/^Name:[[:space:]]*//p' "$status") in
      sluiced-launch | sluiced-walk) wanted=${3:-} bound=${3:-} now=${3:-} ;;
    esac
    threads=$((threads + 1))
    for set in CapPrm="$wanted" CapEff="$now" CapBnd="$bound"; do
      grep -q "^${set%=*}:[[:space:]]${set#*=}$" "$status" ||
        fail "$1: not $set in $status: $(grep Cap "$status")"
    done
    for set in CapInh CapAmb; do
      [ "$(awk -v s="$set:" '$1 == s {print $2}' "$status")" = $none ] || fail "$1: $set"
    done
    grep -q '^NoNewPrivs:.*1' "$status" || fail "$1: could get new privileges"
  done
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
