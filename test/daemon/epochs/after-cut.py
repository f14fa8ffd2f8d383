#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
"""Gates of cluster epochs while cables are cut: a cluster, a relay with n1, and n2 beside it.

A job writes on n1 and opens manifests on n2 and n1. While the relay, n1 or the cluster is cut off,
before the question or in the middle of it, or what one of them says vanishes, an open is EIO within
bounded time and makes no file. When the cable is back it opens, and what the job wrote on the other
node is durable then. The same for a relay that is killed and started again.
"""
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
sys.path.insert(0, os.path.join(TOP, "test/lib"))
import world as w  # noqa: E402
from trial import check, finish  # noqa: E402

MOST_S = 60  # no open takes longer; patience is 8 s

# Writes whenever it is told to, by a file that it removes then.
WORKER = """
import os, sys, time
fd = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR)
while True:
    if os.path.exists(sys.argv[2]):
        os.write(fd, b"d" * 65536)
        os.unlink(sys.argv[2])
    time.sleep(0.01)
"""
OPENS = """
import errno, os, sys
try:
    os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY)
    print("ok")
except OSError as e:
    print(errno.errorcode[e.errno])
"""


def dirty(path):
    """Pages of a file that no disk has; 0 where this kernel does not say."""
    at, seen = (ctypes.c_uint64 * 2)(0, 0), (ctypes.c_uint64 * 5)()
    with open(path, "rb") as f:
        done = ctypes.CDLL(None).syscall(451, f.fileno(), at, seen, 0)
    return seen[1] + seen[2] if done == 0 else 0


class Scene:
    def __init__(self):
        self.world = w.World({})
        self.world.write_policy({
            "targets": {"shared": {"path": self.world.tree, "after": {
                "write": "*/MANIFEST-*", "durable": "*/rank-*.dat", "patience": "8s"}}},
            "control": {"nodes": "n[1-2]"}})
        self.cluster = self.world.cluster()
        self.relay = self.world.relay("r1", [self.cluster])
        self.nodes = [self.world.node("n1", [self.relay]), self.world.node("n2", [self.cluster])]
        self.data = os.path.join(self.world.tree, "rank-1.dat")
        self.more = os.path.join(self.world.dir, "more")
        self.worker = self.world.run(self.nodes[0], "job",
                                     ["python3", "-c", WORKER, self.data, self.more])
        self.number = 0

    def write(self):
        with open(self.more, "w"):
            pass
        if not w.wait_until(lambda: not os.path.exists(self.more), 30):
            raise RuntimeError("the worker does not write: " + self.nodes[0].log()[-1000:])

    def ask(self, node):
        self.number += 1
        path = os.path.join(self.world.tree, f"MANIFEST-{self.number}")
        return path, self.world.run(node, "job", ["python3", "-c", OPENS, path],
                                    stdout=subprocess.PIPE)

    def answer(self, asked):
        """What became of it. A gate that is open, with data that is not durable, is a failure."""
        path, process = asked
        try:
            got = process.communicate(timeout=MOST_S)[0].strip()
        except subprocess.TimeoutExpired:
            got = "no answer"
        if got == "ok" and dirty(self.data) != 0:
            check(False, f"a gate is open, and {dirty(self.data)} pages are dirty")
        if got != "ok" and os.path.exists(path):
            check(False, f"{got}, and the file is there")
        return got

    def opens(self, node):
        return self.answer(self.ask(node)) == "ok"

    def all_open(self, what):
        self.write()
        for node in self.nodes:
            check(w.wait_until(lambda node=node: self.opens(node), 60),
                  f"{what}: {node.name} opens")

    def stays_shut(self, what, node):
        self.write()
        got = self.answer(self.ask(node))
        why = [line for line in self.cluster.log().splitlines() if "stays closed" in line]
        check(got == "EIO", f"{what}: {node.name} {got}; {why[-1][-90:] if why else ''}")


@contextlib.contextmanager
def cut(scene, daemon):
    scene.world.cut(daemon)
    yield
    scene.world.cut(daemon, False)


def in_the_middle(scene):
    """Its data is durable, and nobody hears of it."""
    scene.write()
    scene.nodes[0].signal(signal.SIGSTOP)
    asked = scene.ask(scene.nodes[1])
    time.sleep(1)
    with cut(scene, scene.relay):
        scene.nodes[0].signal(signal.SIGCONT)
        got = scene.answer(asked)
    check(got == "EIO", f"cut off in the middle: {got}")


def main():
    if os.geteuid() != 0:
        print("skip: needs root for network namespaces")
        return 77
    scene = Scene()
    scene.all_open("at the start")
    with cut(scene, scene.relay):
        for node in scene.nodes:
            scene.stays_shut("the relay is cut off", node)
    scene.all_open("the relay is back")
    with cut(scene, scene.nodes[0]):
        scene.stays_shut("a node below it is cut off", scene.nodes[1])
    scene.all_open("the node is back")
    in_the_middle(scene)
    scene.all_open("back from the middle")
    scene.world.block(scene.relay, scene.cluster)
    scene.stays_shut("what the relay says vanishes", scene.nodes[1])
    scene.world.block(scene.relay, scene.cluster, False)
    scene.all_open("it is heard again")
    with cut(scene, scene.cluster):
        for node in scene.nodes:
            scene.stays_shut("the cluster is cut off", node)
    scene.all_open("the cluster is back")
    scene.relay.kill()
    scene.stays_shut("the relay is dead", scene.nodes[1])
    scene.relay.start()
    scene.all_open("the relay was started again")
    scene.world.stop()
    return finish()


if __name__ == "__main__":
    sys.exit(main())
