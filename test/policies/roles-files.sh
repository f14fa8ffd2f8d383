#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Roles by kind of file and by process: checkpoints of SQLite against what SQLite says of them, and
# rsync beside another program against what rsync says.
. test/lib/lib.sh
need sqlite3 rsync
report=$SCRATCH/report.json

# under EXAMPLE CMD...: under a policy of policies/examples, leaving $report.
under() {
  local example=$1
  shift
  rm -f "$report"
  timeout -s KILL 90 "$SLUICE" --run-dir "$SCRATCH/run" run --report "$report" --no-summary \
    --policy "$top/policies/examples/roles-$example.json" -- "$@" || fail "$example: status $?"
}
of() { json "$report" "sum(r['$2'] for r in d['roles'] if r['role'] == '$1')"; }
# near WHAT OURS THEIRS: but for a twentieth.
near() {
  echo "$1: $2 by role, $3 by the program"
  between "$(awk "BEGIN { print $3 * 0.95 }")" "$2" "$(awk "BEGIN { print $3 * 1.05 }")" "$1"
}

# Each transaction writes its pages once, and the checkpoint after it moves them all, so it says how
# many there were.
{
  echo 'pragma page_size=4096; pragma journal_mode=wal; pragma wal_autocheckpoint=0;'
  echo 'create table t (id integer primary key, v blob);'
  for i in $(seq 20); do
    echo "with recursive n(i) as (select 1 union all select i + 1 from n where i < 500)
      insert into t (v) select randomblob(2000) from n; pragma wal_checkpoint(passive);"
  done
} >"$SCRATCH/script.sql"
under sqlite sqlite3 -init /dev/null "$SCRATCH/x.db" <"$SCRATCH/script.sql" >"$SCRATCH/said"
pages=$(awk -F'|' 'NF == 3 { n += $3 } END { print n }' "$SCRATCH/said")
[ "$pages" -gt 2000 ] || fail "only $pages pages: $(cat "$SCRATCH/said")"
near 'checkpoints write' "$(of sqlite.checkpoint written_bytes)" $((pages * 4096))
near 'commits write' "$(of sqlite.commit written_bytes)" $((pages * (4096 + 24)))

# A backup beside a service: by process, and only the backup waits at its limit.
mkdir -p "$SCRATCH/from" "$SCRATCH/to"
for i in 1 2 3; do head -c 3000000 /dev/urandom >"$SCRATCH/from/$i"; done
cat >"$SCRATCH/both" <<'E'
rsync -a -W --stats "$1/from/" "$1/to/" >"$1/rsync" &
dd if=/dev/zero of="$1/service" bs=100k count=50 2>/dev/null
wait
E
under backup sh "$SCRATCH/both" "$SCRATCH"
cmp "$SCRATCH/from/3" "$SCRATCH/to/3" || fail 'the copy'
size=$(sed -n 's/^Literal data: \([0-9,]*\) bytes/\1/p' "$SCRATCH/rsync" | tr -d ,)
near 'rsync reads' "$(of backup.copy read_bytes)" "$size"
near 'rsync writes' "$(of backup.copy written_bytes)" "$size"
near 'the service writes' "$(of service.requests written_bytes)" 5120000
[ "$(of service.requests delayed)" = 0 ] && [ "$(of backup.copy delayed)" -gt 0 ] ||
  fail "who waited: $(json "$report" 'd["roles"]')"
exit 0
