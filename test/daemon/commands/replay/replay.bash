# SPDX-License-Identifier: Apache-2.0
# What the tests of the replayer share.
. test/lib/lib.sh

# trace FILE INTERVAL COLUMNS ROW...: a wide trace; each row is the counts of an interval.
trace() {
  local file=$1 seconds=$2 columns=$3 i=0 row
  shift 3
  {
    echo "# interval: ${seconds}s"
    echo "time_s,$columns"
    for row in "$@"; do
      echo "$((i++ * seconds)),$row"
    done
  } >"$file"
}

# rows FILE WHAT [OP]: the sums over jobs per interval, one line each.
rows() {
  python3 - "$@" <<'E2'
import json, sys
wanted = [r["values"] for r in json.load(open(sys.argv[1]))["timeline"]["rows"]
          if r["what"] == sys.argv[2] and (len(sys.argv) < 4 or r["op"] == sys.argv[3])]
for i in range(max(map(len, wanted))):
    print(sum(v[i] for v in wanted if i < len(v)))
E2
}

# total FILE WHAT [OP]: over the whole replay and all jobs, from the totals.
total() {
  json "$1" "sum(t['$2'] for t in d['totals'] if '${3:-}' in ('', t['op']))"
}

# is_empty DIR WHEN: nothing of a replay is left there.
is_empty() {
  [ -z "$(ls -A "$1")" ] || fail "$2: left behind: $(ls -A "$1")"
}

# every_op: a trace that has each operation there is, for 2 s.
every_op() {
  trace "$1" 1 "open,close,getattr,rename,getxattr,setattr,mkdir,rmdir,mknod,unlink,link,readdir,\
statfs,sync,lock,read,write" \
    300,300,400,50,50,20,20,20,20,40,20,20,20,5,5,3276800,3276800 \
    100,100,400,50,50,20,20,20,20,40,20,20,20,5,5,3276800,3276800
}
