# SPDX-License-Identifier: Apache-2.0
"""Jobs instead of threads, for order.py: programs of one thread each, all at once. Each is a job of
its own on a node whose daemon keeps the journal, or natively a plain process."""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import time

from common import BUILD, SLUICE, Broken

PATIENCE_S = 60
WORK = os.path.join(BUILD, "bench", "order_work")
DAEMON = os.path.join(os.path.dirname(SLUICE), "sluiced")


def serves(run_dir):
    asked = subprocess.run([SLUICE, "--run-dir", run_dir, "policy", "get"], capture_output=True)
    return asked.returncode == 0


@contextlib.contextmanager
def node(run_dir, where, kind, journals):
    """A daemon for jobs below `where`, as long as the block lasts."""
    os.makedirs(run_dir, exist_ok=True)
    os.makedirs(journals, exist_ok=True)
    policy, log = os.path.join(run_dir, "policy.json"), os.path.join(run_dir, "log")
    with open(policy, "w", encoding="utf-8") as f:
        json.dump({"targets": {"disk": {"path": where, "order": kind}}}, f)
    with open(log, "w", encoding="utf-8") as said:
        daemon = subprocess.Popen(
            [DAEMON, "--role", "node", "--name", "n1", "--run-dir", run_dir, "--policy", policy,
             "--metrics", "none", "--journal", journals], stdout=said, stderr=said)
    try:
        until = time.monotonic() + PATIENCE_S
        while not serves(run_dir):
            if daemon.poll() is not None or time.monotonic() > until:
                with open(log, encoding="utf-8") as said:
                    raise Broken("the daemon does not serve: " + said.read()[-500:])
            time.sleep(0.02)
        yield
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.wait(PATIENCE_S)


def all_at_once(commands):
    """What each printed."""
    running = [subprocess.Popen(c, stdout=subprocess.PIPE, text=True) for c in commands]
    said = [r.communicate()[0] for r in running]
    for command, r in zip(commands, running):
        if r.returncode != 0:
            raise Broken(f"status {r.returncode}: " + " ".join(command))
    return said


def run_jobs(run_dir, where, kind, journals, commands):
    if kind is None:
        return all_at_once(commands)
    with node(run_dir, where, kind, journals):
        job = [SLUICE, "--run-dir", run_dir, "run", "--no-summary", "--job"]
        begin_journal(job, where)
        return all_at_once([[*job, f"job{i}", "--", *c] for i, c in enumerate(commands)])


def begin_journal(job, where):
    """The journal of a user is made when his first durable job syncs, and his jobs sync natively
    meanwhile: no part of what is measured."""
    path = os.path.join(where, "first")
    os.mkdir(path)
    all_at_once([[*job, "first", "--", WORK, "append", "1", "2000", path]])
    shutil.rmtree(path)
