#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Limits by role hold for that role alone, also when a thread gets another role; and no name, line
# or word of a hostile program raises it above the limit of the job.
. test/libinterpose/common.bash

cat >"$SCRATCH/p.json" <<'E'
{"roles": {"any": {
  "fast": [{"thread": "fast*"}, {"log": {"file": "LOG", "line": "Starting fast"}},
           {"path": "*.fast"}, {"environment": "KIND=fast"}],
  "slow": {"rest": true}}},
 "channels": [{"name": "slow", "match": {"call": "write", "role": "any.slow"}, "limit": "400kB/s"},
              {"name": "quick", "match": {"call": "write", "role": "fast"}, "limit": "10GB/s"}]}
E
cat >"$SCRATCH/guest.py" <<'P'
import ctypes, os, sys, time
libc = ctypes.CDLL(None)
say = ctypes.CDLL(None).sluice_role_begin
how, folder = sys.argv[1], sys.argv[2]
begin = time.monotonic()
log = os.open(folder + "/LOG", os.O_CREAT | os.O_WRONLY)
for round in range(20):
    if how == "hostile":
        say([b"fast", b"any.fast", b"\xff" * 4000, None][round % 4])
        libc.prctl(15, [b"fast\n", b"fast*", b"", b"\x1b[2Jfast"][round % 4])
        os.write(log, [b"Starting fast\n", b"1 Starting fast" * 900, b"\0" * 9000,
                       b"Starting slow\n"][round % 4])
    if how == "changing":
        say(b"fast" if round < 10 else b"slow")
    name = "/x.fast" if how == "hostile" and round % 2 else "/x"
    fd = os.open(folder + name, os.O_CREAT | os.O_WRONLY)
    os.write(fd, b"x" * 40000)
    os.close(fd)
print(time.monotonic() - begin)
P
# under LIMITS HOW...: the seconds it took.
under() {
  local limits=$1
  shift
  timeout -s KILL 60 "$SLUICE" --run-dir "$SCRATCH/run" run --policy "$SCRATCH/p.json" $limits \
    --report "$report" --no-summary -- env "$@" "$DIR" || fail "status $?: $*"
}
delayed() { json "$report" "sum(c['delayed'] for c in d['channels'] if c['name'] == '$1')"; }
role() { json "$report" "sum(r['$2'] for r in d['roles'] if r['role'] == '$1')"; }

# 800 kB at 400 kB/s, less a burst of 50 ms; the other role waits for nothing.
took=$(under '' python3 "$SCRATCH/guest.py" plain)
between 1.9 "$took" 60 'the time of the slow role'
[ "$(delayed slow)" -gt 0 ] && [ "$(delayed quick)" = 0 ] || fail "who waited: $(cat "$report")"
[ "$(role any.slow delayed)" = "$(delayed slow)" ] || fail 'waits of the role'
[ "$(role any.slow waited_ns)" = "$(json "$report" 'sum(c["waited_ns"] for c in d["calls"])')" ] ||
  fail "waits by role are not those of the calls"

# In the middle it says that it is another.
under '' python3 "$SCRATCH/guest.py" changing >/dev/null
[ "$(role any.fast written_bytes)" = 400000 ] || fail "$(json "$report" 'd["roles"]')"
[ "$(role any.fast delayed)" = 0 ] && [ "$(delayed slow)" -gt 0 ] || fail 'the change'

# Whatever it says: the job has 400 kB/s.
took=$(under '--limit write=400kB/s' KIND=fast python3 "$SCRATCH/guest.py" hostile)
between 1.9 "$took" 60 'the time of a hostile program'
[ "$(role any.fast written_bytes)" -gt 400000 ] || fail "it had no other role: $(cat "$report")"

# Without the area nobody knows of roles: their limits hold for no call, the job's for each.
cat >"$SCRATCH/without.sh" <<'E'
rm "${LD_PRELOAD%/*}/roles"
exec python3 "$1" plain "$2"
E
took=$(under '--limit write=400kB/s' sh "$SCRATCH/without.sh" "$SCRATCH/guest.py")
between 1.9 "$took" 60 'the time without the area'
[ "$(delayed slow)" = 0 ] || fail "a role that nobody knows has a limit: $(cat "$report")"
[ "$(delayed write)" -gt 0 ] || fail 'the limit of the job'

# What explain says.
"$SLUICE" explain --policy "$SCRATCH/p.json" write "$DIR/x" >"$SCRATCH/said"
grep -q '"slow" at most 400kB/s, everywhere, role any.slow.*, if the role is any.slow' \
  "$SCRATCH/said" || fail "explain: $(cat "$SCRATCH/said")"
exit 0
