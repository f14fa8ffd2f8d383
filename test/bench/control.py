#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long does a control cycle take, and what does it cost?

Simulated children speak the real protocol over loopback with one controller, the daemon's own code:
all report, it allocates and answers, all acknowledge. Each row stands beside its floor: the same
messages and the same decisions over bare TCP sockets and epoll, in the same run. Children and
controller share this machine's processors. Tiers of a tree are measured one at a time, as their
machines would work at the same time; the last line adds them up.

  test/bench/control.py             all rows, about 3 min
  test/bench/control.py --short     100 and 1,000 children only
"""
import argparse
import json
import os
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOL = os.path.join(os.path.abspath(os.environ.get("BUILD", os.path.join(TOP, "build"))),
                    "bench", "control")
# name, arguments, aim in ms with CURVE, in the short form
ROWS = (
    ("flat, 100 nodes", ["--children", "100", "--jobs", "100"], None, True),
    ("flat, 1,000 nodes", ["--children", "1000", "--jobs", "1000"], 45, True),
    ("flat, 2,500 nodes", ["--children", "2500", "--jobs", "2500", "--restart"], 100, False),
    ("flat, 10,000 nodes", ["--children", "10000", "--jobs", "10000", "--cycles", "10"],
     450, False),
    ("root of 100 relays, 100,000 streams", ["--children", "100", "--streams", "1000",
                                             "--jobs", "10000", "--relays"], 40, False),
)
TREE_AIM_MS = 55


def measure(words, transport, short):
    words = [w for w in words if transport == "curve" or w != "--restart"]
    if short and "--cycles" not in words:
        words = words + ["--cycles", "8"]
    try:
        done = subprocess.run([TOOL, *words, "--transport", transport], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=300, check=False)
    except subprocess.TimeoutExpired:
        print(f"  {' '.join(words)} {transport}: not done after 300 s")
        return None
    if done.returncode != 0:
        print(f"  {' '.join(words)} {transport}: {done.stderr.strip()}")
        return None
    return json.loads(done.stdout)


def show(name, row, floor, aim):
    ratio = f"{row['cycle_ms'] / floor['cycle_ms']:.2f}" if floor else "-"
    verdict = "" if aim is None else ("pass" if row["cycle_ms"] <= aim else "OVER")
    wanted = "" if aim is None else f"aim {aim} ms  "
    print(f"{name:<37}{row['cycle_ms']:>8.1f}{row['worst_ms']:>8.1f}"
          f"{floor['cycle_ms'] if floor else 0:>8.1f}{ratio:>7}{row['cpu_ms']:>8.1f}"
          f"{row['resident_mib']:>6}{row['kib_per_child']:>10.1f}{row['connect_s']:>11.2f}  "
          f"{wanted}{verdict}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    print(f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}; CURVE; ms, medians of cycles")
    print(f"{'':<37}{'cycle':>8}{'worst':>8}{'floor':>8}{'ratio':>7}{'CPU ms':>8}{'MiB':>6}"
          f"{'KiB/child':>10}{'connect, s':>11}")
    seen = {}
    for name, words, aim, is_short in ROWS:
        if options.short and not is_short:
            continue
        if sys.stderr.isatty():
            print(f"\r\033[K{name} ...", end="", file=sys.stderr, flush=True)
        floor = measure(words, "epoll", options.short)
        row = measure(words, "curve", options.short)
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr)
        if row is None:
            continue
        seen[name] = {"curve": row, "epoll": floor}
        show(name, row, floor, aim)
        if row["back_s"] > 0:
            verdict = "pass" if row["back_s"] <= 2.5 else "OVER"
            print(f"  the controller was away for a second: all back {row['back_s']:.2f} s after "
                  f"its return (aim 2.5 s)  {verdict}")
    tiers = [seen[n]["curve"]["cycle_ms"] for n in (ROWS[0][0], ROWS[4][0]) if n in seen]
    if len(tiers) == 2:
        verdict = "pass" if sum(tiers) <= TREE_AIM_MS else "OVER"
        print(f"10,000 nodes, 100,000 streams through 100 relays, both tiers added: "
              f"{sum(tiers):.1f} ms (aim {TREE_AIM_MS})  {verdict}")
    if options.json:
        with open(options.json, "w") as out:
            json.dump(seen, out, indent=2)


if __name__ == "__main__":
    main()
