#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 300
# Every command of the README, in the order printed, as a reader would type them: in a copy of what
# they name, with the paths of the examples moved into it. What is left out stands in `skipped`,
# with its reason; a command that is new is run.
set -u
. test/lib/lib.sh
bin=$(dirname "$SLUICE")
shopt -s expand_aliases
set -m  # what goes on has a process group of its own
mkdir -p "$SCRATCH"/{work,scratch/replay,homes,user}
export HOME="$SCRATCH/user" XDG_RUNTIME_DIR="$SCRATCH/user/run"
mkdir -m 700 "$XDG_RUNTIME_DIR"
cd "$SCRATCH/work" || exit 1
ln -s "$top/traces" "$top/policies" .
cp "$top/policies/examples/scratch.cost.json" .  # as if it were of the calibration
sed "s|\"/scratch\"|\"$SCRATCH/scratch\"|; s|\"/home\"|\"$SCRATCH/homes\"|" \
  "$top/policies/examples/site.json" >site.json
for i in 1 2; do cp "$top/test/daemon/commands/trace/samples/mds-$i.md_stats" "mds-$i.txt"; done
# It stays while somebody watches it.
cat >app <<'E'
#!/bin/sh
ls >/dev/null
while [ -n "${APP_STAYS:-}" ] && [ -e stay ]; do ls >/dev/null; sleep 0.05; done
E
chmod +x app

sluice() { "$SLUICE" "$@"; }
sluiced() { "$bin/sluiced" "$@"; }

skipped() { # COMMAND: true, and why
  case $1 in
    'sudo scripts/quickstart' | 'sudo scripts/deps'*) why='installs packages' ;;
    'scripts/check') why='runs every test, this one too' ;;
    'sudo scripts/sandbox'*) why='a cluster: test/daemon has it' ;;
    'scripts/experiments/'*) why='minutes: test/scripts/experiment-* has it' ;;
    'sluice calibrate '* | 'sluice cost '*)
      why='hours with a budget: test/daemon/commands/calibrate has them' ;;
    'sluiced --role cluster'* | 'sluiced --role node --parent'*)
      why='other machines: test/daemon has them' ;;
    *) return 1 ;;
  esac
}

end_of_jobs() {
  rm -f stay
  [ -z "$app" ] || wait "$app" || fail "the job that was watched ended with $?: $(cat log)"
  app=
}

is_there() { # WHAT...: in a while
  local i
  for ((i = 0; i < 400; ++i)); do
    "$@" >/dev/null 2>&1 && return
    sleep 0.05
  done
  fail "not there: $*"
}

end_all() {
  [ "$BASHPID" = $$ ] || return  # one of our own jobs that was ended
  rm -f stay
  local pid
  for pid in $(jobs -p); do kill -TERM -- "-$pid" 2>/dev/null; done
}
trap end_all EXIT

# One command, as it stands there. What goes on for as long as it is let is ended.
try() {
  local status
  case $1 in
    *'--job hydro -- ./app'*)
      end_of_jobs
      : >stay
      eval "APP_STAYS=1 $1 &" 2>>log
      app=$!
      is_there eval 'sluice jobs | grep -q hydro'
      return
      ;;
    'sluiced --role node'*)
      end_of_jobs
      eval "$1" >>log 2>&1
      is_there test -S "$HOME/sluice-node/sluiced.sock"
      return
      ;;
    'sluice top' | 'sluice stat -i'* | 'sluice replay'*--target*)
      eval "$1" >out 2>&1 &
      local pid=$!
      case $1 in
        *replay*) is_there eval '[ -n "$(ls -A "$SCRATCH/scratch/replay")" ]' ;;
        *) is_there test -s out ;;
      esac
      kill -TERM -- -$pid 2>/dev/null  # its group, for it is a job of this shell
      wait $pid
      ! grep -q '^sluice: .*:' out || fail "$1: $(cat out)"
      return
      ;;
  esac
  eval "$1" >out 2>&1
  status=$?
  [ $status = 0 ] || fail "$1: ended with $status: $(cat out) $(tail -3 log)"
}

: >log
app=
count=0
while IFS= read -r line; do
  case $line in *──* | *' → '* | *'▲'*) continue ;; esac
  command=${line#    }
  why=
  if skipped "$command"; then
    echo "left out, $why: $command"
    continue
  fi
  command=${command//\/scratch/$SCRATCH/scratch}
  command=${command//\/etc\/sluice/$SCRATCH/etc}
  command=${command//@$SCRATCH\/scratch=/@scratch=}
  mkdir -p "$SCRATCH/etc"
  echo "+ $command"
  try "$command"
  count=$((count + 1))
done < <(sed -n '/^    [a-z]/p' "$top/README.md")
[ "$count" -ge 20 ] || fail "only $count commands were found"
[ -s io.html ] && [ -s hydro.csv ] && [ -s mds.csv ] || fail "a file is not there: $(ls)"
