#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the commands say of a running job whose policy has roles: stat, top and explain. And what
# policy check, policy show and the help say of roles.
set -u
. test/lib/lib.sh
need python3
RUN="$SCRATCH/run"
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$SCRATCH"' EXIT
S() { "$SLUICE" --run-dir "$RUN" "$@" >"$SCRATCH/out" 2>&1; }

cat >"$SCRATCH/p.json" <<'E'
{"roles": {"db": {"flush": {"thread": "flush*"}, "idle": {"thread": "never"},
                  "clients": {"rest": true}}},
 "channels": [{"name": "data:db.clients", "match": {"call": "data", "role": "clients"},
               "limit": "1MB/s"}]}
E
cat >"$SCRATCH/db.py" <<'P'
import ctypes, os, sys, threading
folder = sys.argv[1]
def work(name, size):
    ctypes.CDLL(None).prctl(15, name)
    fd = os.open(f"{folder}/{size}", os.O_CREAT | os.O_WRONLY)
    while not os.path.exists(folder + "/over"):
        os.pwrite(fd, b"x" * size, 0)
threads = [threading.Thread(target=work, args=a) for a in ((b"flush", 10000), (b"client", 20000))]
for t in threads:
    t.start()
for t in threads:
    t.join()
P
S policy check "$SCRATCH/p.json" || fail "$(cat "$SCRATCH/out")"
grep -qx 'role db.flush: of threads named flush\*' "$SCRATCH/out" &&
  grep -qx 'channel data:db.clients: read, write at most 1MB/s, everywhere, role clients' \
    "$SCRATCH/out" || fail "check: $(cat "$SCRATCH/out")"
S policy show "$SCRATCH/p.json" && grep -q '"role": "db.flush"' "$SCRATCH/out" || fail 'show'
S run --help && grep -qF 'SELECTOR[:ROLE]=AMOUNT[@TARGET]' "$SCRATCH/out" || fail 'help'
S run --policy "$SCRATCH/p.json" --limit data:flsh=1MB/s -- true && fail 'a role that is none'
grep -qF 'there is no role "flsh" (it has: db.flush, db.idle, db.clients)' "$SCRATCH/out" ||
  fail "$(cat "$SCRATCH/out")"

"$SLUICE" --run-dir "$RUN" run --policy "$SCRATCH/p.json" --job store --no-summary -- \
  python3 "$SCRATCH/db.py" "$SCRATCH" &
at_work() {
  S --json stat store && json "$SCRATCH/out" '[r["calls"] > 9 for r in d["roles"]]' |
    grep -q '\[True, False, True'
}
until_true at_work || fail "no roles: $(cat "$SCRATCH/out")"
S stat store && grep -qE '^  db\.flush +[0-9]+ +0 B +[0-9.]+ [KMG]iB +0 +0  thread$' \
  "$SCRATCH/out" || fail "stat: $(cat "$SCRATCH/out")"
grep -q 'db.idle' "$SCRATCH/out" && fail 'a role that nobody has'
S explain --job store && grep -qE '^  db\.clients ' "$SCRATCH/out" ||
  fail "explain: $(cat "$SCRATCH/out")"
shows() {
  S top --batch -n 2 -i 0.5 && grep -qE '^store .* data:db\.flush .* any ' "$SCRATCH/out"
}
until_true shows || fail "top: $(cat "$SCRATCH/out")"
# A limit by role has that name already, in bytes as well.
S --json top --batch -n 2 -i 0.5 || fail 'top as JSON'
[ "$(grep -o '"supply":"data:db.clients"' "$SCRATCH/out" | sort | uniq -c | wc -l)" -le 1 ] ||
  fail 'two rows of one role'
S top --batch -n 1 && grep -qE 'data:db\.clients .* [0-9]+[KMG]i ' "$SCRATCH/out" ||
  fail "not in bytes: $(cat "$SCRATCH/out")"
touch "$SCRATCH/over"
wait
exit 0
