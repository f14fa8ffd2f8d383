#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# sqlite3 (journal and write-ahead log) under limits: no corruption, the same content.
# timeout: 60
. test/guests/common
need sqlite3
workload() {
  echo "pragma journal_mode = $1;"
  echo 'create table t(a integer primary key, b text); create index i on t(b);'
  for n in $(seq 60); do
    echo "insert into t(b) select hex(a.value * $n) from generate_series(1, 20) a;" |
      sed 's/generate_series(1, 20) a/json_each("[1,2,3,4,5,6,7,8,9,10]") a/'
    [ $((n % 5)) = 0 ] && echo "delete from t where a % 7 = $((n % 7));"
  done
  echo 'vacuum; pragma integrity_check; select count(*) from t;'
}
for mode in delete wal; do
  workload $mode >"$SCRATCH/$mode.sql"
  bare=$(sqlite3 -batch "$SCRATCH/bare-$mode" ".read $SCRATCH/$mode.sql") || fail "bare $mode"
  gated=$(limited --limit write=3MiB/s --limit fsync=300/s --limit metadata=500/s -- \
    sqlite3 -batch "$SCRATCH/gated-$mode" ".read $SCRATCH/$mode.sql") || fail "$mode: $?"
  delayed
  [ "$bare" = "$gated" ] || fail "$mode: output differs: $gated"
  case $gated in *ok*) ;; *) fail "$mode: integrity: $gated" ;; esac
  sqlite3 "$SCRATCH/bare-$mode" .dump >"$SCRATCH/bare.dump"
  sqlite3 "$SCRATCH/gated-$mode" .dump >"$SCRATCH/gated.dump"
  cmp "$SCRATCH/bare.dump" "$SCRATCH/gated.dump" || fail "$mode: the dumps differ"
done
