#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
"""Daemons are killed, stopped and cut off under load; programs must not notice.

A cluster controller, a relay and two nodes; on each node programs that check what they read.
Whatever happens to the daemons: no program fails, hangs or sees a signal, the sum of what the nodes
may use never exceeds the capacity (looked at every millisecond in shared memory), and everybody is
registered again within 2 s of the last restart.

  faults.py            each role alone, one order of all three, SIGSTOP, cable, full disk
  faults.py --long     every order of killing and of restarting
"""
import argparse
import itertools
import os
import signal
import subprocess
import sys
import time

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
sys.path.insert(0, os.path.join(TOP, "test/lib"))
import world as w  # noqa: E402
from trial import Load, check, finish, policy  # noqa: E402

REGISTERED_S = 2.0


class Scene:
    def __init__(self, extra=()):
        self.world = w.World({})
        self.world.write_policy(policy(self.world.tree, "n[1-2]"))
        self.cluster = self.world.cluster(extra=extra)
        self.relay = self.world.relay("r1", [self.cluster], extra=extra)
        self.nodes = [self.world.node(f"n{i}", [self.relay], extra=extra) for i in (1, 2)]
        self.load = Load(self.world, self.nodes)
        check(w.wait_until(self.is_registered, 15), "all are registered at the start")
        # By then they listen to SIGTERM, which ends them.
        check(w.wait_until(lambda: all(self.done_on(n) for n in self.nodes), 30), "all work")

    def roles(self):
        return {"cluster": self.cluster, "relay": self.relay, "node": self.nodes[0]}

    def is_registered(self):
        """The cluster controller sees the job on both nodes, and every node its parent."""
        try:
            jobs = self.cluster.ask("jobs", timeout_s=0.3)["jobs"]
            return (any(j["job"] == "job" and j["nodes"] == 2 for j in jobs)
                    and all(n.ask("hello", timeout_s=0.3)["parent"]["connected"]
                            for n in self.nodes + [self.relay]))
        except (w.Gone, KeyError, TypeError):
            return False

    def registered_again(self, what):
        t0 = time.monotonic()
        again = w.wait_until(self.is_registered, 10)
        seconds = time.monotonic() - t0
        check(again and seconds <= REGISTERED_S,
              f"{what}: all registered again" + (f" after {seconds:.2f} s" if again else ": NEVER"))

    def done_on(self, node):
        """Operations so far."""
        return self.world.counted(node, "job").get("metadata@shared", 0)

    def progress(self):
        return sum(self.done_on(n) for n in self.nodes)

    def end(self, what):
        self.load.end(what)
        left = [d for n in self.nodes for d in os.listdir(os.path.join(n.run_dir, "jobs"))]
        gone = w.wait_until(lambda: not [d for n in self.nodes for d in
                                         os.listdir(os.path.join(n.run_dir, "jobs"))], 5)
        check(gone, f"{what}: no segment is left {left if not gone else ''}")
        self.world.stop()


def kill_each(scene):
    for role, daemon in scene.roles().items():
        daemon.kill()
        time.sleep(1)
        daemon.start()
        scene.registered_again(f"{role} killed")
        scene.load.runs(f"{role} killed")


def kill_in_order(scene, killed, started):
    roles = scene.roles()
    for role in killed:
        roles[role].kill()
        time.sleep(0.3)
    before = scene.progress()
    time.sleep(2)
    check(scene.progress() > before, f"{' '.join(killed)} dead: programs make progress")
    for role in started:
        roles[role].start()
        time.sleep(0.1)
    what = f"killed {' '.join(killed)}, started {' '.join(started)}"
    scene.registered_again(what)
    scene.load.runs(what)


def stop_each(scene):
    for role, daemon in scene.roles().items():
        daemon.signal(signal.SIGSTOP)
        time.sleep(5)
        daemon.signal(signal.SIGCONT)
        scene.registered_again(f"{role} stopped for 5 s")
        scene.load.runs(f"{role} stopped for 5 s")


def cut_each(scene):
    if not scene.world.use_namespaces:
        print("skip  cables: needs root for network namespaces")
        return
    for daemon in (scene.nodes[0], scene.relay):
        scene.world.cut(daemon)
        time.sleep(5)
        scene.world.cut(daemon, False)
        t0 = time.monotonic()
        again = w.wait_until(scene.is_registered, 15)
        check(again, f"cable of {daemon.name} out for 5 s: registered again after "
                     f"{time.monotonic() - t0:.1f} s")
        scene.load.runs(f"cable of {daemon.name}")


def strangers(scene):
    """10,000 garbage messages from somebody without a key."""
    address = scene.relay.listen[len("tcp://"):].rsplit(":", 1)
    code = ("import os, socket, sys\n"
            "for i in range(10000):\n"
            "    try:\n"
            "        s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 2)\n"
            "        s.send(os.urandom(64 + i % 400)); s.close()\n"
            "    except OSError: pass\n")
    prefix = scene.nodes[0].namespace.prefix() if scene.nodes[0].namespace else []
    subprocess.run([*prefix, "python3", "-c", code, *address], check=True, timeout=120)
    scene.registered_again("10,000 garbage messages")
    scene.load.runs("10,000 garbage messages")


def full_disk():
    """State directories on a file system without room: all goes on."""
    if os.geteuid() != 0:
        print("skip  full disk: needs root to mount")
        return
    place = os.path.join(os.environ.get("SCRATCH") or "/var/tmp", f"full-{os.getpid()}")
    os.makedirs(place)
    mount = ["mount", "-t", "tmpfs", "-o", "size=128k,mode=0755", "none", place]
    if subprocess.run(mount, check=False).returncode:
        print("skip  full disk: cannot mount")
        return
    try:
        scene = Scene(extra=("--state-dir", place + "/{name}"))
        try:
            with open(os.path.join(place, "filler"), "wb", buffering=0) as f:
                while True:
                    f.write(b"x" * 4096)
        except OSError:
            pass  # full, which is what was wanted
        for daemon in scene.roles().values():
            daemon.kill()
            daemon.start()
        scene.registered_again("full disk")
        scene.load.runs("full disk")
        scene.end("full disk")
    finally:
        subprocess.run(["umount", "-l", place], check=False)
        os.rmdir(place)


def main():
    w.need("bench/curves")
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--long", action="store_true")
    options = parser.parse_args()
    scene = Scene()
    kill_each(scene)
    orders = list(itertools.permutations(("node", "relay", "cluster")))
    pairs = itertools.product(orders, orders) if options.long else [(orders[3], orders[4])]
    for killed, started in pairs:
        kill_in_order(scene, killed, started)
    stop_each(scene)
    cut_each(scene)
    strangers(scene)
    scene.end("faults")
    full_disk()
    return finish()


if __name__ == "__main__":
    sys.exit(main())
