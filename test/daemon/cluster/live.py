#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# starves
# timeout: 180
"""Real daemons and a real job: what the cluster's socket promises holds on the nodes.

A limit by hand, a pause, a policy tried and applied, kill -9 and restart of the cluster and of a
relay under load. Rates are not judged here, only who may use how much (by what the daemons say) and
that calls go on or stop.
"""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../lib"))
from world import World, wait_until  # noqa: E402


def fail(what):
    print(job("wide"))
    for daemon in world.daemons.values():
        print(f"--- {daemon.name}\n{daemon.log()[-3000:]}")
    sys.exit(f"FAILED: {what}")


def check(condition, what, timeout_s=8):
    if not wait_until(condition, timeout_s, 0.05):
        fail(what)


def policy(capacity="20k/s", limit="3k/s"):
    rows = {"gold": {"t": {"metadata": {"weight": 3}}},
            "bronze": {"t": {"metadata": {"limit": limit}}}}
    return {"targets": {"t": {"path": world.tree, "capacity": {"metadata": capacity}}},
            "classes": rows,
            "control": {"nodes": "n[1-3]", "default_class": "bronze"}}


def job(name):
    for row in cluster.ask("jobs").get("jobs", []):
        if row["job"] == name:
            return row
    return None


def grant(name):
    row = job(name)
    return sum(s["grant"] for s in row["streams"]) if row else -1


def calls(node, name):
    return sum(world.counted(node, name).values())


world = World({})
world.write_policy(policy())
cluster = world.cluster()
relay = world.relay("relay", [cluster])
n1 = world.node("n1", [cluster])
n2 = world.node("n2", [relay])
n3 = world.node("n3", [relay])
loop = ["sh", "-c", f"while :; do : <{world.tree}/x; done"]
open(os.path.join(world.tree, "x"), "w").close()
check(lambda: all(n["state"] == "live" for n in cluster.ask("top")["nodes"]),
      "children are not live")
check(lambda: n2.ask("hello")["policy_hash"] == cluster.ask("hello")["policy_hash"],
      "the policy did not pass the relay")
jobs = [world.run(n, "wide", loop, "bronze") for n in (n1, n2, n3)]
world.run(n2, "gold", loop, "gold")
check(lambda: job("wide") and job("wide")["nodes"] == 3, "the job is not seen on its three nodes")
check(lambda: 2900 <= grant("wide") <= 3000, "the limit of a class over three nodes")

cluster.ask("set", job="wide", assignment="metadata=1k/s", for_s=2)
check(lambda: grant("wide") <= 1000, "a limit by hand")
check(lambda: grant("wide") > 1000, "a limit by hand that ends by itself")
cluster.ask("pause", job="wide")
check(lambda: grant("wide") == 0, "pause")


def stands():
    """The word has come to all nodes, and what was counted before it to us."""
    then = [calls(n, "wide") for n in (n1, n2, n3)]
    time.sleep(1.2)
    return then == [calls(n, "wide") for n in (n1, n2, n3)]


check(stands, "calls did not stop in a paused job")
before = [calls(n, "wide") for n in (n1, n2, n3)]
time.sleep(1.5)
after = [calls(n, "wide") for n in (n1, n2, n3)]
if any(b - a > 1 for a, b in zip(before, after)):
    fail(f"calls went on in a paused job: {before} {after}")

fresh = open(world.policy).read().replace("20k/s", "10k/s")
said = cluster.ask("policy-apply", text=fresh, dry_run=True)
if said.get("changes") != ["capacity of metadata@t: 20k/s -> 10k/s"]:
    fail(f"policy-apply --dry-run says {said}")
if "error" not in cluster.ask("policy-apply", text="{", dry_run=True):
    fail("a broken policy was accepted")
cluster.ask("policy-apply", text=fresh)
check(lambda: n3.ask("hello")["policy_hash"] == said["hash"], "the new policy did not arrive")

cluster.kill()
cluster.start()
check(lambda: job("wide") and job("wide")["state"] == "paused", "the pause was forgotten")
if cluster.ask("hello")["policy_hash"] != said["hash"]:
    fail("the policy applied was forgotten")
cluster.ask("resume", job="wide")
# Of 10k/s less the floors, a quarter: gold has weight 3 and wants all.
check(lambda: job("wide")["nodes"] == 3 and 2400 <= grant("wide") <= 2550,
      "after a restart of the cluster")
relay.kill()
relay.start()
check(lambda: job("wide")["nodes"] == 3 and 2400 <= grant("wide") <= 2550,
      "after a restart of the relay")
before = [calls(n, "wide") for n in (n1, n2, n3)]
check(lambda: all(calls(n, "wide") > b + 50 for n, b in zip((n1, n2, n3), before)),
      "calls do not go on everywhere")
if any(p.poll() is not None for p in jobs):
    fail("a program ended")
for line in cluster.ask("explain", job="wide")["lines"]:
    print(line)
world.stop()
