# SPDX-License-Identifier: Apache-2.0
# For the site-*.sh tests: one sluiced at a time, started, waited for, ended by its pid.
. test/lib/lib.sh
SLUICED=${SLUICED:-${BUILD:-$top/build}/bin/sluiced}
need curl
pids=()
trap 'kill -9 "${pids[@]}" 2>/dev/null; rm -rf "$SCRATCH"' EXIT

# policy FILE [CAPACITY]: a small one.
policy() {
  cat >"$1" <<END
{"targets": {"scratch": {"path": "$SCRATCH", "capacity": {"metadata": "${2:-10k/s}"}}},
 "control": {"nodes": "n1"}}
END
}

# start NAME FLAGS...: LOG, PID and METRICS of it; waits until it is ready.
start() {
  LOG=$SCRATCH/$1.log
  shift
  "$SLUICED" "$@" </dev/null >"$LOG" 2>&1 &
  PID=$!
  pids+=("$PID")
  until_true 60 healthy || fail "did not get ready: $* $(cat "$LOG")"
}

healthy() {
  METRICS=$(sed -n 's/.* metrics=\([^ ]*\).*/\1/p' "$LOG" | head -1)
  [ -n "$METRICS" ] && curl -sf "http://$METRICS/health" >/dev/null
}

# stop PID: ended well by SIGTERM.
stop() {
  kill "$1" || fail "pid $1 is gone"
  wait "$1"
  local status=$?
  [ $status = 0 ] || fail "status $status after SIGTERM: $(cat "$LOG")"
}
