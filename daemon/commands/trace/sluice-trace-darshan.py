#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints a Darshan log as rows `FROM_S TO_S OP AMOUNT`, seconds from the start of the job.

Run by `sluice trace convert`. Counters of a file are given with the times of its first and last
call of that kind; reads and writes that DXT has traced one by one replace its counters. What
cannot be read is told in one line `error …`; a complete output ends with `end`.
"""
import os
import sys
import tempfile

# op: (counters, start, end); close has no counter: what was opened is closed.
KINDS = {
    "POSIX": (
        ("open", ("POSIX_OPENS",), "POSIX_F_OPEN_START_TIMESTAMP", "POSIX_F_OPEN_END_TIMESTAMP"),
        ("close", ("POSIX_OPENS",), "POSIX_F_CLOSE_START_TIMESTAMP",
         "POSIX_F_CLOSE_END_TIMESTAMP"),
        ("getattr", ("POSIX_STATS",), "POSIX_F_OPEN_START_TIMESTAMP",
         "POSIX_F_CLOSE_END_TIMESTAMP"),
        ("sync", ("POSIX_FSYNCS", "POSIX_FDSYNCS"), "POSIX_F_WRITE_START_TIMESTAMP",
         "POSIX_F_CLOSE_END_TIMESTAMP"),
        ("rename", ("POSIX_RENAME_SOURCES",), "POSIX_F_OPEN_START_TIMESTAMP",
         "POSIX_F_CLOSE_END_TIMESTAMP"),
        ("read", ("POSIX_BYTES_READ",), "POSIX_F_READ_START_TIMESTAMP",
         "POSIX_F_READ_END_TIMESTAMP"),
        ("write", ("POSIX_BYTES_WRITTEN",), "POSIX_F_WRITE_START_TIMESTAMP",
         "POSIX_F_WRITE_END_TIMESTAMP"),
    ),
    "STDIO": (
        ("open", ("STDIO_OPENS",), "STDIO_F_OPEN_START_TIMESTAMP", "STDIO_F_OPEN_END_TIMESTAMP"),
        ("close", ("STDIO_OPENS",), "STDIO_F_CLOSE_START_TIMESTAMP",
         "STDIO_F_CLOSE_END_TIMESTAMP"),
        ("read", ("STDIO_BYTES_READ",), "STDIO_F_READ_START_TIMESTAMP",
         "STDIO_F_READ_END_TIMESTAMP"),
        ("write", ("STDIO_BYTES_WRITTEN",), "STDIO_F_WRITE_START_TIMESTAMP",
         "STDIO_F_WRITE_END_TIMESTAMP"),
    ),
}


def refuse(what):
    print("error", " ".join(str(what).split()))
    sys.exit(0)


def rows_of_counters(report, module, wanted, traced):
    report.mod_read_all_records(module, dtype="dict")
    for record in report.records[module]:
        if not wanted(report.name_records.get(record["id"], "")):
            continue
        counters, times = record["counters"], record["fcounters"]
        last = max([0.0] + [v for k, v in times.items() if k.endswith("_TIMESTAMP")])
        for op, names, begin, end in KINDS[module]:
            amount = sum(max(0, counters.get(name, 0)) for name in names)
            if amount == 0 or (op in ("read", "write") and (record["id"], op) in traced):
                continue
            start = times.get(begin, 0.0)
            stop = times.get(end, 0.0)
            yield start or stop, (stop if stop >= start else 0.0) or last, op, amount


def rows_of_dxt(report, wanted, traced):
    report.mod_read_all_dxt_records("DXT_POSIX", dtype="dict")
    for record in report.records["DXT_POSIX"]:
        if not wanted(report.name_records.get(record["id"], "")):
            continue
        for op in ("read", "write"):
            for segment in record[op + "_segments"]:
                traced.add((record["id"], op))
                yield segment["start_time"], segment["end_time"], op, segment["length"]


def main(path, below):
    # Its library writes what is wrong to standard error, and goes on with half a log.
    complaints = tempfile.TemporaryFile()
    os.dup2(complaints.fileno(), 2)
    try:
        import darshan
    except ImportError as why:
        refuse(f"needs Darshan's Python package ({why}); pip install darshan")
    try:
        report = darshan.DarshanReport(path, read_all=False)
        report.read_metadata()
        report.read_name_records()
    except Exception as why:
        refuse(f"no Darshan log that its package can read: {why}")
    prefix = below.rstrip("/") + "/" if below else ""

    def wanted(name):
        if prefix:
            return name.startswith(prefix)
        return not name.startswith(("/dev/", "/proc/", "<STD"))

    print("start", report.metadata["job"]["start_time_sec"])
    traced = set()
    try:
        rows = []
        if "DXT_POSIX" in report.modules:
            rows += rows_of_dxt(report, wanted, traced)
        for module in KINDS:
            if module in report.modules:
                rows += rows_of_counters(report, module, wanted, traced)
    except Exception as why:
        refuse(f"the log is damaged: {why}")
    complaints.seek(0)
    told = [line for line in complaints.read().decode(errors="replace").split("\n")
            if line.startswith("Error:")]
    if told:
        refuse(f"the log is damaged or cut: {told[0]}")
    for start, stop, op, amount in sorted(rows):
        print(f"{max(start, 0):.6f} {max(stop, 0):.6f} {op} {amount}")
    print("end")


main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "")
