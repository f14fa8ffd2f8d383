#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fsync below `sluice run --order durable@DIR` and `ordered@DIR` beside the kernel's: the same
programs in turns, on disks whose flushes take a known time, one after the other. Medians of the
rounds, each in an empty directory. Needs root, FUSE and loop devices.
"""
import argparse
import os
import shutil
import subprocess

from common import BUILD, SLUICE, Broken, Scratch, finish, machine, median, need_stage, say_machine
from common import write_json
from order_jobs import WORK, run_jobs
from order_programs import PROGRAMS
from timed_disks import SERVER, disks, enter_own_mounts

WORKS = ("append", "overwrite", "prewritten", "overdata", "varmail", "wal", "delete")
# By name: the way of the mount, and the order if there is one.
MODES = {"native": ("plain", None),
         "durable": ("plain", "durable"), "ordered": ("plain", "ordered"),
         "native-async": ("async", None), "durable-async": ("async", "durable"),
         "native-fast": ("fast", None)}
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


def together(said):
    """One line of figures of jobs that ran at once. Each counts all flushes of the disk: these are
    told per operation of all jobs."""
    jobs = [dict(zip(COLUMNS, map(float, line.split()))) for line in said]
    all_per_second = sum(j["per_second"] for j in jobs)
    figures = {"per_second": all_per_second, "p50_us": median([j["p50_us"] for j in jobs]),
               "p99_us": max(j["p99_us"] for j in jobs),
               "longest_us": max(j["longest_us"] for j in jobs)}
    for c in ("flushes", "writes"):
        seen = median([j[c] * j["per_second"] for j in jobs])
        figures[c] = seen / max(all_per_second, 1e-9)
    return figures


def run_as_jobs(options, disk, where, work, jobs, kind):
    ms = str(options.ms or RUN_MS)
    own = [os.path.join(where, str(i)) for i in range(jobs)]
    for path in own:
        os.mkdir(path)
    shutil.rmtree(os.path.join(disk, "journals"), ignore_errors=True)
    return together(run_jobs(options.run_dir, where, kind, os.path.join(disk, "journals"),
                             [[WORK, work, "1", ms, path] for path in own]))


def run_once(options, places, work, threads, mode):
    way, order_kind = MODES[mode]
    disk = places[way]
    where = os.path.join(disk, "work")
    shutil.rmtree(where, ignore_errors=True)
    os.mkdir(where)
    subprocess.run(["sync", "-f", disk], check=True)
    if options.jobs:
        return run_as_jobs(options, disk, where, work, threads, order_kind)
    log = options.log or os.path.join(disk, "log")
    order = [] if order_kind is None else [
        SLUICE, "--run-dir", options.run_dir, "run", "--order", f"{order_kind}@{where}",
        "--order-journal", log, "--no-summary", "--"]

    def below(command):
        return order + command

    if work in PROGRAMS:
        return PROGRAMS[work](where, threads, options.program_ms, below)
    return run_work(work, threads, options.ms or RUN_MS, where, below)


def middle(runs, column):
    return median([run.get(column, 0) for run in runs])


def row(options, places, work, threads):
    """Each round has all modes, in turns; their ratios are those to native."""
    modes = ["native"] + options.beside
    runs = {mode: [] for mode in modes}
    for turn in range(options.program_rounds if work in PROGRAMS else options.rounds):
        for mode in modes[turn % len(modes):] + modes[:turn % len(modes)]:
            figures = run_once(options, places, work, threads, mode)
            if figures is None:
                return None
            runs[mode].append(figures)
    ratios = {mode: {c: middle(runs[mode], c) / max(middle(runs["native"], c), 1e-9)
                     for c in ("per_second", "p50_us")} for mode in options.beside}
    return {"work": work, "threads": threads, "runs": runs, "ratios": ratios}


def say(r):
    for mode, runs in r["runs"].items():
        f = {c: middle(runs, c) for c in COLUMNS}
        words = [f"{r['work']:12} {r['threads']:3} {mode:13} {f['per_second']:9.0f}"]
        ratio = r["ratios"].get(mode)
        words.append(f"{ratio['per_second']:6.2f}x" if ratio else " " * 7)
        words += [f"{f[c]:7.0f}" if f[c] else " " * 6 + "-" for c in COLUMNS[1:4]]
        words.append(f"{ratio['p50_us']:6.2f}x" if ratio else " " * 7)
        words += [f"{f[c]:6.2f}" if f[c] else "     -" for c in COLUMNS[4:]]
        print(" ".join(words), flush=True)


def measure(options, places, flush_us):
    print(f"\nflush {flush_us} us, load {os.getloadavg()[0]:.1f}: per second, and us until a sync "
          f"returns: median (of programs: mean), 99 of 100, longest; flushes and writes of the "
          f"disk per operation; {options.rounds} rounds")
    print(f"{'work':12} {'thr':>3} {'mode':13} {'/s':>9} {'ratio':>7} {'us':>7} {'p99':>7} "
          f"{'max':>7} {'ratio':>7} {'fl/op':>6} {'wr/op':>6}")
    rows = []
    for work in options.work:
        for threads in options.threads:
            r = row(options, places, work, threads)
            if r is None:
                print(f"{work:12} {threads:3} skip: its program or library is not there")
                continue
            rows.append(dict(r, flush_us=flush_us))
            say(r)
    return rows


def on_disks(options, scratch, flush_us):
    ways = list(dict.fromkeys(MODES[mode][0] for mode in ["native"] + options.beside))
    with disks(scratch, options.fs, flush_us, ways) as (places, is_fair):
        if not is_fair:
            print("before Linux 6.9 the disk is a program: each write takes a processor's time")
        return measure(options, places, flush_us)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--flush", type=int, nargs="+", default=[100, 1000], help="us of each flush")
    p.add_argument("--threads", type=int, nargs="+", default=[1, 16, 40])
    p.add_argument("--jobs", action="store_true",
                   help="so many programs of one thread, each a job of a node, instead of threads")
    p.add_argument("--work", nargs="+", choices=[*WORKS, *PROGRAMS], default=WORKS)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--ms", type=int, help="of each run (1000)")
    p.add_argument("--program-rounds", type=int, default=3)
    p.add_argument("--program-ms", type=int, default=4000)
    p.add_argument("--fs", default="ext4", choices=("ext4", "xfs"))
    p.add_argument("--beside", nargs="+", choices=list(MODES)[1:],
                   help="what stands beside native")
    p.add_argument("--log", help="where the log is; on the same disk if not given")
    p.add_argument("--scratch", default="/tmp")
    p.add_argument("--json", help="write all figures there")
    options = p.parse_args()
    if options.beside is None:
        options.beside = [m for m in MODES if m != "native" and
                          (options.fs == "ext4" or MODES[m][0] == "plain")]
    if options.jobs and set(options.work) & set(PROGRAMS):
        raise Broken("--jobs is for " + ", ".join(WORKS))
    need_stage()
    if not os.path.exists(SERVER):
        raise Broken("timed_disks is not built: it needs libfuse3-dev")
    if os.geteuid() != 0:
        raise Broken("needs root")
    enter_own_mounts()
    say_machine(machine())
    rows = []
    with Scratch(options.scratch) as scratch:
        options.run_dir = os.path.join(scratch, "run")
        for flush_us in options.flush:
            rows += on_disks(options, scratch, flush_us)
    write_json(options.json, rows)


finish(main)
