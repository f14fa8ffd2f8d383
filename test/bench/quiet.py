#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What does the daemon of a node cost the programs beside it, that have what they want?

A program spins on one processor and notes how long it was not running, and in all, while sluiced is
pinned to the same one: without the daemon, with it and no job, with sleeping jobs, and with jobs
that work within their limit. Wake-ups are context switches of all its threads, voluntary and not.
Aims: none without a job, at most ten a second and 0.1 % of the processor with eight.

  test/bench/quiet.py             60 s each, about 7 min
  test/bench/quiet.py --short     10 s each
"""
import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile
import time

from common import BUILD, SLUICE, Broken, finish, machine, need_stage, say_machine, \
    write_json

SLUICED = os.path.join(os.path.dirname(SLUICE), "sluiced")
JOBS = 8
# A job that is new is looked after more closely for half a minute.
SETTLED_S = 35
WORK = """
import os, sys, time
while True:
    os.stat(sys.argv[1])
    time.sleep(0.05)
"""


class Node:
    """A daemon without a parent, pinned; its jobs run on the other processors."""

    def __init__(self, scratch, processor):
        self.run_dir = os.path.join(scratch, "run")
        self.tree = os.path.join(scratch, "tree")
        os.mkdir(self.tree)
        policy = os.path.join(scratch, "policy.json")
        with open(policy, "w", encoding="utf-8") as out:
            json.dump({"targets": {"t": {"path": self.tree, "capacity": {"metadata": "10000/s"}}},
                       "classes": {"even": {"t": {"metadata": {"weight": 1}}}},
                       "control": {"default_class": "even"}}, out)
        with open(os.path.join(scratch, "log"), "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                ["taskset", "-c", str(processor), SLUICED, "--role", "node", "--name", "n1",
                 "--run-dir", self.run_dir, "--policy", policy, "--metrics", "127.0.0.1:0"],
                stdout=log, stderr=log)
        self.jobs = []
        self.wait_for(lambda: os.path.exists(os.path.join(self.run_dir, "sluiced.sock")))

    def wait_for(self, condition):
        end = time.monotonic() + 30
        while not condition():
            if time.monotonic() > end or self.process.poll() is not None:
                raise Broken("the daemon does not do what it should")
            time.sleep(0.05)

    def start(self, command, others):
        for i in range(JOBS):
            self.jobs.append(subprocess.Popen(
                ["taskset", "-c", others, SLUICE, "--run-dir", self.run_dir, "run", "--no-summary",
                 "--job", f"j{len(self.jobs)}", "--", *command]))
        time.sleep(SETTLED_S)

    def end_jobs(self):
        for job in self.jobs:
            job.kill()
            job.wait()
        self.jobs = []
        jobs_dir = os.path.join(self.run_dir, "jobs")
        self.wait_for(lambda: not os.listdir(jobs_dir))

    def stop(self):
        for job in self.jobs:
            job.kill()
            job.wait()
        self.process.terminate()
        self.process.wait()

    def cost(self):
        """Context switches and ns on a processor, of all threads so far."""
        switches = spent_ns = 0
        for task in glob.glob(f"/proc/{self.process.pid}/task/*"):
            with open(os.path.join(task, "status"), encoding="utf-8") as status:
                switches += sum(int(line.split()[1]) for line in status if "ctxt_switches" in line)
            with open(os.path.join(task, "schedstat"), encoding="utf-8") as stat:
                spent_ns += int(stat.read().split()[0])
        return switches, spent_ns


def observe(spinner, processor, seconds, node):
    """One row: the daemon's wake-ups and time, and what the spinning program saw."""
    before = node.cost() if node else (0, 0)
    out = subprocess.run(["taskset", "-c", str(processor), spinner, str(seconds)],
                         stdout=subprocess.PIPE, text=True)
    after = node.cost() if node else (0, 0)
    if out.returncode != 0:
        raise Broken("the spinning program failed")
    longest_ns, count, lost_ns = (int(word) for word in out.stdout.split())
    return {"wakes_per_s": (after[0] - before[0]) / seconds,
            "processor_percent": (after[1] - before[1]) / seconds / 1e7,
            "longest_us": longest_ns / 1e3, "interruptions_per_s": count / seconds,
            "lost_percent": lost_ns / seconds / 1e7}


def measure(scratch, spinner, processor, others, seconds):
    rows = {"no daemon": observe(spinner, processor, seconds, None)}
    node = Node(scratch, processor)
    try:
        time.sleep(6)  # what it does when it starts
        rows["no job"] = observe(spinner, processor, seconds, node)
        node.start(["sleep", "infinity"], others)
        rows[f"{JOBS} sleeping jobs"] = observe(spinner, processor, seconds, node)
        node.end_jobs()
        node.start([sys.executable, "-c", WORK, node.tree], others)
        rows[f"{JOBS} working jobs"] = observe(spinner, processor, seconds, node)
    finally:
        node.stop()
    rows["no daemon, again"] = observe(spinner, processor, seconds, None)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--seconds", type=int)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    seconds = options.seconds or (10 if options.short else 60)
    need_stage()
    processors = sorted(os.sched_getaffinity(0))
    processor = processors[-1]
    others = ",".join(str(p) for p in processors[:-1] or processors)
    facts = machine()
    say_machine(facts)
    spinner = os.path.join(BUILD, "bench", "spinner")
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as scratch:
        rows = measure(scratch, spinner, processor, others, seconds)
    print(f"{'beside':<18}{'wake-ups/s':>11}{'processor':>11}{'longest':>12}{'over 5 us':>12}"
          f"{'lost':>9}")
    for name, row in rows.items():
        print(f"{name:<18}{row['wakes_per_s']:>11.1f}{row['processor_percent']:>9.3f} %"
              f"{row['longest_us']:>9.0f} us{row['interruptions_per_s']:>10.0f}/s"
              f"{row['lost_percent']:>7.2f} %")
    write_json(options.json, {"machine": facts, "seconds": seconds, "rows": rows})


finish(main)
