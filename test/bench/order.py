#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fsync below `sluice run --order durable@DIR` and `ordered@DIR` beside the kernel's: the same
programs in turns, on a disk whose writes take 20 us and whose flushes a known time, one after the
other. Medians of the rounds, each in an empty directory. Needs root, FUSE and loop devices.
"""
import argparse
import os
import shutil
import subprocess
import sys

from common import BUILD, SLUICE, Broken, Scratch, finish, machine, median, need_stage, say_machine
from common import write_json
from order_programs import PROGRAMS

WORKS = ("append", "overwrite", "prewritten", "overdata", "varmail", "wal", "delete")
MODES = ("native", "durable", "ordered")
WORK = os.path.join(BUILD, "bench", "order_work")
POWER_CUT = os.path.join(BUILD, "test", "crash", "power_cut")
RUN_MS = 1000
COLUMNS = ("per_second", "p50_us", "p99_us", "longest_us", "flushes", "writes")


def run_work(work, threads, ms, where, below):
    """Nothing where libsqlite3 is missing."""
    command = below([WORK, work, str(threads), str(ms), where])
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode == 77:
        return None
    if done.returncode != 0:
        raise Broken(f"status {done.returncode}: " + " ".join(command))
    return dict(zip(COLUMNS, map(float, done.stdout.split())))


def run_once(options, disk, work, threads, mode):
    where = os.path.join(disk, "work")
    shutil.rmtree(where, ignore_errors=True)
    os.mkdir(where)
    subprocess.run(["sync", "-f", disk], check=True)
    log = options.log or os.path.join(disk, "log")
    order = [] if mode == "native" else [
        SLUICE, "--run-dir", options.run_dir, "run", "--order", f"{mode}@{where}",
        "--order-journal", log, "--no-summary", "--"]

    def below(command):
        return order + command

    if work in PROGRAMS:
        return PROGRAMS[work](where, threads, options.program_ms, below)
    return run_work(work, threads, options.ms or RUN_MS, where, below)


def middle(runs, column):
    return median([run.get(column, 0) for run in runs])


def row(options, disk, work, threads):
    """Each round has all modes, in turns; their ratios are those to native."""
    modes = ["native"] + options.order
    runs = {mode: [] for mode in modes}
    for turn in range(options.program_rounds if work in PROGRAMS else options.rounds):
        for mode in modes[turn % len(modes):] + modes[:turn % len(modes)]:
            figures = run_once(options, disk, work, threads, mode)
            if figures is None:
                return None
            runs[mode].append(figures)
    ratios = {mode: {c: middle(runs[mode], c) / max(middle(runs["native"], c), 1e-9)
                     for c in ("per_second", "p50_us")} for mode in options.order}
    return {"work": work, "threads": threads, "runs": runs, "ratios": ratios}


def say(r):
    for mode, runs in r["runs"].items():
        f = {c: middle(runs, c) for c in COLUMNS}
        words = [f"{r['work']:12} {r['threads']:3} {mode:8} {f['per_second']:9.0f}"]
        ratio = r["ratios"].get(mode)
        words.append(f"{ratio['per_second']:6.2f}x" if ratio else " " * 7)
        words += [f"{f[c]:7.0f}" if f[c] else " " * 6 + "-" for c in COLUMNS[1:4]]
        words.append(f"{ratio['p50_us']:6.2f}x" if ratio else " " * 7)
        words += [f"{f[c]:6.2f}" if f[c] else "     -" for c in COLUMNS[4:]]
        print(" ".join(words), flush=True)


def measure(options, flush_us):
    disk = os.environ["DISK"]
    print(f"\nflush {flush_us} us, load {os.getloadavg()[0]:.1f}: per second, and us until a sync "
          f"returns: median (of programs: mean), 99 of 100, longest; flushes and writes of the "
          f"disk per operation; {options.rounds} rounds")
    print(f"{'work':12} {'thr':>3} {'mode':8} {'/s':>9} {'ratio':>7} {'us':>7} {'p99':>7} "
          f"{'max':>7} {'ratio':>7} {'fl/op':>6} {'wr/op':>6}")
    rows = []
    for work in options.work:
        for threads in options.threads:
            r = row(options, disk, work, threads)
            if r is None:
                print(f"{work:12} {threads:3} skip: its program or library is not there")
                continue
            rows.append(dict(r, flush_us=flush_us))
            say(r)
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
    p.add_argument("--work", nargs="+", choices=[*WORKS, *PROGRAMS], default=WORKS)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--ms", type=int, help="of each run (1000)")
    p.add_argument("--program-rounds", type=int, default=3)
    p.add_argument("--program-ms", type=int, default=4000)
    p.add_argument("--fs", default="ext4", choices=("ext4", "xfs"))
    p.add_argument("--order", nargs="+", choices=MODES[1:], default=MODES[1:],
                   help="what stands beside native")
    p.add_argument("--log", help="where the log is; on the same disk if not given")
    p.add_argument("--scratch", default="/tmp")
    p.add_argument("--json", help="write all figures there; a file for each flush time")
    options = p.parse_args()
    if "DISK" not in os.environ:
        on_disks(options, sys.argv[1:])
        return
    options.order = list(options.order)
    options.run_dir = os.path.join(os.environ["SLUICE_BENCH"], "run")
    (flush_us,) = options.flush
    rows = measure(options, flush_us)
    if options.json:
        write_json(f"{options.json}.{flush_us}", rows)


finish(main)
