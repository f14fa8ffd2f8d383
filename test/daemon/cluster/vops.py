#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# starves
# timeout: 180
"""VOPs across nodes: the policy carries its costs to them, and reservations and weights hold.

A cluster, a relay and two nodes. One job does metadata and one reads; what they use of the file
system is one unit. Then dominant resource fairness over metadata, data and VOPs.
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../lib"))
from world import World, wait_until  # noqa: E402

COSTS = {"version": 1, "max_vops": 2000, "provisionable_vops": 1000,
         "read": [[4096, 1], [65536, 4]], "write": [[4096, 1], [65536, 4]],
         "ops": {"stat": 0.5}}


def fail(what):
    print([cluster.ask("jobs")])
    for daemon in world.daemons.values():
        print(f"--- {daemon.name}\n{daemon.log()[-2000:]}")
    sys.exit(f"FAILED: {what}")


def check(condition, what, timeout_s=20):
    if not wait_until(condition, timeout_s, 0.05):
        fail(what)


def policy(algorithm, capacity, classes):
    return {"targets": {"t": {"path": world.tree, "cost": "t.cost.json", "capacity": capacity}},
            "classes": classes, "algorithm": algorithm,
            "control": {"nodes": "n[1-2]", "default_class": "tin"}}


def of(job, resource, what):
    for row in cluster.ask("jobs").get("jobs", []):
        if row["job"] == job:
            for s in row["streams"]:
                if s["supply"] == resource + "@t":
                    return s[what]
    return -1


def near(job, resource, wanted, what="served", part=0.12):
    return abs(of(job, resource, what) - wanted) <= part * wanted


world = World({})
cost_file = os.path.join(world.dir, "t.cost.json")
with open(cost_file, "w") as out:
    json.dump(COSTS, out)
with open(os.path.join(world.tree, "data"), "wb") as out:
    out.write(bytes(1 << 20))
world.write_policy(policy("maxmin", {"vops": "calibrated"}, {
    "gold": {"t": {"vops": {"reservation": "70%", "weight": 1}}},
    "tin": {"t": {"vops": {"weight": 1}}}}))
cluster = world.cluster()
relay = world.relay("relay", [cluster])
n1 = world.node("n1", [cluster])
n2 = world.node("n2", [relay])
os.unlink(cost_file)  # the policy has it
check(lambda: all(n.ask("hello")["policy_hash"] == cluster.ask("hello")["policy_hash"]
                  for n in (n1, n2)), "the policy did not arrive with its costs")

loop = "import os\nf = os.open(%r, os.O_RDONLY)\nwhile True: %s" % (
    os.path.join(world.tree, "data"), "%s")
stats = ["python3", "-c", loop % f"os.stat({os.path.join(world.tree, 'data')!r})"]
reads = ["python3", "-c", loop % "os.pread(f, 65536, 0)"]
first = [world.run(n1, "names", stats, "gold"), world.run(n2, "names", stats, "gold"),
         world.run(n2, "reader", reads, "tin")]
# The nodes keep 1 % as their floors, which are not lent.
check(lambda: near("names", "vops", 700) and near("reader", "vops", 300),
      "a reservation over two nodes, and the rest")
said = cluster.ask("explain", job="names")["lines"]
if not any("VOP/s" in line and "reservation 700 VOP/s" in line for line in said):
    fail(f"explain says {said}")

before = cluster.ask("hello")["policy_hash"]
with open(cost_file, "w") as out:
    json.dump(COSTS, out)
world.write_policy(policy("drf", {"metadata": "2k/s", "data": "40MiB/s", "vops": "calibrated"},
                          {"gold": {}, "tin": {}}))
cluster.signal(1)
check(lambda: all(n.ask("hello")["policy_hash"] == cluster.ask("hello")["policy_hash"] != before
                  for n in (n1, n2)), "the policy with three resources did not arrive")
for process in first:
    world.end_job(process)
world.run(n1, "stats", stats)  # a job keeps the resources that it began with
world.run(n2, "pread", reads)
# Half of its dominant resource each: names of metadata and VOPs alike, reader of VOPs.
check(lambda: near("stats", "vops", 500) and near("pread", "vops", 500) and
      near("stats", "metadata", 1000) and near("pread", "data", 125 * 65536),
      "equal dominant shares over metadata, data and VOPs")
world.stop()
