# SPDX-License-Identifier: Apache-2.0
"""What tests of the example policies with roles share: a program under one of them, the bytes of
its roles, and the comparison with what the program itself counted.
"""
import json
import os
import subprocess
import sys
import time

TOP = os.getcwd()
SLUICE = os.environ.get("SLUICE", os.path.join(TOP, "build/bin/sluice"))
SCRATCH = os.environ["SCRATCH"]
RUN = os.path.join(SCRATCH, "run")
REPORT = os.path.join(SCRATCH, "report.json")
LONGEST_S = 30


def skip(why):
    print(why)
    sys.exit(77)


def fail(why):
    sys.exit(f"FAILED: {why}")


def policy(name, change=None):
    """The path of an example, or of what `change` makes of it."""
    path = os.path.join(TOP, "policies/examples", f"roles-{name}.json")
    if change is None:
        return path
    with open(path, encoding="utf-8") as f:
        content = json.load(f)
    change(content)
    path = os.path.join(SCRATCH, f"{name}.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(content, f)
    return path


def under(path, *options):
    """The beginning of a command that runs a program under the policy."""
    return [SLUICE, "--run-dir", RUN, "run", "--policy", path, "--report", REPORT, "--no-summary",
            *options, "--"]


def run(path, *command, options=(), **more):
    """Runs it to its end: what it printed."""
    done = subprocess.run([*under(path, *options), *command], capture_output=True, text=True,
                          timeout=100, check=False, **more)
    if done.returncode != 0:
        fail(f"{command[0]} ended with {done.returncode}: {(done.stdout + done.stderr)[-600:]}")
    return done.stdout


def rows(source):
    """Roles of a report, or of what `stat` says, by name."""
    return {r["role"]: r for r in source["roles"]}


def of_report():
    with open(REPORT, encoding="utf-8") as f:
        return rows(json.load(f))


def of_job(job, **more):
    done = subprocess.run([SLUICE, "--run-dir", RUN, "--json", "stat", job], capture_output=True,
                          text=True, check=True, **more)
    return rows(json.loads(done.stdout))


def grown(now, before, role, field):
    return now[role][field] - before[role][field]


def near(what, ours, theirs, part):
    """Ours is theirs, but for that part of it."""
    off = abs(ours - theirs) / max(theirs, 1)
    print(f"{what}: {ours} by role, {theirs} by the program: {100 * (1 - off):.2f} %")
    return theirs > 0 and off <= part


def must_be_near(what, ours, theirs, part):
    if not near(what, ours, theirs, part):
        fail(f"{what}: {ours} by role, {theirs} by the program")


def in_a_while(holds, what):
    """Programs count late: until it holds."""
    end = time.monotonic() + LONGEST_S
    while not holds():
        if time.monotonic() > end:
            fail(what)
        time.sleep(0.25)
