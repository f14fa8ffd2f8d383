#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The long run of power cuts: every mode that must hold, on every file system, to so many states.

    long.py [STATES] [SEED]     100000, 1

It goes round: each round tries every cell of the table (cuts.py) with a seed of its own, until all
states were tried. What is done lies in build/crash-long/SEED.jsonl, a line a cell, so a run that
was ended goes on where it was. The output of a cell that failed is kept beside it, with what its
first loss left (kept.h), and the run goes on. Status 0 when nothing was lost.
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

from cuts import TOOL, TOP, of_a_round

BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(TOP, "build")))
PLAN = list(of_a_round())
LONGEST_S = 3 * 3600

SUMMARY = re.compile(r"^(\S+) (\S+) seed (\d+): .*?(\d+) states", re.M)
COUNTS = re.compile(r"\b(order|lost|broken|unrecoverable|unstable) (\d+)")


def rounds(states, seed):
    """Rows as (mode, fs, seed, states): so many states in all. Less than a round is a small one."""
    share = min(1, states / sum(count for _, _, count in PLAN))
    number = 0
    while states > 0:
        for mode, system, count in PLAN:
            wanted = max(1, int(count * share)) if share < 1 else min(count, states)
            if wanted > 0:
                yield mode, system, seed * 1000 + number, wanted
                states -= wanted
        number += 1
        if share < 1:
            return


def run(row, keep):
    mode, system, seed, states = row
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="sluice-long.") as scratch:
        env = dict(os.environ, SCRATCH=scratch, BUILD=BUILD, LC_ALL="C.UTF-8",
                   KEEP=os.path.join(keep, f"{mode}-{system}-{seed}"))
        child = subprocess.Popen([TOOL, mode, system, str(states), str(seed)], cwd=TOP, env=env,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                 errors="replace", start_new_session=True)
        try:
            out = child.communicate(timeout=LONGEST_S)[0]
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.communicate()
    done = SUMMARY.search(out)
    verdict = {0: "held", 77: "skipped"}.get(child.returncode, "FAILED")
    if verdict == "FAILED":
        with open(os.path.join(keep, f"{mode}-{system}-{seed}.out"), "w") as f:
            f.write(out)
    return {"mode": mode, "fs": system, "seed": seed, "wanted": states, "verdict": verdict,
            "states": int(done.group(4)) if done else 0,
            "violations": sum(int(n) for _, n in COUNTS.findall(out[done.start():])) if done else 0,
            "seconds": round(time.monotonic() - begin, 1),
            "says": "" if verdict == "held" else out[-300:]}


def summary(results):
    print(f"\n{'mode':16}{'states':>9}{'violations':>12}{'states/min':>12}  file systems")
    for mode in dict.fromkeys(mode for mode, _, _ in PLAN):
        mine = [r for r in results if r["mode"] == mode]
        if not mine:
            continue
        states, seconds = sum(r["states"] for r in mine), sum(r["seconds"] for r in mine)
        failed = sum(r["verdict"] == "FAILED" for r in mine)
        note = f", {failed} runs failed" if failed else ""
        if all(r["verdict"] == "skipped" for r in mine):
            note = ", skipped: " + mine[0]["says"].strip().splitlines()[-1]
        print(f"{mode:16}{states:9}{sum(r['violations'] for r in mine):12}"
              f"{states / max(seconds, 1) * 60:12.0f}  "
              f"{' '.join(sorted({r['fs'] for r in mine}))}{note}")
    print(f"{'in all':16}{sum(r['states'] for r in results):9}"
          f"{sum(r['violations'] for r in results):12}")


def main():
    states = int(sys.argv[1]) if len(sys.argv) > 1 else 100000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    if os.geteuid() != 0 or not os.path.exists(TOOL):
        print("skip: needs root, and build/test/crash/power_cut (libfuse3-dev)")
        return 77
    keep = os.path.join(BUILD, "crash-long")
    os.makedirs(keep, exist_ok=True)
    path = os.path.join(keep, f"{seed}.jsonl")
    results = []
    if os.path.exists(path):
        with open(path) as f:
            results = [json.loads(line) for line in f]
    done = {(r["mode"], r["fs"], r["seed"], r["wanted"]) for r in results}
    rows = list(rounds(states, seed))
    begin, tried, left = time.monotonic(), 0, sum(r[3] for r in rows if r not in done)
    for number, row in enumerate(rows, 1):
        if row in done:
            continue
        result = run(row, keep)
        results.append(result)
        with open(path, "a") as f:
            f.write(json.dumps(result) + "\n")
        tried += row[3]
        minutes = (time.monotonic() - begin) / 60
        print(f"[{number}/{len(rows)}] {row[0]} {row[1]} seed {row[2]}: {result['verdict']}, "
              f"{result['states']} states in {result['seconds']:.0f} s; "
              f"about {minutes / tried * (left - tried):.0f} min left", flush=True)
        if result["verdict"] == "FAILED":
            print(result["says"], flush=True)
    summary(results)
    return 1 if any(r["verdict"] == "FAILED" or r["violations"] for r in results) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
