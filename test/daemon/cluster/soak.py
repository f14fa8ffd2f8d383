#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
"""A day compressed: jobs come and go, every daemon is restarted again and again.

Watches resident memory and open descriptors of each role, programs that fail, the sum of what all
may use, and segments left behind. Memory is compared within the last third of the time, in which,
and just before which, nobody is restarted.

  soak.py                    one minute
  soak.py --minutes 30       what `make soak` runs
"""
import argparse
import collections
import os
import random
import signal
import subprocess
import sys
import time

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
sys.path.insert(0, os.path.join(TOP, "test/lib"))
import world as w  # noqa: E402

CAPACITY = 8000
WARM_S = 15  # from the last restart until what a daemon needs is compared with what it needs later
COMMANDS = (
    ["sh", "-c", 'for i in 1 2 3 4 5; do ls -lR "$0" >/dev/null; done'],
    ["tar", "cf", "/dev/null", "-C"],
    ["python3", "-c", "import os, sys\nfor d, _, f in os.walk(sys.argv[1]):\n"
                      "  for n in f: open(os.path.join(d, n)).read()"],
)


def policy(tree):
    share = lambda weight: {"shared": {"metadata": {"weight": weight}}}
    return {"targets": {"shared": {"path": tree, "capacity": {"metadata": f"{CAPACITY}/s"}}},
            "classes": {"gold": share(4), "bronze": share(1)},
            "control": {"nodes": "n[1-3]", "default_class": "bronze"}}


def history_kib(jobs):
    """What a node may keep of so many jobs: a row of 32 KB each (runtime/history.h), and one of
    8 KB for each op that a job made, ten at most here (runtime/op_history.h)."""
    return 32 * min(jobs, 1024) + 8 * min(10 * jobs, 4096)


def size_of(daemon, jobs):
    """Resident KiB, open descriptors, and the jobs that it has had."""
    pid = daemon.pid()
    with open(f"/proc/{pid}/status") as status:
        rss = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
    return rss, len(os.listdir(f"/proc/{pid}/fd")), jobs.had[daemon]


class Jobs:
    """Short jobs on random nodes; counts how they end."""

    def __init__(self, world, nodes, rng):
        self.world, self.nodes, self.rng = world, nodes, rng
        self.running, self.number, self.failed = [], 0, []
        self.had = collections.Counter()  # jobs by node

    def step(self):
        for process, command in list(self.running):
            if process.poll() is not None:
                self.running.remove((process, command))
                self.world.jobs.remove(process)
                error = process.stderr.read()
                process.stderr.close()
                if process.returncode != 0:
                    self.failed.append(
                        f"{command[0]}: {process.returncode} {error.strip()[-200:]}")
        while len(self.running) < 6:
            self.number += 1
            command = [*self.rng.choice(COMMANDS), self.world.tree]
            if command[0] == "tar":
                command.append(".")
            # Some names are joined by several at once.
            number = self.number - self.rng.randrange(2)
            qos_class = ("gold", "bronze")[number // 2 % 2]
            node = self.rng.choice(self.nodes)
            self.had[node] += 1
            self.running.append((self.world.run(node, f"job{number}", command, qos_class),
                                 command))


def measure(world, roles, minutes, restart_s, rng):
    jobs = Jobs(world, [d for n, d in roles.items() if n.startswith("n")], rng)
    end = time.monotonic() + minutes * 60
    quiet_from = end - minutes * 20  # the last third: nobody is restarted
    next_restart = time.monotonic() + restart_s
    sizes = {name: [] for name in roles}
    restarts = 0
    events = []
    while time.monotonic() < end:
        jobs.step()
        if next_restart <= time.monotonic() < quiet_from - WARM_S:
            name, daemon = rng.choice(list(roles.items()))
            how = rng.choice((signal.SIGKILL, signal.SIGTERM))
            events.append(f"{time.monotonic_ns()} {name} {how.name}")
            daemon.kill(how)
            time.sleep(rng.random())
            daemon.start()
            events.append(f"{time.monotonic_ns()} {name} started")
            restarts += 1
            next_restart = time.monotonic() + restart_s
        if time.monotonic() >= quiet_from:
            for name, daemon in roles.items():
                sizes[name].append(size_of(daemon, jobs))
        if sys.stderr.isatty():
            print(f"\r\033[K{end - time.monotonic():.0f} s left, {jobs.number} jobs, "
                  f"{restarts} restarts", end="", file=sys.stderr)
        time.sleep(0.2)
    for process, command in jobs.running:
        process.wait(60)
    return jobs, sizes, restarts, events


def story(events, lines):
    """The restarts and the overloads that curves saw, in the order of time."""
    told = [line for line in lines if " over " in line or line.endswith(" within")]
    return sorted(events + told, key=lambda line: int(line.split()[0]))


def grew(sizes):
    """Most in the second and in the last quarter: of memory, of descriptors, of jobs."""
    n = len(sizes)
    early, late = sizes[n // 4:n // 2], sizes[3 * n // 4:]
    return [(max(s[i] for s in early), max(s[i] for s in late)) for i in (0, 1, 2)]


def show_left(roles):
    """Each segment that is left: its files, what was written down of it, who is in it, and what its
    node said of it."""
    for name, daemon in roles.items():
        jobs = os.path.join(daemon.run_dir, "jobs")
        for job in os.listdir(jobs) if os.path.isdir(jobs) else []:
            print(name, job, sorted(os.listdir(os.path.join(jobs, job))))
            try:
                with open(os.path.join(jobs, job, "job.json")) as record:
                    print("   ", record.read().strip())
            except OSError as e:
                print("   ", e)
            said = subprocess.run([w.SLUICE, "--run-dir", daemon.run_dir, "--json", "stat", job],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            print("   ", *[line.strip() for line in said.stdout.splitlines()[:12]])
            with open(daemon.log_path) as log:
                print(*("    " + line.rstrip() for line in log if job in line), sep="\n")


def main():
    w.need("bench/curves")
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    print(f"seed {options.seed}")
    world = w.World({})
    world.write_policy(policy(world.tree))
    for i in range(60):
        with open(os.path.join(world.tree, str(i)), "w") as f:
            f.write("x" * i)
    cluster = world.cluster()
    relay = world.relay("r1", [cluster])
    roles = {"cluster": cluster, "r1": relay}
    roles.update({f"n{i}": world.node(f"n{i}", [relay]) for i in (1, 2, 3)})
    curves, curves_path = world.watch_curves("metadata@shared", CAPACITY)
    restart_s = min(60.0, options.minutes * 60 / 12)
    jobs, sizes, restarts, events = measure(world, roles, options.minutes, restart_s,
                                    random.Random(options.seed))
    failures = list(jobs.failed)
    print(f"{jobs.number} jobs, {restarts} restarts, {len(jobs.failed)} programs failed")
    for name, seen in sizes.items():
        (rss0, rss1), (fds0, fds1), (jobs0, jobs1) = grew(seen)
        print(f"{name:<9} resident {rss0} -> {rss1} KiB, descriptors {fds0} -> {fds1}, "
              f"jobs {jobs0} -> {jobs1}")
        if rss1 > rss0 * 1.1 + 2048 + history_kib(jobs1) - history_kib(jobs0):
            failures.append(f"{name} grew from {rss0} to {rss1} KiB")
        if fds1 > fds0 + 24:
            failures.append(f"{name} went from {fds0} to {fds1} descriptors")
    left = lambda: [d for n, r in roles.items() if n.startswith("n")
                    for d in os.listdir(os.path.join(r.run_dir, "jobs"))]
    if not w.wait_until(lambda: not left(), 60):
        failures.append(f"segments are left: {left()}")
        show_left(roles)
    curves.send_signal(signal.SIGTERM)
    curves.wait()
    lines = open(curves_path).read().splitlines()
    words = lines.pop().split()
    print(f"capacity {CAPACITY}: at most {float(words[1]):.1f} usable, above it in {words[6]} of "
          f"{words[4]} looks")
    if words[6] != "0":
        print("\n".join(story(events, lines)))
        failures.append("capacity was exceeded")
    for name, daemon in roles.items():
        failures += [f"{name}: {line}" for line in daemon.log().splitlines()
                     if "cannot be taken over" in line]
    world.stop()
    for sentence in failures:
        print("FAIL", sentence)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
