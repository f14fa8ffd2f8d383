#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 180
"""Fifteen policies that differ in the names of twelve targets, one after the other: the nodes stay
live and granted, also after a rollback and after a restart of the controller. A policy with more
supplies than daemons tell each other is refused by check and apply alike, and disturbs nobody."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../lib"))
import world as w  # noqa: E402

SUPPLY = "metadata@kept"


def policy(prefix, targets=12):
    found = {"kept": {"path": world.tree, "capacity": {"metadata": "1000/s"}}}
    for i in range(targets):
        found[f"{prefix}-{i}"] = {"path": f"{world.dir}/{prefix}/{i}",
                                  "capacity": {"metadata": "1000/s", "data": "1MB/s"}}
    return {"targets": found, "control": {"nodes": "n[1-2]"}}


def say(verb, text):
    world.write_policy(text)
    words = ["--run-dir", cluster.run_dir, "policy", verb, world.policy]
    return subprocess.run([w.SLUICE, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)


def apply(prefix):
    said = say("apply", policy(prefix))
    if said.returncode != 0:
        fail(f"{prefix} is not applied: {said.stdout}")
    if not w.wait_until(lambda: have_heard(prefix), 20, 0.05):
        fail(f"{prefix} is not heard of: {cluster.ask('top')['nodes']}")


def have_heard(prefix):
    """The nodes know the supplies of this policy."""
    return all(f"metadata@{prefix}-0" in [s["supply"] for s in node.ask("top")["supplies"]]
               for node in nodes)


def are_served():
    try:
        rows = {n["name"]: n for n in cluster.ask("top")["nodes"]}
    except w.Gone:
        return False
    return all(name in rows and rows[name]["state"] == "live"
               and rows[name]["granted"].get(SUPPLY, 0) > 0 for name in ("n1", "n2"))


def check(what):
    if not w.wait_until(are_served, 20, 0.05):
        fail(f"{what}: {cluster.ask('top')['nodes']}")
    if "refused a message" in cluster.log():
        fail(f"{what}: a message was refused")
    print(f"ok    {what}", flush=True)


def fail(what):
    for daemon in world.daemons.values():
        print(f"--- {daemon.name}\n{daemon.log()[-2000:]}")
    sys.exit(f"FAILED: {what}")


world = w.World({})
world.write_policy(policy("p0"))
cluster = world.cluster()
nodes = [world.node(f"n{i}", [cluster]) for i in (1, 2)]
for node in nodes:
    world.run(node, "job", ["python3", "-c", "import os\nwhile True: os.stat('" + world.tree +
                            "/x') if os.path.exists('" + world.tree + "/x') else 0"])
check("both have a grant")
for n in range(1, 16):
    apply(f"p{n}")
    check(f"policy {n}")
apply("p0")
check("back to the first")
cluster.kill()
cluster.start()
check("after a restart of the controller")
for verb in ("check", "apply"):
    said = say(verb, policy("many", 130))
    if said.returncode == 0 or "at most 240" not in said.stdout:
        fail(f"{verb} of too many: {said.returncode} {said.stdout}")
check("after a policy that is refused")
