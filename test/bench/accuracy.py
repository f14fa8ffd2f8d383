#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether a limit is kept: rates, windows of 10 ms, bytes, fairness, head of line, changes.

A guest in a closed loop stamps every completion of all its processes into one file; the sums are
taken over that file. Low rates run side by side, high ones alone. A second program notes when a CPU
stood still, since a stall longer than the burst costs tokens however good the bucket is.
"""
import argparse
import json
import os
import subprocess
import time

from common import (SLUICE, Broken, Scratch, build, clean_environment, finish, machine, median,
                    need_stage, say_machine, write_json)

LOW, HIGH = [1, 50, 99, 101, 150, 199, 999, 1990], [5_000, 20_000, 100_000, 500_000]
LAYOUTS = ["1 thread", "8 threads", "4 processes"]
KIB, MIB = 1024, 1024 * 1024
WARM_S, BURST_S, QUANTUM_S = 0.5, 0.050, 0.002


class Bench:
    def __init__(self, top):
        self.top, self.rate, self.number = top, build("rate", "rate.cc"), 0
        self.data = os.path.join(top, "data")
        with open(self.data, "wb") as f:
            f.truncate(4 * MIB)
        self.stalls = []
        self.watcher = subprocess.Popen([self.rate, "watch"], stdin=subprocess.PIPE, text=True,
                                        stdout=open(os.path.join(top, "stalls"), "wb"))

    def end(self):
        self.watcher.stdin.close()
        self.watcher.wait(10)

    def stall_ms(self, begin_ns, end_ns):
        with open(os.path.join(self.top, "stalls"), encoding="ascii") as f:
            rows = [tuple(map(int, line.split())) for line in f if len(line.split()) == 2]
        return max((late for at, late in rows if begin_ns - late < at < end_ns), default=0) / 1e6

    def ask(self, *what):
        ran = subprocess.run([self.rate, *map(str, what)], capture_output=True, text=True)
        if ran.returncode != 0:
            raise Broken(f"rate {what[0]}: {ran.stderr.strip()}")
        return json.loads(ran.stdout) if ran.stdout else None

    def sluice(self, *what):
        """Runs the command; the time before and after it."""
        begin = time.monotonic_ns()
        ran = subprocess.run([SLUICE, "--run-dir", os.path.join(self.top, "run"), *what],
                             env=clean_environment(), capture_output=True, text=True)
        if ran.returncode != 0:
            raise Broken(f"sluice {' '.join(what)}: {ran.stderr.strip()}")
        return begin, time.monotonic_ns()

    def start(self, limit, per_second, seconds, program):
        """`program(stamps)` is the guest's command line."""
        self.number += 1
        job = f"rate{self.number}"
        stamps = os.path.join(self.top, job)
        self.ask("new", stamps, int(per_second * (seconds + 2) * 1.3) + 100_000)
        argv = [SLUICE, "--run-dir", os.path.join(self.top, "run"), "run", "--no-summary", "--job",
                job, "--limit", limit, "--", *map(str, program(stamps))]
        running = subprocess.Popen(argv, env=clean_environment(), text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return job, stamps, running, time.monotonic() + seconds + 20

    @staticmethod
    def wait(started):
        job, _, running, until = started
        try:
            told = running.communicate(timeout=max(0.1, until - time.monotonic()))[1]
        except subprocess.TimeoutExpired:
            running.kill()
            raise Broken(f"{job} does not end")
        if running.returncode != 0:
            raise Broken(f"{job} ended with {running.returncode}: {told.strip()}")

    def guest(self, layout, size, seconds, rate):
        def program(stamps):
            tail = [stamps, self.data, "read", size]
            if layout == "4 processes":
                return [self.rate, "launch", 4, *tail, 1, seconds]
            if layout == "short processes":
                loop = 'while "$@"; do :; done'
                return ["sh", "-c", loop, "sh", self.rate, "run", *tail, 1, seconds,
                        max(1, rate // 100)]
            return [self.rate, "run", *tail, 8 if layout == "8 threads" else 1, seconds]
        return program


def mark(good, stall_ms):
    """void: a CPU stood still for longer than the burst, so the row says nothing about sluice."""
    return "pass" if good else "over" if stall_ms <= BURST_S * 1000 else "void"


def side_by_side(bench, rows, seconds):
    """Runs all rows at once; each becomes a finished row."""
    started = []
    for row in rows:
        ops = row["rate"] if row["unit"] == "ops" else min(row["rate"] / row["size"], 3e6)
        amount = row["limit"]
        started.append(bench.start(f"read={amount}", ops, seconds,
                                   bench.guest(row["layout"], row["size"], seconds, row["rate"])))
    for row, one in zip(rows, started):
        bench.wait(one)
        judge_rate(bench, row, bench.ask("sum", one[1], WARM_S, seconds), seconds - WARM_S)
        os.unlink(one[1])
        print_rate(row)
    return rows


def judge_rate(bench, row, found, window):
    if found["lost"] or found["ops"] < 2:
        raise Broken(f"{row['layout']} at {row['rate']}: {found['ops']} operations were stamped")
    ops = row["unit"] == "ops"
    done, most = (found["ops"], found["w10_ops"]) if ops else (found["amount"], found["w10_amount"])
    first = 1 if ops else found["first_amount"]
    expected = row["rate"] * window
    # With few operations in the window its borders decide; their spacing says more.
    few = found["ops"] < 200
    span = (found["last_ns"] - found["first_ns"]) / 1e9
    row["achieved"] = ((done - first) / span / row["rate"]) if few else done / expected
    row["window_max"] = most
    row["window_ratio"] = most / (row["rate"] * 0.010)
    row["window_p99_ratio"] = found["w10_ops_p99"] / (row["rate"] * 0.010) if ops else None
    # Every worker may finish one request that began to wait before the window.
    extra = 1 if ops else row["size"]
    row["window_aim"] = row["rate"] * (0.010 + BURST_S) * 1.01 + extra
    row["stall_ms"] = bench.stall_ms(found["begin_ns"], found["begin_ns"] + int(window * 1e9))
    row["rate_mark"] = mark(abs(row["achieved"] - 1) <= 0.01 and
                            abs(done - expected) <= max(0.01 * expected, extra), row["stall_ms"])
    row["window_mark"] = mark(most <= row["window_aim"], row["stall_ms"])
    if row["layout"] == "8 threads" and row["rate"] >= 999 and len(found["each"]) == 8:
        share = [w["ops"] * 8 / found["ops"] for w in found["each"]]
        row["fair"] = [min(share), max(share)]
        slack = max(0.05, 8 / found["ops"])
        row["fair_mark"] = mark(min(share) >= 1 - slack and max(share) <= 1 + slack,
                                row["stall_ms"])


def print_rate(row):
    what = f"{row['limit']}" + ("" if row["unit"] == "ops" else f" by {size_text(row['size'])}")
    fair = f"  shares {row['fair'][0]:.3f}…{row['fair'][1]:.3f} {row['fair_mark']}" \
        if "fair" in row else ""
    print(f"{what:22}{row['layout']:17}{row['achieved']:8.4f} {row['rate_mark']}"
          f"  w10 {row['window_max']:>9} ({row['window_ratio']:6.2f}) {row['window_mark']}"
          f"  stall {row['stall_ms']:5.1f}{fair}", flush=True)


def size_text(size):
    return f"{size // MIB} MiB" if size >= MIB else f"{size // KIB} KiB" if size >= KIB \
        else f"{size} B"


def ops_row(rate, layout):
    return {"unit": "ops", "rate": rate, "limit": f"{rate}/s", "layout": layout, "size": 1}


def bytes_row(mib, size):
    return {"unit": "bytes", "rate": mib * MIB, "limit": f"{mib}MiB/s", "layout": "1 thread",
            "size": size}


def rates(bench, short):
    print(f"\nrates: achieved/target (aim ±1 %), most in any 10 ms (÷ target; aim ≤ "
          f"{BURST_S * 1000:.0f} ms burst + 10 ms + 1 % + 1), longest CPU stall ms")
    rows = side_by_side(bench, [ops_row(r, la) for r in LOW for la in LAYOUTS],
                        6.5 if short else 12.5)
    groups = [[1, 50, 150], [999], [5000]] if short else \
        [[1, 50, 99], [101, 150, 199], [999], [1990], [5000]]
    for group in groups:
        rows += side_by_side(bench, [ops_row(r, "short processes") for r in group],
                             3.5 if short else 8.5)
    for rate in HIGH:
        together = [[ops_row(rate, la) for la in LAYOUTS]] if short and rate <= 20_000 else \
            [[ops_row(rate, la)] for la in LAYOUTS]
        for group in together:
            rows += side_by_side(bench, group, 2.5 if short else 8.5)
    return rows


def volumes(bench, short):
    print("\nbytes: as above, in bytes")
    if short:
        groups = [([bytes_row(1, s) for s in (4 * KIB, 64 * KIB, MIB)] +
                   [bytes_row(100, 64 * KIB)], 4.5), ([bytes_row(1, 1)], 2.5),
                  ([bytes_row(100, 4 * MIB)], 2.5)]
    else:
        groups = [([bytes_row(1, s) for s in (4 * KIB, 64 * KIB, MIB, 4 * MIB)], 20.5),
                  ([bytes_row(1, 1)], 8.5)]
        groups += [([bytes_row(100, s)], 8.5) for s in (4 * KIB, 64 * KIB, MIB, 4 * MIB)]
    return [row for group, seconds in groups for row in side_by_side(bench, group, seconds)]


def head_of_line(bench, short):
    print(f"\nhead of line: 4 MiB readers under 1 MB/s beside a 1-byte read each 10 ms "
          f"(aim p99 ≤ (readers + 1) × {QUANTUM_S * 1000:.0f} ms + 1 ms; PADLL: 4.5 s)")
    seconds, rows = (5 if short else 12), []
    started = [(n, bench.start("read=1MB/s", 1000, seconds, lambda stamps, n=n: [
        bench.rate, "big", stamps, bench.data, 4 * MIB, n, seconds])) for n in (1, 8)]
    for readers, one in started:
        bench.wait(one)
        found = bench.ask("sum", one[1], WARM_S, seconds)
        small = next((w for w in found["each"] if w["worker"] == 0), None)
        if small is None:
            small = {"ops": 0, "mean_ns": 0, "p99_ns": seconds * 1e9, "max_ns": seconds * 1e9}
        row = {"readers": readers, "reads": small["ops"], "mean_ms": small["mean_ns"] / 1e6,
               "p99_ms": small["p99_ns"] / 1e6, "max_ms": small["max_ns"] / 1e6,
               "aim_ms": (readers + 1) * QUANTUM_S * 1000 + 1,
               "stall_ms": bench.stall_ms(found["begin_ns"],
                                          found["begin_ns"] + int(seconds * 1e9))}
        row["mark"] = mark(row["p99_ms"] <= row["aim_ms"], row["stall_ms"])
        rows.append(row)
        many = "s" if readers > 1 else " "
        print(f"{readers} reader{many}: {row['reads']:5} small reads, wait "
              f"mean {row['mean_ms']:.2f}  p99 {row['p99_ms']:.2f}  max {row['max_ms']:.2f} ms  "
              f"aim {row['aim_ms']:.0f}  {row['mark']}  stall {row['stall_ms']:.1f}", flush=True)
    return rows


def changes_once(bench):
    one = bench.start("read=1000/s", 10_000, 3.6,
                      bench.guest("8 threads", 1, 3.6, 1000))
    job, stamps = one[0], one[1]
    times = {}
    time.sleep(0.9)
    for name, verb in [("x10", ["set", job, "read=10000/s"]), ("÷10", ["set", job, "read=1000/s"]),
                       ("pause", ["pause", job]), ("resume", ["resume", job])]:
        times[name] = bench.sluice(*verb)
        time.sleep(0.6)
    bench.wait(one)
    if bench.ask("sum", stamps, 0, 1)["lost"]:
        raise Broken("changes: far more operations than any rate set; is the limit in force?")
    found = {}
    for name, (begin, end) in times.items():
        after = bench.ask("steps", stamps, end, 10_000_000, 10)
        since = bench.ask("steps", stamps, begin, 10_000_000, 1)
        found[name] = {"command_ms": (end - begin) / 1e6, "passes_per_10ms": after["ops"],
                       "passes_100ms": sum(after["ops"]),
                       "first_after_begin_ms": (since["first_ns"] or 600e6) / 1e6,
                       "first_after_end_ms": (after["first_ns"] or 600e6) / 1e6}
    pause = times["pause"][1]
    still = times["resume"][0] - pause
    found["pause"]["passes_while_paused"] = bench.ask("steps", stamps, pause, still, 1)["ops"][0]
    stall_ms = bench.stall_ms(times["x10"][0], times["resume"][1] + 100_000_000)
    for f in found.values():
        f["stall_ms"] = stall_ms
    os.unlink(stamps)
    return found


def changes(bench, short):
    print("\nchanges, 8 threads at 1000/s: passes in each 10 ms after the command ended")
    runs = [changes_once(bench) for _ in range(1 if short else 5)]
    rows = []
    for found in runs:
        for name, f in found.items():
            total = f["passes_100ms"]
            if name == "pause":
                good, aim = f["passes_while_paused"] <= 1, "none while paused"
            elif name == "resume":
                good, aim = f["first_after_end_ms"] <= 10 and total <= 106, "first within 10 ms"
            else:
                expected = 1000 if name == "x10" else 100
                good, aim = abs(total - expected) <= 0.05 * expected + 1, f"{expected} in 100 ms"
            f.update(change=name, aim=aim, mark=mark(good, f["stall_ms"]))
            rows.append(f)
            more = ""
            if name == "pause":
                more = f"{f['passes_while_paused']} passes while paused"
            elif name == "resume":
                more = f"first {f['first_after_begin_ms']:.2f} ms after its begin"
            print(f"{name:7} command {f['command_ms']:5.1f} ms  {f['passes_per_10ms']}  "
                  f"sum {total}  aim: {aim}  {f['mark']}  {more}", flush=True)
    first = [f["resume"]["first_after_begin_ms"] for f in runs]
    print(f"first wake-up after `resume` began: median {median(first):.2f} ms, "
          f"max {max(first):.2f} ms")
    return rows


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--short", action="store_true", help="about a minute")
    options.add_argument("--json", metavar="FILE")
    options.add_argument("--only", choices=["rates", "bytes", "line", "changes"])
    wanted = options.parse_args()
    need_stage()
    facts = {"machine": machine(), "short": wanted.short, "begin": time.time()}
    say_machine(facts["machine"])
    parts = {"rates": rates, "bytes": volumes, "line": head_of_line, "changes": changes}
    with Scratch("/dev/shm") as top:
        bench = Bench(top)
        try:
            for name, part in parts.items():
                if wanted.only in (None, name):
                    facts[name] = part(bench, wanted.short)
        finally:
            bench.end()
    marks = [row[key] for name in parts for row in facts.get(name, [])
             for key in ("rate_mark", "window_mark", "fair_mark", "mark") if key in row]
    print(f"\n{marks.count('pass')} of {len(marks)} within their aim, {marks.count('over')} over, "
          f"{marks.count('void')} void (machine stalled); {time.time() - facts['begin']:.0f} s")
    write_json(wanted.json, facts)


finish(main)
