# SPDX-License-Identifier: Apache-2.0
"""Cluster epochs: a controller, and two to four nodes with a disk each, all cut at one moment.

In each epoch the rank of every node writes its part, and that of the first node then makes a
manifest, while the others write the next part. The manifest is what the policy's `after` holds
back. G5: whatever is left of the disks, where there is a manifest, whole or not, or just its name,
all parts of its epoch are there, on every node. A manifest that was synced is there as well.
"""
import ctypes
import json
import os
import random
import select
import shutil
import signal
import socket
import subprocess
import sys
import time

import epoch_parts as parts
from program import BESIDE, BIN, DISKS, HERE, Lost, Program, mark, need

TREE = os.path.join(BESIDE, "tree")
WAYS = ("open", "stream", "rename", "link", "mkdir", "symlink", "add")
ANSWER_S = 60


class Talk:
    """Lines to somebody, and a line back for each."""
    def __init__(self, to, back):
        self.to, self.back, self.kept = to, back, b""

    def tell(self, line):
        os.write(self.to, (line + "\n").encode())

    def hear(self):
        until = time.monotonic() + ANSWER_S
        while b"\n" not in self.kept:
            if not select.select([self.back], [], [], max(0, until - time.monotonic()))[0]:
                raise RuntimeError("no answer")
            got = os.read(self.back, 4096)
            if not got:
                raise RuntimeError("it is gone")
            self.kept += got
        line, self.kept = self.kept.split(b"\n", 1)
        return line.decode()

    def ask(self, line):
        self.tell(line)
        return self.hear()

    def close(self):
        os.close(self.to)
        os.close(self.back)


class Node:
    def __init__(self, number, parent, more):
        self.number, self.run = number, os.path.join(BESIDE, f"n{number}")
        self.env = dict(os.environ, TREE=TREE, NODE_DISK=DISKS[number], NODE_RUN=self.run,
                        NODE_NAME=f"n{number}", PARENT=parent, **more)
        self.child = None
        self.written = -1

    def start(self):
        """Its `keep` and `rank` are whom one talks to; both answer when it is up."""
        rank_in, to_rank = os.pipe()
        from_rank, rank_out = os.pipe()
        words = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork",
                 "--kill-child", "--mount-proc", sys.executable, "-B",
                 os.path.join(HERE, "epoch_node.py"), str(self.number)]
        env = dict(self.env, RANK_IN=str(rank_in), RANK_OUT=str(rank_out))
        with open(self.run + ".said", "ab") as said:
            self.child = subprocess.Popen(words, env=env, pass_fds=(rank_in, rank_out),
                                          stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                          stderr=said)
        os.close(rank_in)
        os.close(rank_out)
        self.keep = Talk(self.child.stdin.fileno(), self.child.stdout.fileno())
        self.rank = Talk(to_rank, from_rank)

    def end(self):
        """All of its processes at once, and no later than this returns."""
        if self.child is None:
            return
        pid = self.child.pid
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            for init in f.read().split() or [pid]:
                os.kill(int(init), signal.SIGKILL)
        self.child.wait()
        self.rank.close()
        self.child.stdin.close()
        self.child.stdout.close()
        self.child = None

    def lose_power(self):
        refuse = os.path.join(os.path.dirname(os.environ["MARKS"]), "refuse")
        with open(refuse, "w") as f:
            f.write(f"{self.number} 6 0 4294967295")
        self.end()


def end_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Epochs(Program):
    name = "epochs"
    order = None

    def prepare(self):
        need("unshare")
        for number, disk in enumerate(DISKS):
            parts.prepare(disk, number)

    def make_log(self):
        for number, disk in enumerate(DISKS):
            if self.has_log(number):
                own = os.path.join(disk, "log", "0")
                os.makedirs(own, 0o700)
                super().make_log(os.path.join(own, "journal"))

    def make_places(self):
        super().make_places()
        os.makedirs(TREE, exist_ok=True)

    def has_log(self, number):
        """Of three nodes at least one has none."""
        return bool(self.options & {"log", "ordered"}) and number != 2

    def policy(self):
        order = "ordered" if "ordered" in self.options else "durable"
        patience = f"{self.patience_s}s"
        target = {"path": TREE}
        if "open" not in self.options:
            target["after"] = {"write": "*/MANIFEST-*", "durable": "*/rank-*.dat",
                               "patience": patience}
        if self.options & {"log", "ordered"}:
            target["order"] = order
        return {"targets": {"tree": target}, "control": {"nodes": f"n[0-{len(DISKS) - 1}]"}}

    def start_controller(self):
        words = [os.path.join(BIN, "sluiced"), "--role", "cluster", "--name", "ctl", "--run-dir",
                 os.path.join(BESIDE, "ctl"), "--policy", os.path.join(BESIDE, "site.json"),
                 "--plain", "--listen", self.parent, "--metrics", "none"]
        with open(os.path.join(BESIDE, "ctl.said"), "ab") as said:
            self.controller = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=said,
                                               stderr=said, preexec_fn=end_with_parent)

    def start_cluster(self, seed):
        # Less, or more, than it takes until a node that says nothing counts as lost.
        self.patience_s = (3, 8)[seed % 2] if self.options & {"killed", "lost"} else 40
        for place in ["ctl"] + [f"n{n}" for n in range(4)]:
            shutil.rmtree(os.path.join(BESIDE, place), ignore_errors=True)
        with open(os.path.join(BESIDE, "site.json"), "w") as f:
            json.dump(self.policy(), f)
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.parent = f"tcp://127.0.0.1:{s.getsockname()[1]}"
        self.start_controller()
        self.nodes = []
        for number in range(len(DISKS)):
            more = {"NODE_SYNCS": str(seed)} if number == 0 else {}
            if self.has_log(number):
                more["NODE_LOG"] = os.path.join(TREE, "log")
            if "lies" in self.options and number == 1:
                more["NODE_LIES"] = "1"
            self.nodes.append(Node(number, self.parent, more))
        for node in self.nodes:
            node.start()
        for node in self.nodes:
            if node.keep.hear() != "ready":
                raise RuntimeError(f"n{node.number} does not start")

    def end_cluster(self):
        for node in self.nodes:
            node.end()
        self.controller.kill()
        self.controller.wait()

    def run(self, seed):
        try:
            self.start_cluster(seed)
            return self.go(random.Random(seed))
        finally:
            self.end_cluster()

    def go(self, rng):
        """All epochs. Returns how many manifests were refused."""
        told = self.opened = 0
        breaks = self.options & {"killed", "lost"}
        dies_at = rng.randrange(4, parts.EPOCHS) if "lost" in self.options else None
        self.tell_parts(self.nodes, 0)
        for epoch in range(parts.EPOCHS):
            self.hear_parts(self.nodes, epoch)
            if epoch == dies_at:
                return told + self.lose_power(rng, epoch)
            is_before = breaks and rng.random() < 0.3
            if is_before:
                self.disturb(rng, None)
            self.tell_manifest(rng, epoch)
            if not breaks and rng.random() < 0.7:  # in the middle of the syncs, or so
                time.sleep(rng.uniform(0, 0.08))
            self.tell_parts(self.nodes[1:], epoch + 1)
            if not breaks and epoch + 1 < parts.EPOCHS:
                self.hear_parts(self.nodes[1:], epoch + 1)
                self.nodes[0].rank.tell(f"side {epoch + 1}")
            if breaks and not is_before and rng.random() < 0.4:
                time.sleep(rng.uniform(0, 0.1))
                self.disturb(rng, epoch + 1)
            told += self.hear_manifest(rng, epoch)
            if told and not breaks:
                raise RuntimeError(f"epoch {epoch} was refused: {self.reason()}")
            self.tell_parts(self.nodes[:1], epoch + 1)
        if not self.opened:
            raise RuntimeError(f"no gate was opened: {self.reason()}")
        if self.has_log(0) and not self.in_log():
            raise RuntimeError("nothing went to the log")
        return told

    def tell_parts(self, nodes, epoch):
        for node in nodes:
            if epoch < parts.EPOCHS:
                node.rank.tell(f"part {epoch} {int(self.has_log(node.number))}")

    def hear_parts(self, nodes, epoch):
        for node in nodes:
            if node.written < epoch and node.rank.hear() != f"written {epoch}":
                raise RuntimeError(f"n{node.number} has not written {epoch}")
            node.written = epoch

    def tell_manifest(self, rng, epoch):
        marks = rng.random() < 0.5 and "ordered" not in self.options
        self.nodes[0].rank.tell(f"manifest {epoch} {len(DISKS)} {rng.choice(WAYS)} {int(marks)}")

    def hear_manifest(self, rng, epoch):
        """Whether it was refused."""
        said = self.nodes[0].rank.hear()
        if said not in ("opened", "EIO"):
            raise RuntimeError(f"manifest {epoch}: {said}")
        if said == "opened":
            self.opened += 1
            mark(parts.OPENED, epoch)  # here the disks are looked at most
            time.sleep(rng.choice((0, 0.03)))
        return said == "EIO"

    def disturb(self, rng, part):
        """`part`: what the other ranks were told to write."""
        if "lost" in self.options:
            node = rng.choice(self.nodes[1:])
            node.end()
            if rng.random() < 0.5:
                shutil.rmtree(node.run, ignore_errors=True)
            time.sleep(rng.uniform(0, 0.5))
            self.bring_back(node)
            return self.tell_parts([node], part) if part is not None else None
        short_s = rng.uniform(0.05, 0.6)
        pause_s = rng.choice((short_s, short_s, short_s, 4 if self.patience_s < 4 else 6.5))
        who = rng.choice(self.nodes + [None])
        how = rng.choice(("kill", "stop", "stop all" if who else "stop"))
        if who is None:
            self.controller.send_signal(signal.SIGKILL if how == "kill" else signal.SIGSTOP)
            time.sleep(pause_s)
            if how == "stop":
                return self.controller.send_signal(signal.SIGCONT)
            self.controller.wait()
            return self.start_controller()
        who.keep.ask(how)
        time.sleep(pause_s)
        who.keep.ask("start" if how == "kill" else "go on")

    def bring_back(self, node):
        node.start()
        if node.keep.hear() != "ready":
            raise RuntimeError(f"n{node.number} does not come back")

    def lose_power(self, rng, epoch):
        """One node, for good, when all parts are written and before, or while, the manifest is
        made: then none may be made any more."""
        node = rng.choice(self.nodes[1:])
        is_late = rng.random() < 0.5
        if is_late:
            self.tell_manifest(rng, epoch)
            time.sleep(rng.uniform(0, 0.1))
        node.lose_power()
        told = int(is_late and self.hear_manifest(rng, epoch))
        another = epoch + 1 if is_late and not told else epoch
        for _ in range(2):
            self.tell_manifest(rng, another)
            if not self.hear_manifest(rng, another):
                raise RuntimeError(f"n{node.number} has no power, and a gate was opened")
        return told + 2

    def reason(self):
        with open(os.path.join(BESIDE, "ctl.said"), errors="replace") as f:
            return " / ".join(f.read()[-400:].splitlines())

    def in_log(self):
        """How many fsyncs of the first node went to its log."""
        words = [os.path.join(BIN, "sluice"), "--run-dir", self.nodes[0].run, "--json", "order"]
        said = subprocess.run(words, capture_output=True, text=True).stdout
        return sum(job["fsync"]["journal"] for job in json.loads(said)["jobs"])

    def answered(self):
        return self.opened

    def check(self, acknowledged):
        """Returns how many manifests there are."""
        there = parts.manifests(DISKS[0])
        claims = [(epoch, node) for epoch in there for node in range(len(DISKS))]
        claims += [(epoch, node) for epoch in parts.side_manifests(DISKS[0])
                   for node in range(1, len(DISKS))]
        for epoch, node in claims:
            what = parts.missing(DISKS[node], node, epoch)
            if what is not None:
                raise Lost(f"a manifest of {epoch} is there, and not {what} of node {node}")
        if acknowledged[0] and not parts.is_whole(DISKS[0], acknowledged[0] - 1, len(DISKS)):
            raise Lost(f"the manifest of {acknowledged[0] - 1} was synced")
        return len(there)
