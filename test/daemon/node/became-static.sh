#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A shell of a job becomes a static program, which keeps its number and its slot: it is told of as
# escaped, and `explain` says that it is not limited.
set -u
. test/lib/node.bash
need gcc
cat >"$SCRATCH/busy.c" <<'END'
#include <fcntl.h>
#include <unistd.h>
int main(void) {
  static char room[1 << 16];
  int const fd = open("/dev/zero", O_RDONLY);
  for (int i = 0; i < 64; ++i)
    if (read(fd, room, sizeof room) < 0) return 1;
  return read(0, room, 1) < 0;
}
END
gcc -static "$SCRATCH/busy.c" -o "$SCRATCH/busy" || skip 'needs a static libc'
policy 5k/s
start_node
mkfifo "$SCRATCH/hold"
exec 9<>"$SCRATCH/hold"
$S run --job j --no-summary -- sh -c "stat $SCRATCH; exec $SCRATCH/busy" <"$SCRATCH/hold" \
  >/dev/null 2>"$SCRATCH/err" &
job=$!
over() {
  kill "$job" 2>/dev/null
  wait "$job" 2>/dev/null
  end_node
  rm -rf "$SCRATCH"
}
trap over EXIT
became() { [ "$(cat "/proc/$job/comm")" = busy ]; }
until_true became || fail "it is no static program: $(cat "/proc/$job/comm" "$SCRATCH/err")"
until_true 60 is "[('$job', 'static program')]" \
  "[(str(e['pid']), e['why']) for j in d for e in j['escaped']]" ||
  fail "not told of: $(cat "$SCRATCH/jobs.json")"
$S explain "$job" >"$SCRATCH/said" 2>&1 || fail "explain: $(cat "$SCRATCH/said")"
grep -q 'not limited: .*static' "$SCRATCH/said" || fail "explain says $(cat "$SCRATCH/said")"
