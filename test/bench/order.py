#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fsync below `sluice run --order durable@DIR` beside the kernel's: the same programs in turns, on
a disk whose writes take 20 us and whose flushes a known time, one after the other. Medians of the
rounds, each in an empty directory. Needs root, FUSE and loop devices.
"""
import argparse
import os
import shutil
import subprocess
import sys

from common import BUILD, SLUICE, Broken, Scratch, finish, machine, median, need_stage, say_machine
from common import write_json

WORKS = ("append", "overwrite", "overdata", "varmail", "wal", "delete")
WORK = os.path.join(BUILD, "bench", "order_work")
POWER_CUT = os.path.join(BUILD, "test", "crash", "power_cut")
COLUMNS = ("per_second", "p50_us", "p99_us", "longest_us", "flushes", "writes")


def run_once(options, disk, work, threads, durable):
    """One run's figures, or nothing where libsqlite3 is missing."""
    where = os.path.join(disk, "work")
    shutil.rmtree(where, ignore_errors=True)
    os.mkdir(where)
    subprocess.run(["sync", "-f", disk], check=True)
    command = [WORK, work, str(threads), str(options.ms), where]
    if durable:
        log = options.log or os.path.join(disk, "log")
        command = [SLUICE, "--run-dir", options.run_dir, "run",
                   "--order", f"{options.order}@{where}", "--order-log", log, "--no-summary",
                   "--"] + command
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode == 77:
        return None
    if done.returncode != 0:
        raise Broken(f"status {done.returncode}: " + " ".join(command))
    return dict(zip(COLUMNS, map(float, done.stdout.split())))


def middle(runs, column):
    return median([run[column] for run in runs])


def row(options, disk, work, threads):
    runs = {False: [], True: []}
    for turn in range(options.rounds):
        for durable in (False, True) if turn % 2 == 0 else (True, False):
            figures = run_once(options, disk, work, threads, durable)
            if figures is None:
                return None
            runs[durable].append(figures)
    return {"work": work, "threads": threads, "native": runs[False], "durable": runs[True],
            "ratio": middle(runs[True], "per_second") / middle(runs[False], "per_second"),
            "latency_ratio": middle(runs[True], "p50_us") / middle(runs[False], "p50_us")}


def measure(options, flush_us):
    disk = os.environ["DISK"]
    print(f"\nflush {flush_us} us: per second, and us until it is durable: median, 99 of 100, "
          f"longest; {options.rounds} rounds of {options.ms} ms")
    print(f"{'work':9} {'thr':>3} {'native/s':>9} {'durable/s':>9} {'ratio':>6} | "
          f"{'native us':>9} {'p99':>7} {'max':>7} {'fl/op':>5} {'wr/op':>5} | "
          f"{'durable':>7} {'p99':>7} {'max':>7} {'fl/op':>5} {'wr/op':>5} {'ratio':>6}")
    rows = []
    for work in options.work:
        for threads in options.threads:
            r = row(options, disk, work, threads)
            if r is None:
                print(f"{work:9} {threads:3} skip: no libsqlite3")
                continue
            rows.append(dict(r, flush_us=flush_us))
            n, d = ({c: middle(r[k], c) for c in COLUMNS} for k in ("native", "durable"))
            print(f"{work:9} {threads:3} {n['per_second']:9.0f} {d['per_second']:9.0f} "
                  f"{r['ratio']:5.2f}x | {n['p50_us']:9.0f} {n['p99_us']:7.0f} "
                  f"{n['longest_us']:7.0f} {n['flushes']:5.2f} {n['writes']:5.2f} | "
                  f"{d['p50_us']:7.0f} {d['p99_us']:7.0f} {d['longest_us']:7.0f} "
                  f"{d['flushes']:5.2f} {d['writes']:5.2f} {r['latency_ratio']:5.2f}x", flush=True)
    return rows


def on_disks(options, words):
    """Each flush time has a disk of its own; this script runs again where it is mounted."""
    need_stage()
    if not os.path.exists(POWER_CUT):
        raise Broken("power_cut is not built: it needs libfuse3-dev")
    facts = machine()
    say_machine(facts)
    with Scratch(options.scratch) as scratch:
        for flush_us in options.flush:
            command = [POWER_CUT, "disk", options.fs, str(flush_us), sys.executable, __file__,
                       *words, "--flush", str(flush_us)]
            status = subprocess.run(command, env=dict(os.environ, SCRATCH=scratch,
                                                      SLUICE_BENCH=scratch)).returncode
            if status == 77:
                return
            if status != 0:
                raise Broken(f"status {status} at flush {flush_us} us")


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--flush", type=int, nargs="+", default=[100, 1000], help="us of each flush")
    p.add_argument("--threads", type=int, nargs="+", default=[1, 16, 40])
    p.add_argument("--work", nargs="+", choices=WORKS, default=WORKS)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--ms", type=int, default=1000, help="of each run")
    p.add_argument("--fs", default="ext4", choices=("ext4", "xfs", "btrfs"))
    p.add_argument("--order", default="durable", choices=("durable", "ordered"),
                   help="ordered: the column durable is of barriers, which do not wait")
    p.add_argument("--log", help="where the log is; on the same disk if not given")
    p.add_argument("--scratch", default="/tmp")
    p.add_argument("--json", help="write all figures there; a file for each flush time")
    options = p.parse_args()
    if "DISK" not in os.environ:
        on_disks(options, sys.argv[1:])
        return
    options.run_dir = os.path.join(os.environ["SLUICE_BENCH"], "run")
    (flush_us,) = options.flush
    rows = measure(options, flush_us)
    if options.json:
        write_json(f"{options.json}.{flush_us}", rows)


finish(main)
