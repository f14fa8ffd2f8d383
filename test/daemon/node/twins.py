#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# starves
# timeout: 120
"""Two nodes with one key: the one that is refused does not use what the other lends."""
import os
import sys

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
sys.path.insert(0, os.path.join(TOP, "test/lib"))
import world as w  # noqa: E402
from trial import check, finish  # noqa: E402

CAPACITY = 1000
GUEST = "import os, sys\nwhile True: os.stat(sys.argv[1])"
REFUSED = "refused by the parent"


def twin_of(world, node):
    """A copy of a node, with its key, on another machine."""
    copy = world.node("copy", start=False)
    copy.argv = [word.replace(node.run_dir, copy.run_dir) for word in node.argv]
    return copy.start()


def main():
    world = w.World({})
    if not world.use_namespaces:
        print("skip  keys are for namespaces only")
        return world.stop()
    world.write_policy({
        "targets": {"t": {"path": world.tree, "capacity": {"metadata": f"{CAPACITY}/s"}}},
        "control": {"nodes": "n[1-2]", "escrow": 0.5, "floor": 0.02}})
    cluster = world.cluster()
    node = world.node("n1", [cluster])
    world.run(node, "busy", ["python3", "-c", GUEST, world.tree])

    def served():
        rows = [j for j in node.ask("jobs")["jobs"] if j["job"] == "busy"]
        streams = rows[0]["streams"] if rows else []
        return streams[0]["served"] if streams else -1

    check(w.wait_until(lambda: served() > CAPACITY / 2, 15), "the parent grants")
    twin_of(world, node)
    # By the third time what it lent itself has ended long ago.
    check(w.wait_until(lambda: node.log().count(REFUSED) >= 3, 40), "it is told again and again")
    check(w.wait_until(lambda: 0 <= served() < CAPACITY * 0.05, 10), "its floor is left")
    again = node.log().count(REFUSED) + 1
    most = [0]
    w.wait_until(lambda: most.append(served()) or node.log().count(REFUSED) >= again, 20)
    check(max(most) < CAPACITY * 0.05, f"and no more until it is told next: {max(most)}")
    check("is its key on two machines?" in cluster.log(), "the cluster warns of it")
    world.stop()


if __name__ == "__main__":
    w.need("bin/sluiced")
    main()
    sys.exit(finish())
