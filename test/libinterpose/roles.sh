#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Roles: whose bytes are whose, by name of the thread, log line, file, lineage, environment, title
# and by what the program says; after late names, in children, and up to a kill.
. test/libinterpose/common.bash

cat >"$SCRATCH/kinds.json" <<'E'
{"roles": {"kinds": {"program": "*/roles",
  "journal":  {"path": "LOG"},
  "told":     {"path": "never"},
  "maker":    {"thread": "work:maker"},
  "worker":   {"thread": "work:*"},
  "fast":     {"log": {"file": "LOG", "line": "Starting job * kind fast"}},
  "numbered": {"log": {"file": "LOG", "line": "Beginning numbered", "thread_word": 2}},
  "consumer": {"reads": {"made_by": "maker", "until": "END"}},
  "appender": {"made_by": "maker", "call": "write"},
  "wal":      {"path": "*.wal"},
  "others":   {"rest": true}}}}
E

# of_roles POLICY CMD…: under it, leaving $report; the status is that of the command.
of_roles() {
  local policy=$1
  shift
  rm -f "$report"
  timeout -s KILL 60 "$SLUICE" --run-dir "$SCRATCH/run" run --policy "$policy" --report "$report" \
    --no-summary -- "$@"
}
# of ROLE FIELD: 0 where there is no such row.
of() { json "$report" "sum(r['$2'] for r in d['roles'] if r['role'] == '$1')"; }
wrote() {
  [ "$(of "kinds.$1" written_bytes)" = "$2" ] ||
    fail "$1 wrote $(of "kinds.$1" written_bytes), not $2: $(json "$report" 'd["roles"]')"
}
# known_by ROLE SOURCE: all its bytes are.
known_by() {
  json "$report" "[s['source'] for r in d['roles'] if r['role'] == 'kinds.$1'
    for s in r['sources'] if s['bytes']]" | grep -qxF "['$2']" ||
    fail "$1 is not known by $2: $(json "$report" 'd["roles"]')"
}

mkdir "$DIR/r"
of_roles "$SCRATCH/kinds.json" "$PROGRAMS/roles" "$DIR/r" early late other inherited told lines \
  line_of_another make read_made append_made suffix fork || fail "status $?"
wrote worker $((1000 + 2000 + 4000 + 8000 + 4096000))
wrote told $((32000 + 7))
wrote fast $((32001 + 2))
wrote numbered 128000
wrote maker 256000
wrote consumer 512000
[ "$(of kinds.consumer read_bytes)" = 24 ] || fail "consumer read $(of kinds.consumer read_bytes)"
wrote appender 1024000
wrote wal 2048000
wrote others $((10 + 20 + 3 + 4 + 64000 + 100 + 5 + 17 + 6))
known_by worker thread
known_by told told
known_by fast log
known_by consumer lineage
known_by appender lineage
known_by wal file
known_by others rest
# Each byte has a role, and no byte has two.
json "$report" '(sum(r["written_bytes"] + r["read_bytes"] for r in d["roles"]) ==
  sum(c["bytes"] for c in d["calls"]))' | grep -q True || fail "bytes are lost"

# What was counted before a kill is there, and the job ends as its program did.
of_roles "$SCRATCH/kinds.json" "$PROGRAMS/roles" "$DIR/r" early crash
[ $? = 137 ] || fail "the kill"
wrote worker 1009

# A program that no group is about has no role, and its child may have one by its environment.
cat >"$SCRATCH/shell.json" <<'E'
{"roles": {"backup": {"program": "*/dd", "nightly": {"environment": "KIND=night*"},
                      "by-hand": {"rest": true}},
           "page": {"program": "*/python3*", "pages": {"title": "python: pag?s*"}}}}
E
head -c 1234 /dev/zero >"$DIR/small"
of_roles "$SCRATCH/shell.json" sh -c "cat $DIR/small >$DIR/a
  KIND=nightly dd if=/dev/zero of=$DIR/b bs=3000 count=1 2>/dev/null
  KIND=daily dd if=/dev/zero of=$DIR/c bs=5000 count=1 2>/dev/null" || fail "status $?"
[ "$(of backup.nightly written_bytes) $(of backup.by-hand written_bytes)" = "3000 5000" ] ||
  fail "by environment: $(json "$report" 'd["roles"]')"
[ "$(json "$report" 'sum(r["written_bytes"] for r in d["roles"] if r["role"] is None)')" = 1234 ] ||
  fail "without a role: $(json "$report" 'd["roles"]')"

# A process that calls itself something else, as PostgreSQL's do.
cat >"$SCRATCH/title.py" <<'P'
import ctypes, os, sys
fd = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY)
os.write(fd, b"x" * 50)
libc = ctypes.CDLL(None)
first = ctypes.c_void_p.in_dll(libc, "program_invocation_name").value
for name, size in ((b"python: pages 7", 700), (b"python: done", 9)):
    if os.fork() == 0:
        ctypes.memmove(first, name + b"\0", len(name) + 1)
        os.write(fd, b"y" * size)
        os._exit(0)
    os.wait()
P
of_roles "$SCRATCH/shell.json" python3 "$SCRATCH/title.py" "$DIR/titled" || fail "status $?"
[ "$(of page.pages written_bytes)" = 700 ] || fail "by title: $(json "$report" 'd["roles"]')"
exit 0
