#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How soon are the rates right after something changed?

Two jobs that want everything share 20,000 operations/s, each on a node of its own below one cluster
controller. Events: a job arrives, ends, returns from idle, changes its class. Time runs from the
event (for an arrival: from the first call of its first process) until the curves of both jobs are
within 5 % of what they should be, as seen in shared memory every millisecond.

  test/bench/reaction.py             50 trials each, about 6 min
  test/bench/reaction.py --short     5 trials each
"""
import argparse
import bisect
import json
import os
import signal
import statistics
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "test/lib"))
import world as w  # noqa: E402

CAPACITY = 20_000
CYCLE_MS = 100
GUEST = """
import os, sys, time
os.stat(sys.argv[1])
print(time.monotonic_ns(), flush=True)
while True:
    os.stat(sys.argv[1])
"""


def policy(tree):
    share = lambda weight: {"shared": {"metadata": {"weight": weight}}}
    return {"targets": {"shared": {"path": tree, "capacity": {"metadata": f"{CAPACITY}/s"}}},
            "classes": {"even": share(1), "heavy": share(3)},
            "control": {"nodes": "n[1-2]", "default_class": "even", "cycle": f"{CYCLE_MS}ms"}}


class Curves:
    """What test/bench/curves saw: per job, times and rates."""

    def __init__(self, world):
        self.tool, self.path = world.watch_curves("metadata@shared", CAPACITY)

    def read(self):
        rates = {}
        with open(self.path) as lines:
            for line in lines:
                words = line.split()
                if line.endswith("\n") and len(words) == 4:
                    times, values = rates.setdefault(words[1], ([], []))
                    times.append(int(words[0]))
                    values.append(float(words[2]))
        return rates

    def end(self):
        self.tool.send_signal(signal.SIGTERM)
        self.tool.wait()
        with open(self.path) as lines:
            return lines.read().splitlines()[-1]


def at(rates, job, t_ns):
    """The rate of a job at a time; 0 when it has none."""
    times, values = rates.get(job, ([], []))
    i = bisect.bisect_right(times, t_ns) - 1
    return values[i] if i >= 0 else 0.0


def right_after(rates, t0_ns, wanted):
    """ms from t0 until all rates are within 5 % of `wanted` {job: rate} and stay so for 50 ms."""
    events = sorted({t for job in wanted for t in rates.get(job, ([], []))[0] if t > t0_ns})
    for t in [t0_ns] + events:
        if all(abs(at(rates, j, u) - r) <= 0.05 * r for j, r in wanted.items()
               for u in (t, t + 50_000_000)):
            return (t - t0_ns) / 1e6
    return None


def start(world, node, job):
    """A guest; returns it with the time of its first call."""
    process = world.run(node, job, ["python3", "-c", GUEST, world.tree], "even",
                        stdout=subprocess.PIPE)
    line = process.stdout.readline()
    if not line:
        sys.exit(f"{job} did not start: {process.stderr.read()}")
    return process, int(line)


def settle(seconds=1.2):
    time.sleep(seconds)


def trial(world, cluster, nodes, number):
    """One round of events; yields (event, t0_ns, wanted rates)."""
    name = f"b{number}"
    a, b = "n1/a", f"n2/{name}"
    half = {a: CAPACITY / 2, b: CAPACITY / 2}
    process, first_ns = start(world, nodes[1], name)
    settle()
    yield "arrival", first_ns, half
    os.killpg(process.pid, signal.SIGSTOP)
    settle()
    t0 = time.monotonic_ns()
    os.killpg(process.pid, signal.SIGCONT)
    settle()
    yield "return from idle", t0, half
    t0 = time.monotonic_ns()
    answer = cluster.ask("set", job=name, assignment="class=heavy", for_s=None)
    if "error" in answer:
        sys.exit(f"set: {answer['error']}")
    settle()
    yield "change of class", t0, {a: CAPACITY / 4, b: CAPACITY * 3 / 4}
    t0 = time.monotonic_ns()
    world.end_job(process, signal.SIGKILL)
    settle()
    yield "end", t0, {a: CAPACITY}


def run(trials, relay):
    world = w.World({})
    world.write_policy(policy(world.tree))
    cluster = world.cluster()
    above = [world.relay("r1", [cluster])] if relay else [cluster]
    nodes = [world.node(f"n{i}", above) for i in (1, 2)]
    curves = Curves(world)
    start(world, nodes[0], "a")
    settle(3)
    events = []
    for i in range(trials):
        for event in trial(world, cluster, nodes, i):
            events.append(event)
            if sys.stderr.isatty():
                print(f"\r\033[Ktrial {i + 1} of {trials}: {event[0]}", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    rates = curves.read()
    last = curves.end()
    world.stop()
    return [(e, right_after(rates, t0, wanted)) for e, t0, wanted in events], last


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--trials", type=int)
    parser.add_argument("--relay", action="store_true", help="through a relay")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    trials = options.trials or (5 if options.short else 50)
    results, last = run(trials, options.relay)
    rows = {}
    for event, ms in results:
        rows.setdefault(event, []).append(ms)
    print(f"{'event':<18}{'trials':>7}{'median':>10}{'worst':>10}   aim: <= {2 * CYCLE_MS} ms")
    for event, values in rows.items():
        known = [v for v in values if v is not None]
        verdict = "pass" if len(known) == len(values) and max(known) <= 2 * CYCLE_MS else "OVER"
        print(f"{event:<18}{len(values):>7}{statistics.median(known) if known else -1:>7.0f} ms"
              f"{max(known) if known else -1:>7.0f} ms   {verdict}"
              + (f"   never right: {len(values) - len(known)}" if len(known) < len(values) else ""))
    words = last.split()
    print(f"capacity {CAPACITY}/s: the sum of all rates was at most {float(words[1]):.1f}/s, "
          f"above it in {words[6]} of {words[4]} looks")
    if options.json:
        with open(options.json, "w") as out:
            json.dump({"ms": rows, "most": float(words[1])}, out, indent=2)


if __name__ == "__main__":
    main()
