# SPDX-License-Identifier: Apache-2.0
"""What tests of whole clusters share: sentences that hold or do not, and a load that is watched.

Each node of a Load has a program that checks what it reads, and a tool looks every millisecond at
what all nodes together may use. Whatever a test does to the daemons: no program fails, hangs or
sees a signal, and the sum stays within the capacity.
"""
import os
import signal
import subprocess

import world as w

CAPACITY = 5000

# Writes, reads back and compares; any surprise is an exit status of 1.
GUEST = """
import os, sys, signal, time
for n in range(1, signal.NSIG):
    if n not in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGCONT, 32, 33):
        signal.signal(n, lambda n, f: (sys.stderr.write(f'signal {n}'), os._exit(3)))
stop = []
signal.signal(signal.SIGTERM, lambda *a: stop.append(1))
name = os.path.join(sys.argv[1], str(os.getpid()))
rounds = 0
while not stop:
    text = os.urandom(64)
    with open(name, 'wb') as f:
        f.write(text)
    with open(name, 'rb') as f:
        if f.read() != text:
            sys.exit(1)
    os.stat(name)
    rounds += 1
os.unlink(name)
print(rounds)
"""

failures = []


def check(holds, sentence):
    print(("ok    " if holds else "FAIL  ") + sentence, flush=True)
    if not holds:
        failures.append(sentence)
    return holds


def finish():
    """The exit status of all checks."""
    print(f"{len(failures)} failed")
    return 1 if failures else 0


def policy(tree, nodes, **control):
    share = lambda weight: {"shared": {"metadata": {"weight": weight}}}
    return {"targets": {"shared": {"path": tree, "capacity": {"metadata": f"{CAPACITY}/s"}}},
            "classes": {"even": share(1)},
            "control": {"nodes": nodes, "default_class": "even", **control}}


class Load:
    """A job "job" on these nodes of a world that has `policy`."""

    def __init__(self, world, nodes):
        self.curves, self.path = world.watch_curves("metadata@shared", CAPACITY)
        self.guests = [world.run(n, "job", ["python3", "-c", GUEST, world.tree], "even",
                                 stdout=subprocess.PIPE) for n in nodes]

    def runs(self, what):
        dead = [g for g in self.guests if g.poll() is not None]
        check(not dead, f"{what}: all programs run on" +
              "".join(f" ({g.returncode}: {g.stderr.read()[-300:]})" for g in dead))

    def end(self, what, least=1):
        """`least`: what all together must have been allowed to use at some time."""
        for g in self.guests:
            if g.poll() is None:
                os.killpg(g.pid, signal.SIGTERM)
        for g in self.guests:
            try:
                out, err = g.communicate(timeout=20)
                check(g.returncode == 0 and int(out or 0) > 0,
                      f"{what}: a program ended well ({g.returncode}) {err[-300:]}")
            except subprocess.TimeoutExpired:
                check(False, f"{what}: a program hangs at its end")
        self.curves.send_signal(signal.SIGTERM)
        self.curves.wait(10)
        with open(self.path) as said:
            words = said.read().splitlines()[-1].split()
        check(words[6] == "0" and int(words[4]) > 100 and float(words[1]) >= least,
              f"{what}: capacity {CAPACITY}, at most {float(words[1]):.1f} was usable, above it in "
              f"{words[6]} of {words[4]} looks")
