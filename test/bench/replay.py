#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast is the replayer itself? Nothing is limited; the target is a tmpfs.

First the closed loop: as many calls as the threads can make, per operation. Then the open loop,
where it counts: the highest offered rate of stat at which every second has what was offered, to
1 %, and the lag stays below LAG. Aim: 500 k stat/s on two CPUs.
"""
import argparse
import json
import os
import subprocess

from common import SLUICE, Broken, Scratch, finish, machine, need_stage, say_machine, write_json

AIM = 500_000
LAG = 0.1  # seconds; a machine that stands still for longer shows as such
OPS = (("getattr", 1), ("open,close", 2), ("rename", 1), ("getxattr", 1), ("mkdir,rmdir", 2))


def write_trace(path, ops, rates):
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"# interval: 1s\ntime_s,{ops}\n")
        for i, rate in enumerate(rates):
            f.write(f"{i}" + f",{rate}" * len(ops.split(",")) + "\n")


def replay(scratch, trace, *options):
    """The result, and the CPU seconds it took."""
    out = os.path.join(scratch, "result.json")
    before = os.times()
    command = [SLUICE, "replay", trace, "--target", scratch, "-q", "-o", out, *options]
    if subprocess.run(command).returncode != 0:
        raise Broken("the replay failed: " + " ".join(command))
    after = os.times()
    with open(out, encoding="utf-8") as f:
        return json.load(f), (after.children_user + after.children_system -
                              before.children_user - before.children_system)


def closed(scratch, ops, calls, threads):
    """Calls per second; CPU ns of one, and of these what is not the call itself."""
    trace = os.path.join(scratch, "closed.csv")
    write_trace(trace, ops, [calls])
    d, cpu_s = replay(scratch, trace, "--closed-loop", "--threads", str(threads), "--files", "100")
    done = sum(t["done"] for t in d["totals"])
    inside = sum(t["p50_ns"] * t["done"] for t in d["totals"])
    return done / d["elapsed_s"], cpu_s * 1e9 / done, (cpu_s * 1e9 - inside) / done


def keeps_up(scratch, rate, seconds, threads):
    trace = os.path.join(scratch, "open.csv")
    write_trace(trace, "getattr", [rate] * seconds)
    d, _ = replay(scratch, trace, "--threads", str(threads), "--drain", "1s")
    row = {r["what"]: r["values"] for r in d["timeline"]["rows"]}
    sent = row["submitted"][:seconds]
    good = all(abs(n - rate) <= 0.01 * rate for n in sent) and max(row["lag"]) <= LAG
    return good, min(sent) / rate, max(row["lag"])


def highest(scratch, ceiling, args, threads):
    """Halves the distance between a rate that is kept up with and one that is not."""
    low, high = 0.0, ceiling * 1.05
    for _ in range(args.steps):
        rate = int((low + high) / 2) if low else int(high * 0.75)
        good, least, lag = max(keeps_up(scratch, rate, args.seconds, threads)
                               for _ in range(args.tries))
        print(f"  offered {rate:>9}/s: {'kept' if good else 'not kept'}, least second "
              f"{least:.1%}, lag {lag * 1e3:.1f} ms")
        low, high = (rate, high) if good else (low, rate)
    return low


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", default="/dev/shm", help="where the files lie (a tmpfs)")
    parser.add_argument("--short", action="store_true", help="half a minute")
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    args.steps, args.tries, args.seconds = (3, 2, 2) if args.short else (6, 3, 4)
    need_stage()
    facts, threads = machine(), os.cpu_count()
    say_machine(facts)
    with Scratch(args.dir) as scratch:
        calls = 500_000 if args.short else 2_000_000
        rows = {}
        print(f"\nclosed loop, {threads} threads")
        print(f"  {'calls':<14}{'per second':>12}{'CPU of one':>13}{'own part':>11}")
        for ops, parts in OPS:
            rows[ops] = closed(scratch, ops, calls // parts // (1 if ops == "getattr" else 4),
                               threads)
            print(f"  {ops:<14}{rows[ops][0]:>12.0f}{rows[ops][1]:>10.0f} ns"
                  f"{rows[ops][2]:>8.0f} ns")
        print("\nopen loop, stat")
        rate = highest(scratch, rows["getattr"][0], args, threads)
    print(f"\nceiling: {rate:.0f} stat/s offered and kept, {rate / rows['getattr'][0]:.0%} of the "
          f"closed loop; aim {AIM}: {'PASS' if rate >= AIM else 'over'}")
    by_cpu = threads * 1e9 / rows["getattr"][1]
    print(f"by CPU time alone {threads} idle CPUs could do {by_cpu:.0f}/s")
    write_json(args.json, {"machine": facts, "closed": rows, "ceiling": rate, "aim": AIM})


finish(main)
