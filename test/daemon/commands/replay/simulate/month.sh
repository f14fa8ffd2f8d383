#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Thirty days of four jobs in virtual time: all that was offered is done in the end, nobody was
# above the capacity, and what each policy does to a job that wants too much can be seen.
set -u
. test/lib/lib.sh
need python3
[ -x "$(dirname "$SLUICE")/sluice-replay" ] || skip "needs sluice-replay"
cd "$SCRATCH" || exit 1

python3 - <<'EOF_TRACE'
import random
rng = random.Random(4)
with open("month.csv", "w") as out:
    out.write("# interval: 60s\n# title: a month\n# synthetic: yes\n")
    out.write("time_s,open,close,getattr,job\n")
    left = [0] * 4
    for i in range(30 * 24 * 60):
        for j in range(4):
            if left[j] == 0 and rng.random() < 0.002:
                left[j] = rng.randrange(10, 300)
            rate = (25, 35, 35, 80)[j] * rng.lognormvariate(0, 0.4) * (3 if left[j] else 0.8)
            left[j] = max(0, left[j] - 1)
            n = int(rate * 60)
            out.write(f"{i * 60},{n},{n},{n},job{j}\n")
EOF_TRACE

# policy ALGORITHM
policy() {
  cat <<END
{"targets": {"scratch": {"path": "/scratch", "capacity": {"metadata": "1k/s"}}},
 "classes": {"small": {"scratch": {"metadata": {"reservation": "150/s"}}},
             "large": {"scratch": {"metadata": {"reservation": "400/s"}}}},
 "control": {"default_class": "small"}, "algorithm": "$1"}
END
}

for algorithm in maxmin static; do
  policy "$algorithm" >"$algorithm.json"
  "$SLUICE" replay month.csv --simulate --policy "$algorithm.json" --class job3=large \
    -o "$algorithm.out" >"$algorithm.txt" || fail "$algorithm ended with $?"
  grep -q "month.csv under $algorithm.json ($algorithm)" "$algorithm.txt" ||
    fail "no table: $(cat "$algorithm.txt")"
done

python3 - <<'EOF_CHECK' || fail "the results are not right"
import json
def rows(name, what, job, key="supply", of="metadata@scratch"):
    d = json.load(open(name + ".out"))
    for r in d["timeline"]["rows"]:
        if r["what"] == what and r.get("job") == job and r.get(key) == of:
            return r["values"], d["timeline"]["interval_s"]
    raise SystemExit(f"{name}: no row {what} of {job}")

for name in ("maxmin", "static"):
    d = json.load(open(name + ".out"))
    assert d["kind"] == "simulation" and len(d["jobs"]) == 4, d["jobs"]
    assert all(j["finished"] for j in d["jobs"])
    assert {j["job"]: j["class"] for j in d["jobs"]} == {
        "job0": "small", "job1": "small", "job2": "small", "job3": "large"}
    done = {}
    for j in ("job0", "job1", "job2", "job3"):
        offered, interval_s = rows(name, "offered", j)
        done[j], _ = rows(name, "done", j)
        assert abs(sum(offered) - sum(done[j])) < 1e-4 * sum(offered), (name, j)
        opens, _ = rows(name, "done", j, "op", "open")
        assert abs(sum(opens) - sum(done[j]) / 3) < 1e-3 * sum(opens), (name, j)
    assert len(done["job0"]) <= 3600
    for values in zip(*done.values()):
        assert sum(values) <= 1000 * interval_s * 1.0001, (name, values)
blocked = {n: sum(rows(n, "blocked", "job3")[0]) for n in ("maxmin", "static")}
assert blocked["maxmin"] < 0.7 * blocked["static"], blocked
EOF_CHECK
