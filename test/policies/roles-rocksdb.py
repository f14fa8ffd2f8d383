#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 300
"""Roles of an unmodified db_bench against RocksDB's own statistics and log: by log lines, by
lineage alone, and with two databases in one process.
"""
import json
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from roles import SCRATCH, fail, must_be_near, of_report, policy, run, skip  # noqa: E402

if shutil.which("db_bench") is None:
    skip("needs db_bench (rocksdb-tools)")

DB = os.path.join(SCRATCH, "db")
LEAST = 0.01  # what may be missing or too much
LEAST_SPLIT = 0.05  # a thread's line may wait in a buffer of the log while its job begins


def bench(path, *more):
    shutil.rmtree(DB, ignore_errors=True)
    return run(path, "db_bench", "--benchmarks=fillrandom,flush,waitforcompaction", "--num=200000",
               "--value_size=400", f"--db={DB}", "--write_buffer_size=4194304",
               "--target_file_size_base=4194304", "--max_bytes_for_level_base=8388608",
               "--compression_type=none", "--max_background_jobs=4", "--statistics=1", "--seed=1",
               *more)


def ticker(said, name):
    return int(re.search(rf"rocksdb\.{re.escape(name)} COUNT : (\d+)", said).group(1))


def logs():
    """Lines of each database's own log."""
    for folder, _, files in os.walk(DB):
        if "LOG" in files:
            with open(os.path.join(folder, "LOG"), encoding="utf-8", errors="replace") as f:
                yield f.readlines()


def events(lines):
    return [json.loads(found[1]) for line in lines
            if (found := re.search(r"EVENT_LOG_v1 (\{.*\})", line))]


def written_by(lines, is_first):
    """Bytes that those compactions wrote whose job is such, and the others."""
    written = [0, 0]
    for event in events(lines):
        if event["event"] == "compaction_finished":
            written[0 if is_first(event["job"]) else 1] += event["total_output_size"]
    return written


def of_level_0(lines):
    jobs = {int(found[1]) for line in lines
            if (found := re.search(r"JOB (\d+)\] Compacting \d+@0 ", line))}
    return written_by(lines, jobs.__contains__)


def of_flushed_files(lines):
    """What lineage can know. A busy level 1 makes RocksDB merge files within level 0 first; the
    next compaction of that level may read no file that a flush made.
    """
    flushes = {e["job"] for e in events(lines) if e["event"] == "flush_started"}
    made = {e["file_number"] for e in events(lines)
            if e["event"] == "table_file_creation" and e["job"] in flushes}
    jobs = {e["job"] for e in events(lines) if e["event"] == "compaction_started"
            and any(made & set(e[key]) for key in e if key.startswith("files_L"))}
    return written_by(lines, jobs.__contains__)


def compare(what, said):
    r = of_report()
    flush, low, high = (r[f"rocksdb.{n}"] for n in ("flush", "compaction-low", "compaction-high"))
    must_be_near(f"{what}: flushes write", flush["written_bytes"],
                 ticker(said, "flush.write.bytes"), LEAST)
    must_be_near(f"{what}: compactions write", low["written_bytes"] + high["written_bytes"],
                 ticker(said, "compact.write.bytes"), LEAST)
    must_be_near(f"{what}: compactions read", low["read_bytes"] + high["read_bytes"],
                 ticker(said, "compact.read.bytes"), LEAST)
    if r.get(None, {"calls": 0})["calls"] != 0:
        fail(f"{what}: calls without a role: {r[None]}")
    return low, high


def compare_split(what, low, high, split):
    lower, higher = (sum(part) for part in zip(*map(split, logs())))
    must_be_near(f"{what}: low compactions write", low["written_bytes"], lower, LEAST_SPLIT)
    must_be_near(f"{what}: high compactions write", high["written_bytes"], higher, LEAST_SPLIT)


def known_by(row, source):
    known = sum(s["bytes"] for s in row["sources"] if s["source"] == source)
    return known / max(sum(s["bytes"] for s in row["sources"]), 1)


def only(index):
    def change(content):
        group = content["roles"]["rocksdb"]
        group["compaction-low"] = group["compaction-low"][index]
    return change


def main():
    low, high = compare("log", bench(policy("rocksdb", only(0))))
    compare_split("log", low, high, of_level_0)
    low, high = compare("lineage", bench(policy("rocksdb", only(1))))
    if known_by(low, "lineage") != 1:
        fail(f"known by something else: {low}")
    compare_split("lineage", low, high, of_flushed_files)
    low, high = compare("two databases", bench(policy("rocksdb"), "--num_multi_db=2"))
    if known_by(low, "log") < 0.5:
        fail(f"hardly known by the log: {low}")


main()
