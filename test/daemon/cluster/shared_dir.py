#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 180
"""Two controllers with one --shared-dir: what is changed by hand survives either of them.

A pause, a limit and an applied policy are made at the first one; it is killed, and the second one
has them. What is withdrawn there is withdrawn at the first one, too. A controller that was stopped
writes nothing over what the other one wrote, and neither does a write that hung. A directory that
others may write in is not believed. An applied policy whose file was edited does not come back.
"""
import json
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../lib"))
from trial import check, finish, policy  # noqa: E402
from world import BUILD, Gone, World, need, wait_until  # noqa: E402

JOBS = ("still", "slow", "free")


def holds(condition):
    try:
        return condition()
    except (Gone, KeyError, IndexError):
        return False


def becomes(condition, what, said=()):
    if not check(wait_until(lambda: holds(condition), 60, 0.05), what):
        print(*said[-1:])
        for daemon in world.daemons.values():
            print(f"--- {daemon.name}\n{daemon.log()[-2000:]}")
        sys.exit(finish())


def row(controller, job):
    return next(j for j in controller.ask("jobs")["jobs"] if j["job"] == job)


def is_whole(controller):
    """All nodes obey it, and it knows all jobs."""
    parents = [node.ask("hello")["parent"] for node in nodes]
    return (all(p["connected"] and p["name"] == controller.name for p in parents)
            and {j["job"] for j in controller.ask("jobs")["jobs"]} == set(JOBS))


def grant(node, job):
    """What the job may have on its node."""
    return next(j for j in node.ask("jobs")["jobs"] if j["job"] == job)["streams"][0]["grant"]


def change(controller, verb, **fields):
    """It is in force and kept. Right after it took over a controller refuses."""
    said = []

    def is_taken():
        said.append(controller.ask(verb, timeout_s=20, **fields))
        return "error" not in said[-1] and not said[-1].get("warnings")

    becomes(is_taken, f"{controller.name}: {verb} {fields.get('job', '')}", said=said)


def text_of(capacity, **more):
    """Of a policy, with other targets perhaps."""
    new = policy(world.tree, "n[1-3]", pool_owner="majority")
    new["targets"]["shared"]["capacity"]["metadata"] = f"{capacity}/s"
    new["targets"].update(more)
    return json.dumps(new)


def write_file(capacity):
    with open(world.policy, "w") as f:
        f.write(text_of(capacity))


def edit(controller, capacity):
    """The file of the policy; this controller reads it again."""
    write_file(capacity)
    controller.signal(signal.SIGHUP)


def syncs():
    """How many c1 has begun."""
    return os.path.getsize(begun) if os.path.exists(begun) else 0


def hash_at(controller):
    return controller.ask("policy")["hash"]


def hash_of(capacity):
    return first.ask("policy-apply", text=text_of(capacity), dry_run=True)["hash"]


need("test/programs/held_syncs")
world = World({}, namespaces=False)
world.write_policy(policy(world.tree, "n[1-3]", pool_owner="majority"))
with open(os.path.join(world.tree, "f"), "w") as f:
    f.write("x")
os.mkdir(os.path.join(world.tree, "other"))
shared = os.path.join(world.dir, "shared")
os.mkdir(shared, 0o700)
first, second = [
    world.cluster(name, start=False, extra=["--shared-dir", shared, "--metrics", "none"])
    for name in ("c1", "c2")]
begun, held = os.path.join(world.dir, "begun"), os.path.join(world.dir, "held")
first.argv = ["env", f"LD_PRELOAD={BUILD}/test/programs/held_syncs", f"SYNCS_BEGUN={begun}",
              f"SYNCS_HELD={held}", *first.argv]
first.start()
second.start()
nodes = [world.node(f"n{i + 1}", [first, second], extra=["--metrics", "none"]) for i in range(3)]
for place, name in zip(nodes, JOBS):
    world.run(place, name, ["sh", "-c", f"while :; do : <{world.tree}/f; done"])
becomes(lambda: is_whole(first), "all obey c1")

# Made at the first one; the other one takes none. Nodes do not lend of a new target at once.
applied = text_of(4000, other={"path": f"{world.tree}/other", "capacity": {"metadata": "100/s"}})
becomes(lambda: "most nodes obey another" in second.ask("policy-apply", text=applied)["error"],
        "c2 takes no policy")
change(first, "policy-apply", text=applied)
change(first, "pause", job="still")
change(first, "set", job="slow", assignment="metadata@shared=100/s")
becomes(lambda: hash_at(first) == hash_at(second), "c2 follows the policy")
in_force = hash_at(first)

# A write of c1 hangs until another one has ruled, and that one is away then.
with open(held, "w"):
    pass
before = syncs()
try:
    first.ask("set", job="slow", assignment="metadata@shared=50/s")
    check(False, "a change is answered before it is written")
except Gone:
    pass
becomes(lambda: syncs() > before, "a write of c1 hangs")
first.signal(signal.SIGSTOP)
becomes(lambda: is_whole(second), "all obey c2 for a while")
change(second, "pause", job="free")
second.signal(signal.SIGSTOP)
os.unlink(held)
first.signal(signal.SIGCONT)
becomes(lambda: is_whole(first) and first.ask("policy")["hash"] == in_force, "all obey c1 anew")
becomes(lambda: row(first, "free")["state"] == "paused", "c1 has what was made at c2 meanwhile")
change(first, "resume", job="free")
becomes(lambda: [x["limit"] for x in row(first, "slow")["override"]["limits"]] == [100],
        "and what was not acknowledged is not kept")
second.signal(signal.SIGCONT)

# It is killed.
first.kill()
becomes(lambda: is_whole(second), "all obey c2")
becomes(lambda: row(second, "still")["state"] == "paused", "c2 has the pause")
becomes(lambda: row(second, "slow")["override"]["limits"] != [], "c2 has the limit")
becomes(lambda: grant(nodes[0], "still") == 0, "the paused job has nothing")
becomes(lambda: 0 < grant(nodes[1], "slow") <= 100, "the slow one has its limit")
becomes(lambda: grant(nodes[2], "free") > 1000, "the free one has the rest")
change(second, "resume", job="still")
first.start()
becomes(lambda: hash_at(first) == in_force, "c1 has the applied policy again")

# What was applied over an edited file stays, whichever controller reads that file first.
edit(second, 3000)
becomes(lambda: hash_at(second) not in ("", in_force), "c2 has the edited file")
applied = text_of(2000)
change(second, "policy-apply", text=applied)
in_force = hash_at(second)
first.signal(signal.SIGHUP)
becomes(lambda: hash_at(first) == in_force, "c1 has what was applied over it")
edit(first, 2500)
becomes(lambda: hash_at(first) != in_force, "c1 has another file")
edit(first, 3000)
becomes(lambda: hash_at(first) == in_force, "c1 has what was applied over this one again")

# Stopped: what c1 writes meanwhile stays.
second.signal(signal.SIGSTOP)
becomes(lambda: is_whole(first), "all obey c1 again")
check(hash_at(first) == in_force, "the policy is the same")
becomes(lambda: row(first, "still")["state"] != "paused", "c1 has the end of the pause")
change(first, "pause", job="free")
second.signal(signal.SIGCONT)
becomes(lambda: "most nodes obey another" in second.ask("policy-apply", text=applied)["error"],
        "c2 knows that it is not asked any more")
first.kill()
becomes(lambda: is_whole(second), "all obey c2 again")
becomes(lambda: row(second, "free")["state"] == "paused", "c2 has the pause of c1")

# Whoever may write there would decide for all.
os.chmod(shared, 0o777)
first.start()
second.kill()
becomes(lambda: is_whole(first), "all obey c1, which reads nothing there")
becomes(lambda: "nobody else" in first.ask("pause", job="slow")["error"], "c1 says why")
check(row(first, "free")["state"] != "paused", "c1 believes nothing that is there")
os.chmod(shared, 0o700)
becomes(lambda: row(first, "free")["state"] == "paused", "c1 believes it now")

# An applied policy is over when its file was edited, also when nobody was told to read it again.
becomes(lambda: hash_at(first) == in_force, "the applied policy is in force still")
first.kill()
write_file(2500)
first.start()
becomes(lambda: is_whole(first), "all obey c1, which started with another file")
edited = hash_of(2500)
check(hash_at(first) == edited, "that file is in force")
change(first, "resume", job="free")  # so what c1 had to write is written
second.start()
becomes(lambda: hash_at(second) == edited, "c2 has that file, too")
write_file(3000)
for controller in (first, second):
    controller.signal(signal.SIGHUP)
for controller in (first, second):
    becomes(lambda: hash_at(controller) not in ("", edited), f"{controller.name} reads its file")
    check(hash_at(controller) == hash_of(3000), "the applied policy does not come back")

# Where no controller has most nodes.
change(first, "pause", job="still", for_s=5)
nodes[1].kill()
nodes[2].kill()
becomes(lambda: row(first, "still")["state"] != "paused", "what has an end ends")
becomes(lambda: grant(nodes[0], "still") > 0, "and the job has its part")
becomes(lambda: "most nodes do not" in first.ask("pause", job="still")["warnings"][0],
        "a change holds and is not kept, and that is said")
becomes(lambda: grant(nodes[0], "still") == 0, "the job is paused")
sys.exit(finish())
