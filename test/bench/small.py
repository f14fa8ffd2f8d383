#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What do hints to the kernel bring a program that works in small pieces, a target that is
close-to-open, and small reads that are answered from memory? One unmodified program (pieces.cc)
overwrites a file, or reads it at equal distances, natively and below `sluice run --small hints`, in
turns; it writes new files natively, where small writes are gathered, and below `sluice run --small
strict`; it reads whole files, and
their beginnings, natively and below `sluice run --small reads`. Cold: nothing of the file is cached
at the beginning.
"""
import argparse
import contextlib
import json
import os
import subprocess
import sys

from common import BUILD, SLUICE, Broken, Scratch, finish, machine, median, need_stage, output
from common import say_machine, write_json

PIECES = os.path.join(BUILD, "bench", "pieces")
WRITES = (512, 4096, 4097, 8192, 8193)
STRIDES = (40_000, 300_000)
GATHERED = (8, 64, 512, 1024, 4096, 4097, 8193)
SHORT = (20, 40, 50, 100, 200, 1000)
BUFFERED = (8, 64, 512, 1024, 4096)
PARTS = (20, 50, 200, 1000, 10_000)
WAYS = {"native": [], "hints": ["--small", "hints"], "gathered": ["--policy", "policy.json"],
        "buffered": ["--small", "reads"], "strict": ["--small", "strict"]}


def run(way, what, path, by, size, cold=False, policy=None):
    flags = [policy if f == "policy.json" else f for f in WAYS[way]]
    below = [SLUICE, "--no-daemon", "run", "-q", *flags, "--no-summary", "--"] if flags else []
    done = subprocess.run(below + [PIECES, what, path, str(by), str(size)],
                          stdout=subprocess.PIPE, text=True,
                          env=dict(os.environ, **({"COLD": "1"} if cold else {})))
    if done.returncode != 0:
        raise Broken(f"{what} {path}: status {done.returncode}")
    return float(done.stdout)


def write_round(path, piece, size):
    """MB/s: a new file, the same again when it is cold, and when it is in the cache."""
    if os.path.exists(path):
        os.unlink(path)
    figures = {"new": run("native", "write", path, piece, size, False)}
    for state in ("cold", "cached"):
        for way in ("native", "hints"):
            figures[f"{state} {way}"] = run(way, "write", path, piece, size, state == "cold")
    return figures


def stride_round(path, step, size):
    """Microseconds a read."""
    figures = {}
    for state in ("cold", "cached"):
        for way in ("native", "hints"):
            figures[f"{state} {way}"] = run(way, "strides", path, step, size, state == "cold")
    return figures


@contextlib.contextmanager
def on_fuse(scratch):
    """A directory behind a FUSE file system that caches no writes; None where there is none."""
    source, here = (os.path.join(scratch, n) for n in ("behind", "fuse"))
    os.mkdir(source)
    os.mkdir(here)
    try:
        made = subprocess.run(["bindfs", source, here], stderr=subprocess.DEVNULL).returncode == 0
    except FileNotFoundError:
        made = False
    try:
        yield here if made else None
    finally:
        if made:
            subprocess.run(["umount", here], check=False)


def gathered(folder, name, rounds, writes, held="gathered", most_bytes=256 << 20):
    """Writes of a new file, its close included, and short files; `held`: the other way."""
    policy = os.path.join(folder, "policy.json")
    with open(policy, "w") as f:
        json.dump({"targets": {"here": {"path": folder, "small": "close-to-open"}}}, f)

    def both(what, path, by, size):
        seen = {"native": [], held: []}
        for _ in range(rounds):
            for way, to in seen.items():
                if what == "write" and os.path.exists(path):
                    os.unlink(path)
                to.append(run(way, what, path, by, size, policy=policy))
        return {way: median(x) for way, x in seen.items()}

    rows = {"writes": {}, "files": {}}
    print(f"\n{name}: writes of a new file and its close\n{'bytes':>8} {'native, ns':>12} "
          f"{held + ', ns':>13} {'gain':>8}")
    path = os.path.join(folder, "file")
    for by in GATHERED:
        rates = both("write", path, by, min(writes, most_bytes // by) * by)
        ns = {way: by / rate * 1e3 for way, rate in rates.items()}
        rows["writes"][by] = ns
        print(f"{by:8} {ns['native']:12.1f} {ns[held]:13.1f} "
              f"{ns['native'] / ns[held]:7.1f}x", flush=True)
    print(f"{name}: new files of so many writes of 64 bytes\n{'writes':>8} {'native, us':>12} "
          f"{held + ', us':>13} {'gain':>8}")
    os.mkdir(os.path.join(folder, "files"))
    for by in SHORT:
        us = both("files", os.path.join(folder, "files"), by, max(writes // by // 10, 20))
        rows["files"][by] = us
        print(f"{by:8} {us['native']:12.1f} {us[held]:13.1f} "
              f"{us['native'] / us[held]:7.2f}x", flush=True)
    return rows


def gathered_overwrites(folder, rounds, size):
    """MB/s over a cold file in pieces that do not fill pages, and of a new file."""
    policy = os.path.join(folder, "policy.json")
    path = os.path.join(folder, "over")
    print(f"\noverwriting {size >> 20} MiB, cold, MB/s\n{'bytes':>8} {'new':>10} {'native':>10} "
          f"{'gathered':>10} {'of new':>8}")
    rows = {}
    for by in (4097, 8193):
        seen = {"new": [], "native": [], "gathered": []}
        for _ in range(rounds):
            if os.path.exists(path):
                os.unlink(path)
            seen["new"].append(run("native", "write", path, by, size))
            for way in ("native", "gathered"):
                seen[way].append(run(way, "write", path, by, size, cold=True, policy=policy))
        rows[by] = {name: median(x) for name, x in seen.items()}
        print(f"{by:8} " + " ".join(f"{x:10.0f}" for x in rows[by].values()) +
              f" {rows[by]['gathered'] / rows[by]['new']:8.0%}", flush=True)
    return rows


def buffered(folder, name, rounds):
    """Reads of a cached file from its beginning, its close included; and of its first part."""
    path = os.path.join(folder, "read")
    with open(path, "wb") as f:
        f.write(os.urandom(32 << 20))

    def both(what, by, size):
        seen = {"native": [], "buffered": []}
        for _ in range(rounds):
            for way, to in seen.items():
                to.append(run(way, what, path, by, size))
        return {way: median(x) for way, x in seen.items()}

    rows = {"reads": {}, "parts": {}}
    for kind, head, sizes, how in (
            ("reads", "reads of a file, ns a read", BUFFERED,
             lambda by: ("reads", by, min(32 << 20, 1_000_000 * by))),
            ("parts", "a file opened, so many reads of 64 bytes, us a file", PARTS,
             lambda by: ("parts", by, max(200_000 // by, 20)))):
        print(f"\n{name}: {head}\n{'':>8} {'native':>12} {'buffered':>13} {'gain':>8}")
        for by in sizes:
            figures = both(*how(by))
            rows[kind][by] = figures
            scale = 1e3 if kind == "reads" else 1
            print(f"{by:8} {scale * figures['native']:12.1f} {scale * figures['buffered']:13.1f} "
                  f"{figures['native'] / figures['buffered']:7.2f}x", flush=True)
    return rows


def gathered_everywhere(options):
    rows = {}
    for name, at, writes in (("tmpfs", "/dev/shm", 200_000), ("ext4", options.scratch, 200_000)):
        with Scratch(at) as scratch:
            rows[name] = gathered(scratch, name, options.rounds, writes)
            if name == "ext4":
                rows["overwrites"] = gathered_overwrites(scratch, options.rounds,
                                                         options.mib << 20)
    with Scratch(options.scratch) as scratch, on_fuse(scratch) as here:
        if here is not None:
            rows["fuse"] = gathered(here, "FUSE (bindfs)", options.rounds, 5_000)
    return rows


def gathered_there(options):
    """On the file system of --scratch alone, and what its server takes in large pieces."""
    most_bytes = 16 << 20
    seen = {("native", 1 << 20): [], ("gathered", 1 << 10): []}
    with Scratch(options.scratch) as scratch:
        name = output("stat", "-f", "-c", "%T", scratch).strip()
        rows = gathered(scratch, name, options.rounds, 20_000, most_bytes=most_bytes)
        path, policy = os.path.join(scratch, "large"), os.path.join(scratch, "policy.json")
        for _ in range(options.rounds):
            for (way, by), to in seen.items():
                if os.path.exists(path):
                    os.unlink(path)
                to.append(run(way, "write", path, by, most_bytes, policy=policy))
    print(f"\n{name}: the same bytes in turns, MB/s")
    rows["in turns"] = {f"{way}, {by}": median(x) for (way, by), x in seen.items()}
    for words, rate in rows["in turns"].items():
        print(f"{words:>14} {rate:8.0f}")
    return {name: rows}


def strict_everywhere(options):
    rows = {}
    for name, at in (("tmpfs", "/dev/shm"), ("ext4", options.scratch)):
        with Scratch(at) as scratch:
            rows[name] = gathered(scratch, name, options.rounds, 400_000, "strict")
    return rows


def buffered_everywhere(options):
    rows = {}
    for name, at in (("tmpfs", "/dev/shm"), ("ext4", options.scratch)):
        with Scratch(at) as scratch:
            rows[name] = buffered(scratch, name, options.rounds)
    return rows


def hinted(options):
    size = options.mib << 20
    both = ["cold native", "cold hints", "cached native", "cached hints"]
    with Scratch(options.scratch) as scratch:
        path = os.path.join(scratch, "file")
        writes = table(f"overwriting {options.mib} MiB in pieces, MB/s", ["new", *both], WRITES,
                       lambda by: write_round(path, by, size), options.rounds, True)
        with open(path, "wb") as f:
            for _ in range(8 * options.mib):
                f.write(os.urandom(1 << 20))
            os.fsync(f.fileno())
        strides = table(f"512 bytes at equal distances of {8 * options.mib} MiB, us a read", both,
                        STRIDES, lambda by: stride_round(path, by, 8 * size), options.rounds,
                        False)
    return {"writes": writes, "strides": strides}


def table(head, columns, sizes, one_round, rounds, is_rate):
    print(f"\n{head}")
    print(f"{'bytes':>8} " + " ".join(f"{c:>14}" for c in columns) + f" {'cold gain':>10}"
          f" {'cached':>8}" + (f" {'cold/new':>9}" if is_rate else ""))
    rows = {}
    for by in sizes:
        if sys.stderr.isatty():
            print(f"\r\033[K{by} bytes", end="", file=sys.stderr)
        seen = [one_round(by) for _ in range(rounds)]
        middle = {c: median([s[c] for s in seen]) for c in columns}
        gain = {state: middle[f"{state} hints"] / middle[f"{state} native"]
                for state in ("cold", "cached")}
        if not is_rate:
            gain = {state: 1 / g for state, g in gain.items()}
        rows[by] = {"median": middle, "rounds": seen}
        end = f" {middle['cold hints'] / middle['new']:8.0%}" if is_rate else ""
        print(f"{by:8} " + " ".join(f"{middle[c]:14.1f}" for c in columns) +
              f" {gain['cold']:9.1f}x {gain['cached']:7.2f}x{end}", flush=True)
    return rows


PARTS_OF_IT = {"hints": hinted, "gathered": gathered_everywhere, "buffered": buffered_everywhere,
               "strict": strict_everywhere, "there": gathered_there}


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--scratch", default=os.path.join(BUILD, "bench"), help="on a real disk")
    p.add_argument("--mib", type=int, default=32, help="size of the file that is written")
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--only", choices=list(PARTS_OF_IT),
                   help="one part of it; there: close-to-open, on the file system of --scratch")
    p.add_argument("--json", help="write all figures there")
    options = p.parse_args()
    need_stage()
    facts = machine()
    say_machine(facts)
    chosen = [options.only] if options.only else [n for n in PARTS_OF_IT if n != "there"]
    write_json(options.json, {"machine": facts,
                              **{name: PARTS_OF_IT[name](options) for name in chosen}})


finish(main)
