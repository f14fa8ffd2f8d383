#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
"""10,000 messages that break the protocol, from a peer that has a key of its own.

A cluster controller, two honest nodes with programs, and test/bench/intruder with the key of a
third node: it claims, replays, speaks for another node, as a relay and as a parent, and sends
rubbish. Then it is let loose on a relay as well. The honest nodes keep their parent and their jobs,
what all may use never exceeds the capacity, the controller does not grow, and says who it refused.
"""
import os
import subprocess
import sys
import time

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
sys.path.insert(0, os.path.join(TOP, "test/lib"))
import world as w  # noqa: E402
from trial import Load, check, finish, policy  # noqa: E402

MESSAGES = 10_000
MOST_GROWTH_KIB = 32 * 1024


def resident_kib(daemon):
    with open(f"/proc/{daemon.pid()}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def refusals(daemon):
    """Refused messages by reason, from the daemon's own metrics."""
    address = daemon.ask("hello")["metrics"]
    prefix = daemon.namespace.prefix() if daemon.namespace else []
    code = ("import sys, urllib.request as u\n"
            "print(u.urlopen(sys.argv[1], timeout=5).read().decode())")
    text = subprocess.run([*prefix, "python3", "-c", code, f"http://{address}/metrics"],
                          stdout=subprocess.PIPE, text=True, check=True).stdout
    return {line.split('"')[1]: float(line.split()[-1]) for line in text.splitlines()
            if line.startswith("sluice_refused_messages_total{")}


class Scene:
    def __init__(self):
        self.world = w.World({})
        self.world.write_policy(policy(self.world.tree, "n[1-4]"))
        self.cluster = self.world.cluster()
        self.relay = self.world.relay("r1", [self.cluster])
        self.nodes = [self.world.node("n1", [self.cluster]), self.world.node("n2", [self.relay])]
        self.load = Load(self.world, self.nodes)
        check(w.wait_until(self.is_well, 20), "all are registered at the start")

    def is_well(self):
        """The jobs of the honest nodes are known, and both nodes are heard."""
        try:
            jobs = self.cluster.ask("jobs", timeout_s=0.5)["jobs"]
            return any(j["job"] == "job" and j["nodes"] >= 2 for j in jobs) and \
                all(d.ask("hello", timeout_s=0.5)["parent"]["connected"]
                    for d in (*self.nodes, self.relay))
        except (w.Gone, KeyError):
            return False

    def progress(self):
        return [self.world.counted(n, "job").get("metadata@shared", 0) for n in self.nodes]

    def attack(self, parent, name, victim):
        keys = self.world._keys(name, [parent], "node") if self.world.use_namespaces else "-"
        time.sleep(1)  # the parent reads its list again
        before, grown = self.progress(), resident_kib(parent)
        prefix = self.nodes[0].namespace.prefix() if self.nodes[0].namespace else []
        tool = os.path.join(w.BUILD, "bench", "intruder")
        done = subprocess.run([*prefix, tool, parent.listen, keys, name, victim, str(MESSAGES)],
                              stdout=subprocess.PIPE, text=True, timeout=150, check=False)
        sent = sum(int(line.split()[-1]) for line in done.stdout.splitlines())
        what = f"{name} against {parent.name}"
        check(done.returncode == 0 and sent >= MESSAGES, f"{what}: sent {sent} messages")
        after, grown = self.progress(), resident_kib(parent) - grown
        check(all(a > b for a, b in zip(after, before)), f"{what}: honest nodes make progress")
        check(w.wait_until(self.is_well, 5), f"{what}: honest nodes and their jobs are known")
        check(grown < MOST_GROWTH_KIB, f"{what}: {parent.name} grew by {grown} KiB")
        seen = {k: int(v) for k, v in refusals(parent).items() if v}
        check(sum(seen.values()) > 100, f"{what}: refused {seen}")
        check(parent.process.poll() is None, f"{what}: {parent.name} lives")

    def end(self):
        self.load.runs("in the end")
        self.load.end("in the end")
        self.world.stop()


def main():
    w.need("bench/intruder")
    scene = Scene()
    scene.attack(scene.cluster, "n3", "n1")
    scene.attack(scene.relay, "n4", "n2")
    scene.end()
    return finish()


if __name__ == "__main__":
    sys.exit(main())
