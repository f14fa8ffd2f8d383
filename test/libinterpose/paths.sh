#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# --paths: each counted call is noted at the directory it is about, by whatever name or descriptor,
# in all processes of the job, with its bytes and waits.
. test/libinterpose/common.bash

# noted SPECS ROWS CMD…: limited, and paths are noted. What is noted adds up to what is counted.
noted() {
  local specs=$1 rows=$2 spec args=()
  shift 2
  for spec in ${specs//,/ }; do args+=(--limit "$spec"); done
  rm -f "$report"
  timeout -s KILL "${TIME:-60}" "$SLUICE" --run-dir "$SCRATCH/run" run "${args[@]}" \
    --paths="$rows" --paths-depth 16 --report "$report" --no-summary -- "$@" ||
    fail "status $?: $*"
  [ "${SUMS:-same}" = same ] || return 0
  json "$report" '(sum(p["calls"] for p in d["paths"]) + d["paths_other_calls"] ==
    sum(c["calls"] for c in d["calls"]))' | grep -q True || fail "noted and counted differ: $*"
}
# at DIRECTORY FIELD: of its row, 0 without one.
at() { json "$report" "sum(p['$2'] for p in d['paths'] if p['path'] == '$1')"; }
is() { [ "$(at "$1" "$2")" = "$3" ] || fail "$2 at $1: $(at "$1" "$2"), not $3"; }

mkdir -p "$DIR/t/d" "$DIR/out"
echo x >"$DIR/t/d/file"
ln -s ../t/d "$DIR/out/in"
for form in absolute slashes dotdot_in cwd cwd_dotdot dirfd dirfd_dotdot dirfd_absolute o_path \
  dirfd_dup; do
  noted "stat=100k/s@$DIR/t" 20 "$PROGRAMS/path_forms" $form "$DIR" 40
  is "$DIR/t/d" calls 40
done
# By a link: the open where its name says, what is done with the descriptor where the file is.
noted "metadata=100k/s@$DIR,data=1GiB/s@$DIR" 20 "$PROGRAMS/path_forms" link_in "$DIR" 40
is "$DIR/out/in" calls 40
is "$DIR/t/d" bytes 40
is "$DIR/t/d" calls 80

# Real programs.
for d in one two two/three; do
  mkdir -p "$DIR/forest/$d"
  for i in 1 2 3 4 5; do head -c $((i * 1000)) /dev/zero >"$DIR/forest/$d/$i"; done
done
(cd "$DIR" && SUMS=any noted "metadata=100k/s@$DIR,data=1GiB/s@$DIR" 50 \
  sh -c 'tar cf - forest | cat >copy.tar; tar xf copy.tar -C out') || exit 1
for d in one two two/three; do
  is "$DIR/forest/$d" bytes 15000
  is "$DIR/out/forest/$d" bytes 15000
done
[ "$(at "$DIR" bytes)" -ge $((2 * $(stat -c %s "$DIR/copy.tar"))) ] ||
  fail "the archive: $(at "$DIR" bytes)"

# Descriptors that are inherited, given another number, and used again for another file.
cat >"$SCRATCH/fds.py" <<'P'
import os, subprocess, sys
root = sys.argv[1]
os.makedirs(root + "/a/b"), os.makedirs(root + "/c")
os.chdir(root + "/a")
fd = os.open("b/x", os.O_CREAT | os.O_WRONLY)
os.write(fd, b"1" * 100)
subprocess.run(["sh", "-c", f"printf %s 23456 >&{fd}"], pass_fds=[fd], check=True)
other = os.open(root + "/c/y", os.O_CREAT | os.O_WRONLY)
os.write(other, b"2" * 10)
os.dup2(other, fd)
os.write(fd, b"3" * 7)
os.close(fd), os.close(other)
again = os.open("b/x", os.O_WRONLY)
os.write(again, b"4" * 1000)
if os.fork() == 0:
    os.write(again, b"5" * 5000)
    os._exit(0)
os.wait()
with open("../c/../c/z", "wb", buffering=0) as f:
    f.write(b"6" * 20000)
P
noted "data=1GiB/s@$DIR" 20 python3 "$SCRATCH/fds.py" "$DIR/fds"
is "$DIR/fds/a/b" bytes 6105
is "$DIR/fds/c" bytes 20017

# Waits are those of the calls.
noted "open=100/s@$DIR" 20 sh -c "for i in 1 2 3 4; do
  cat $DIR/forest/one/*
  cat $DIR/forest/two/[1-5]
done >/dev/null"
json "$report" '(sum(p["waited_ns"] for p in d["paths"]) ==
  sum(c["waited_ns"] for c in d["calls"]) > 0)' | grep -q True ||
  fail "waits: $(json "$report" 'd["paths"]')"
[ "$(at "$DIR/forest/two" waited_ns)" -gt 0 ] || fail "no wait at two"

# More directories than slots: the one that is used most is there, and nothing is off by more than
# its share.
cat >"$SCRATCH/many.py" <<'P'
import os, sys
root = sys.argv[1]
os.makedirs(root + "/hot")
open(root + "/hot/f", "w").close()
for i in range(1500):
    os.mkdir(f"{root}/{i}")
    os.path.exists(f"{root}/{i}/f")
    for _ in range(3):
        os.stat(root + "/hot/f")
P
mkdir "$DIR/many"
noted "stat=1M/s@$DIR/many" 5 python3 "$SCRATCH/many.py" "$DIR/many"
hot=$(json "$report" '[(p["calls"], p["over"]) for p in d["paths"] if p["path"][-4:] == "/hot"][0]')
python3 - "$hot" "$(json "$report" 'sum(c["calls"] for c in d["calls"])')" <<'P' || fail "hot: $hot"
import sys
calls, over = eval(sys.argv[1])
assert calls >= 4500 and calls - over <= 4520 and over <= int(sys.argv[2]) / 512
P
[ "$(json "$report" 'len(d["paths"])')" = 5 ] || fail "rows"
exit 0
