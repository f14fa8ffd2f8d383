#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A bad configuration ends with status 2 and one line that says where and what was meant; nothing
# was made or changed before.
set -u
. test/lib/site.bash
cd "$SCRATCH" || fail "no scratch"
policy p.json
echo '{"role": "cluster", "listen": "tcp://127.0.0.1:*", "plain": true, "policy": "p.json"}' \
  >good.json

refused() { # WANTED FLAGS...
  local wanted=$1
  shift
  timeout 20 "$SLUICED" --run-dir "$SCRATCH/run" "$@" >out 2>&1
  local status=$?
  [ $status = 2 ] || fail "$*: status $status: $(cat out)"
  grep -qF -- "$wanted" out || fail "$*: wanted '$wanted', got: $(cat out)"
  [ "$(wc -l <out)" = 1 ] || fail "$*: more than one line: $(cat out)"
  [ ! -e run ] || fail "$*: made the run directory"
}

refused '--role is missing'
refused 'did you mean "--policy"?' --polcy x
refused 'did you mean "cluster"?' --role clutser
refused "$SCRATCH/none.json: No such file" --config "$SCRATCH/none.json"
refused "$SCRATCH/none.json: No such file" --config good.json --policy none.json
printf '{"role": "cluster",\n "lisen": "x"}' >bad.json
refused 'bad.json:2:2: unknown key "lisen" in the configuration; did you mean "listen"?' \
  --config bad.json
cat >p2.json <<END
{"targets": {"s": {"path": "/s", "capacity": {"metadata": "10k/s"}}},
 "classes": {"a": {"s": {"metadata": {"reservation": "6k/s"}}},
             "b": {"s": {"metadata": {"reservation": "7k/s"}}}}}
END
refused '6k/s (a) + 7k/s (b) = 13k/s, 3k/s more than the 10k/s there are' \
  --config good.json --policy p2.json
refused 'keys' --role cluster --policy p.json --listen tcp://127.0.0.1:7421 --keys "$SCRATCH/nokeys"

"$SLUICED" --config good.json --run-dir run --check >out 2>&1 || fail "check: $(cat out)"
grep -q 'the configuration is fine' out || fail "check says: $(cat out)"
[ ! -e run ] || fail "check made the run directory"
# What matters in a cluster only is not told of a node that divides alone.
mkdir there
cat >p3.json <<END
{"targets": {"there": {"path": "$PWD/there", "capacity": {"metadata": "10k/s"}},
             "later": {"path": "$PWD/later", "capacity": {"metadata": "10k/s"}}}}
END
check() {
  "$SLUICED" --run-dir run --policy p3.json --check "$@" >out 2>&1 || fail "check: $(cat out)"
}
check --role node --name n1
grep -q "^warning: .*/p3.json: target later: $PWD/later is not there now" out ||
  fail "check says: $(cat out)"
grep -q 'there:\|control.nodes' out && fail "check says: $(cat out)"
check --role cluster --listen tcp://127.0.0.1:7421 --plain --name c1
grep -q 'control.nodes' out || fail "check of a cluster says: $(cat out)"
grep -q 'not there' out && fail "check of a cluster says: $(cat out)"
"$SLUICED" --help >out || fail "help"
for flag in role name run-dir state-dir parent listen keys plain policy cycle local-cycle metrics \
  metrics-jobs log-level user config check version; do
  grep -q -- "--$flag" out || fail "help does not know --$flag"
done
[ "$("$SLUICED" --version)" = "sluiced $("$SLUICE" --version | grep -o '[0-9.]*$')" ] ||
  fail "the versions differ"
