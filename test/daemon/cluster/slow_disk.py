#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A controller whose disk hangs goes on: it divides, it answers who asks, and a change is in force.

Only who changes something waits until it is written. Many changes are written at once, and what
was not written yet is written at an end. The disk is test/programs/held_syncs.cc.
"""
import json
import os
import select
import signal
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../lib"))
from world import BUILD, Gone, World, need, wait_until  # noqa: E402

need("test/programs/held_syncs")
CLIENTS = 12 if os.geteuid() == 0 else 3  # a user has four places


def check(condition, what):
    def holds():
        try:
            return condition()
        except Gone:
            return False

    if not wait_until(holds, 30, 0.02):
        for daemon in world.daemons.values():
            print(f"--- {daemon.name}\n{daemon.log()[-2000:]}")
        sys.exit(f"FAILED: {what}")


class Client:
    """One that changes the limit of the job."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def set(self, rate):
        """Who comes and does not ask is sent away."""
        self.socket.connect(os.path.join(controller.run_dir, "sluiced.sock"))
        self.socket.send(json.dumps({"verb": "set", "job": "work",
                                     "assignment": f"metadata={rate}/s"}).encode())

    def is_answered(self):
        return select.select([self.socket], [], [], 0)[0] != []

    def is_told(self):
        """It was, and all was well."""
        if not self.is_answered():
            return False
        answer = json.loads(self.socket.recv(1 << 17))
        return "error" not in answer and "warnings" not in answer


def syncs():
    return os.path.getsize(begun) if os.path.exists(begun) else 0


def hold():
    with open(held, "w"):
        pass


def jobs():
    return controller.ask("jobs")["jobs"]


def stream():
    streams = jobs()[0]["streams"]
    return streams[0] if streams else {"grant": 0, "limit": None}


def cycle():
    return controller.ask("top")["cycle"]


def saved():
    with open(os.path.join(state, "overrides.json")) as book:
        return book.read()


world = World({"targets": {}}, namespaces=False)
world.write_policy({
    "targets": {"scratch": {"path": world.tree, "capacity": {"metadata": "1k/s"}}},
    "classes": {"gold": {"scratch": {"metadata": {"weight": 1}}}},
    "control": {"nodes": "n1", "default_class": "gold"}})
begun, held = os.path.join(world.dir, "begun"), os.path.join(world.dir, "held")
state = os.path.join(world.dir, "state")
os.mkdir(state)
with open(os.path.join(world.tree, "f"), "w") as f:
    f.write("x")
controller = world.cluster(start=False, extra=["--state-dir", state, "--metrics", "none"])
controller.argv = ["env", f"LD_PRELOAD={BUILD}/test/programs/held_syncs", f"SYNCS_BEGUN={begun}",
                   f"SYNCS_HELD={held}", *controller.argv]
controller.start()
node = world.node("n1", [controller], extra=["--metrics", "none"])
world.run(node, "work", ["sh", "-c", f"while :; do : <{world.tree}/f; done"])
check(lambda: [j["job"] for j in jobs()] == ["work"] and stream()["grant"] > 0, "no job")

# While the disk hangs.
clients = [Client() for _ in range(CLIENTS)]
before = syncs()
hold()
clients[0].set(100)
check(lambda: syncs() > before, "nothing is written")
for number, client in enumerate(clients[1:]):
    client.set(101 + number)
check(lambda: controller.log().count("verb=set") == CLIENTS, "not all are heard")
last = 100 + CLIENTS - 1
check(lambda: stream()["limit"] == last, "the change is not in force")
at = cycle()
check(lambda: cycle() >= at + 15, "the controller divides no more")  # longer than a lease
check(lambda: 0 < stream()["grant"] <= last, "the node has no grant")
assert not any(client.is_answered() for client in clients), "told before it is written"
assert syncs() == before + 1, syncs() - before

# When it goes on: two writes, each of a file and its folder.
os.unlink(held)
for number, client in enumerate(clients):
    check(client.is_told, f"client {number} is not told")
assert syncs() <= before + 4, syncs() - before
assert f"{last}" in saved(), saved()

# What waits when the controller is told to end.
hold()
before = syncs()
clients = [Client(), Client()]
clients[0].set(200)
check(lambda: syncs() > before, "nothing is written")
clients[1].set(201)
check(lambda: controller.log().count("verb=set") == CLIENTS + 2, "the last is not heard")
controller.signal(signal.SIGTERM)
check(lambda: "stopping" in controller.log(), "it does not stop")
assert controller.process.poll() is None, "it did not wait for its disk"
os.unlink(held)
for client in clients:
    check(client.is_told, "not told at an end")
try:
    assert controller.process.wait(20) == 0
except subprocess.TimeoutExpired:
    check(lambda: False, "it does not end")
assert "201" in saved(), saved()
