#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# starves
# timeout: 240
"""Two cluster controllers, three nodes that know both: one dies, stalls, is cut off under load.

The pool belongs to whoever most nodes lend to (`pool_owner: majority`). Whatever happens: each node
obeys one controller at a time and finds one again, the sum of what all may use never exceeds the
capacity (looked at every millisecond in shared memory), the capacity is used again soon after, and
no program fails, hangs or sees a signal. With `single` a second controller takes over from a first
one that is dead.

  standby.py            each fault once
  standby.py --long     each five times, in turn from either side
"""
import argparse
import os
import signal
import sys
import time

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
sys.path.insert(0, os.path.join(TOP, "test/lib"))
import world as w  # noqa: E402
from trial import CAPACITY, Load, check, finish, policy  # noqa: E402

NODES = 3


class Scene:
    """`children` are who may choose: the nodes, or with a relay that one and the last node."""

    def __init__(self, owner, both=True, relay=False):
        self.world = w.World({})
        self.world.write_policy(policy(self.world.tree, f"n[1-{NODES}]", pool_owner=owner))
        self.parents = [self.world.cluster(name) for name in ("c1", "c2")]
        if not both:
            self.parents[1].kill()
        above = [self.world.relay("r1", self.parents)] if relay else self.parents
        self.nodes = [self.world.node(f"n{i + 1}", above if i < NODES - 1 else self.parents)
                      for i in range(NODES)]
        self.children = [above[0], self.nodes[-1]] if relay else self.nodes
        self.load = Load(self.world, self.nodes)
        check(w.wait_until(lambda: self.active(), 30, 0.05), "all found one controller")

    def active(self):
        """The controller that all children are settled at, or None."""
        return next((p.name for p in self.parents if self.is_settled(p.name)), None)

    def parent_of(self, child):
        """The name of the controller that answers this child, or None."""
        try:
            parent = child.ask("hello", timeout_s=0.3)["parent"]
            return parent["name"] if parent["connected"] else None
        except (w.Gone, KeyError):
            return None

    def lives(self, parent):
        """Nodes that a controller hears, and what it gives them together; nothing if it is dead."""
        try:
            top = parent.ask("top", timeout_s=0.3)
        except w.Gone:
            return set(), 0
        rows = [n for n in top["nodes"] if n["state"] == "live"]
        return {n["name"] for n in rows}, sum(n["granted"]["metadata@shared"] for n in rows)

    def is_settled(self, name, children=None):
        """These children are of the controller `name`, by their own word and by its word; its
        capacity is given out when it has most of them."""
        children = self.children if children is None else children
        if any(self.parent_of(c) != name for c in children):
            return False
        heard, granted = self.lives(self.world.daemons[name])
        part = len(children) / len(self.children)
        return heard == {c.name for c in children} and \
            (part <= 0.5 or granted > 0.9 * CAPACITY * part)

    def settles(self, name, what, children=None, within_s=10.0):
        t0 = time.monotonic()
        again = w.wait_until(lambda: self.is_settled(name, children), within_s, 0.02)
        check(again, f"{what}: " + (f"all is given out by {name} after "
                                    f"{time.monotonic() - t0:.2f} s" if again else
                                    f"NOT settled at {name}: {self.picture()}"))
        self.load.runs(what)

    def picture(self):
        return (f"children say {[self.parent_of(c) for c in self.children]}, controllers "
                f"{[self.lives(p) for p in self.parents]}")

    def stays(self, name, what, seconds=2.0):
        """Nobody leaves a controller that answers, because another one came."""
        end = time.monotonic() + seconds
        moved = None
        while time.monotonic() < end and not moved:
            wrong = [c.name for c in self.children if self.parent_of(c) not in (name, None)]
            moved = wrong or None
            time.sleep(0.05)
        check(not moved, f"{what}: all stay with {name}" + (f", not {moved}" if moved else ""))
        check(not self.lives(self.other(name))[0], f"{what}: the other one has no children")

    def other(self, name):
        return self.parents[0] if name == "c2" else self.parents[1]

    def end(self, what):
        self.load.end(what, 0.9 * CAPACITY)
        self.world.stop()


def killed(scene, name):
    """kill -9 of the active one; it comes back and finds nobody; returns the new active one."""
    active, standby = scene.world.daemons[name], scene.other(name)
    active.kill()
    scene.settles(standby.name, f"{name} killed")
    active.start()
    scene.stays(standby.name, f"{name} back")
    return standby.name


def stalled(scene, name):
    """SIGSTOP of the active one: its grants are stale when it wakes up."""
    active, standby = scene.world.daemons[name], scene.other(name)
    active.signal(signal.SIGSTOP)
    scene.settles(standby.name, f"{name} stopped")
    time.sleep(1)
    active.signal(signal.SIGCONT)
    scene.stays(standby.name, f"{name} continued")
    return standby.name


def cut_off(scene, name):
    """The active one is alive and hears nobody."""
    active, standby = scene.world.daemons[name], scene.other(name)
    scene.world.cut(active)
    scene.settles(standby.name, f"cable of {name} out")
    scene.world.cut(active, False)
    scene.stays(standby.name, f"cable of {name} in again")
    return standby.name


def divided(scene, name):
    """A part of the nodes sees only the active one, the rest only the other: two live controllers,
    of which one has most of the nodes. Healed, all meet there by themselves."""
    active, standby = scene.world.daemons[name], scene.other(name)
    rest, few = scene.nodes[:2], scene.nodes[2:]
    for node in rest:
        scene.world.block(node, active)
    for node in few:
        scene.world.block(node, standby)
    scene.settles(standby.name, f"{standby.name} seen by two of three", rest)
    scene.settles(name, f"{name} seen by one of three", few)
    for node in few:
        scene.world.block(node, standby, False)
    for node in rest:
        scene.world.block(node, active, False)
    scene.settles(standby.name, "all see both again", within_s=30)
    scene.stays(standby.name, "all see both again")
    return standby.name


def restarted(scene, name):
    """Back so soon that only some have left: all meet at one of the two."""
    active = scene.world.daemons[name]
    active.kill()
    time.sleep(0.7)
    active.start()
    t0 = time.monotonic()
    check(w.wait_until(scene.active, 40, 0.05), f"{name} restarted at once: all is given out by "
          f"{scene.active()} after {time.monotonic() - t0:.2f} s")
    scene.load.runs(f"{name} restarted at once")
    return scene.active() or name


def both_dead(scene, name):
    """Nobody rules: each node has its own part. The first one back takes over."""
    active, standby = scene.world.daemons[name], scene.other(name)
    active.kill()
    standby.kill()
    time.sleep(2.5)
    scene.load.runs("both dead")
    standby.start()
    scene.settles(standby.name, "both dead, the standby back")
    active.start()
    scene.stays(standby.name, "both back")
    return standby.name


def single_owner():
    """A second controller is started when the first one is dead."""
    scene = Scene("single", both=False)
    first, second = scene.parents
    first.kill()
    second.start()
    scene.settles("c2", "single: c1 dead, c2 started")
    second.kill()
    time.sleep(1)
    first.start()
    scene.settles("c1", "single: c2 dead, c1 started")
    scene.end("single")


def below_relay():
    """A relay walks to the standby as a node does, and its nodes with it."""
    scene = Scene("majority", relay=True)
    active = scene.active() or "c1"
    for act in (killed, stalled, both_dead):
        active = act(scene, active)
    scene.end("relay")


def main():
    w.need("bench/curves")
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--long", action="store_true")
    options = parser.parse_args()
    scene = Scene("majority")
    acts = [killed, restarted, stalled, both_dead]
    if scene.world.use_namespaces:
        acts += [cut_off, divided]
    else:
        print("skip  cables: needs root for network namespaces")
    active = scene.active() or "c1"
    for act in acts * (5 if options.long else 1):
        active = act(scene, active)
    scene.end("majority")
    single_owner()
    below_relay()
    return finish()


if __name__ == "__main__":
    sys.exit(main())
