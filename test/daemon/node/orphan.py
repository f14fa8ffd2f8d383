#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# starves
# timeout: 120
"""A node loses its parent: what its job may do then, by the policy's word.

Also here: a job that began before any policy is told from others, a policy that is not enforced
delays nobody, and SIGHUP reads changed keys.
"""
import os
import shutil
import signal
import sys

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
sys.path.insert(0, os.path.join(TOP, "test/lib"))
import world as w  # noqa: E402
from trial import check, finish  # noqa: E402

CAPACITY = 1000
GUEST = "import os, sys\nwhile True: os.stat(sys.argv[1])"


def policy(tree, **control):
    return {"targets": {"t": {"path": tree, "capacity": {"metadata": f"{CAPACITY}/s"}}},
            "control": {"nodes": "n[1-2]", "escrow": 0.2, "floor": 0.02, **control}}


class Scene:
    def __init__(self, **control):
        self.world = w.World({})
        self.world.write_policy(policy(self.world.tree, **control))
        self.cluster = self.world.cluster()
        self.node = self.world.node("n1", [self.cluster])
        w.wait_until(lambda: self.node.ask("hello")["policy_hash"] != "", 10)

    def busy(self, job="busy"):
        return self.world.run(self.node, job, ["python3", "-c", GUEST, self.world.tree])

    def row(self, job="busy"):
        rows = [j for j in self.node.ask("jobs")["jobs"] if j["job"] == job]
        return rows[0] if rows else {"streams": [], "not_governed": []}

    def stream(self, job="busy"):
        return next(iter(self.row(job)["streams"]), {"grant": -1.0, "served": -1.0})

    def is_orphan(self):
        return any("Nobody answers" in line
                   for line in self.node.ask("explain", job="busy")["lines"])


def orphan(mode, sentence, holds):
    scene = Scene(orphans=mode)
    scene.busy()
    # No escrow of the other node is lent: it was never here.
    full = CAPACITY * 0.7
    check(w.wait_until(lambda: scene.stream()["served"] > full, 15), f"{mode}: the parent grants")
    scene.cluster.kill()
    check(w.wait_until(scene.is_orphan, 20), f"{mode}: the node is an orphan")
    check(w.wait_until(lambda: holds(scene.stream()), 10), f"{mode}: {sentence}")
    scene.world.stop()


def orphans():
    own = CAPACITY * 0.22 / 2
    orphan("safe", "its own share is left", lambda s: 0 < s["served"] <= own * 1.2)
    orphan("keep", "the last grant stays", lambda s: s["served"] > CAPACITY * 0.6)
    orphan("open", "nothing is delayed", lambda s: s["served"] > CAPACITY * 2)


def shadow():
    scene = Scene(enforce=False)
    scene.busy()
    check(w.wait_until(lambda: scene.stream()["served"] > CAPACITY * 2
                       and scene.stream()["would_delay"] > 0, 15),
          "a policy that is not enforced delays nobody and says what it would")
    scene.world.stop()


def early():
    """The parent comes after the job."""
    world = w.World({})
    world.write_policy(policy(world.tree))
    cluster = world.cluster()
    cluster.kill()
    node = world.node("n1", [cluster])
    scene = Scene.__new__(Scene)
    scene.world, scene.cluster, scene.node = world, cluster, node
    scene.busy("early")
    check(w.wait_until(lambda: bool(scene.row("early").get("job")), 10), "a job before any policy")
    cluster.start()
    check(w.wait_until(lambda: scene.row("early")["not_governed"] == ["metadata@t"], 15),
          "it is called not governed once there is a policy")
    scene.busy("late")
    check(w.wait_until(lambda: bool(scene.row("late").get("job")), 10)
          and scene.row("late")["not_governed"] == [], "a later one is governed")
    lines = node.ask("explain", job="early")["lines"]
    check(any("started before the policy" in line for line in lines), "explain says why")
    world.stop()


def new_keys():
    """The parent's key is changed; the node's copy follows, and SIGHUP makes it count."""
    scene = Scene()
    keys = os.path.join(scene.world.dir, "keys")
    known = os.path.join(keys, "n1", "parent.pub")
    if not os.path.exists(known):
        print("skip  keys are for namespaces only")
        return scene.world.stop()
    is_connected = lambda: scene.node.ask("hello")["parent"]["connected"]
    check(w.wait_until(is_connected, 10), "the node is connected")
    scene.cluster.kill()
    check(w.wait_until(lambda: not is_connected(), 10), "a dead parent is missed")
    old = os.path.join(keys, "cluster")
    os.rename(old, old + ".old")
    w.subprocess.run([w.SLUICED, "keys", "new", "--dir", old, "cluster"], check=True,
                     stdout=w.subprocess.DEVNULL)
    shutil.copy(os.path.join(old + ".old", "allowed"), os.path.join(old, "allowed"))
    scene.cluster.start()
    check(not w.wait_until(is_connected, 3), "a parent with another key is not believed")
    shutil.copy(os.path.join(old, "public"), known)
    scene.node.signal(signal.SIGHUP)
    check(w.wait_until(is_connected, 10), "after SIGHUP the new key counts")
    scene.world.stop()


if __name__ == "__main__":
    w.need("bin/sluiced")
    for part in (orphans, shadow, early, new_keys):
        if len(sys.argv) < 2 or part.__name__ in sys.argv[1:]:
            part()
    sys.exit(finish())
