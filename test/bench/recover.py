#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long does `sluice recover` take for a log that a power cut left full? Beside it, in turns,
the floor: the same bytes read from the log in one go and written into a new file of the same disk,
and synced. Nothing of either is cached. The disk is an ext4 in a file of its own, by a loop device,
for not every file system tells who it is. Aim: 1 GiB in 10 s. Needs root.
"""
import argparse
import json
import os
import sys
import time

from common import BUILD, SLUICE, Broken, Scratch, finish, machine, median, need_stage
from common import output, say_machine, write_json

FULL_LOG = os.path.join(BUILD, "bench", "order_full_log")
PIECE = 1 << 20
AIM_S = 10


def forget_cached():
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w", encoding="utf-8") as f:
        f.write("3\n")


def fill(scratch, log_mib, record_bytes):
    """The log, and what is in it."""
    log, home = os.path.join(scratch, "log"), os.path.join(scratch, "home")
    os.mkdir(home)
    said = output(FULL_LOG, log, home, str(log_mib), str(record_bytes))
    records, data_bytes = map(int, said.split())
    return log, {"records": records, "data_bytes": data_bytes}


def recover_s(log, records):
    forget_cached()
    begin = time.monotonic()
    said = json.loads(output(SLUICE, "recover", log, "--replay", "--json"))
    if said["replayed_records"] != records:
        raise Broken(f"{said['replayed_records']} of {records} records were replayed")
    return time.monotonic() - begin


def copy_s(log, to):
    forget_cached()
    begin = time.monotonic()
    with open(log, "rb", buffering=0) as source, open(to, "wb", buffering=0) as copy:
        while piece := source.read(PIECE):
            copy.write(piece)
        os.fsync(copy.fileno())
    return time.monotonic() - begin


def mounted(scratch, log_mib):
    """A disk for the log, what is in it, and a copy. Gone with our mount namespace."""
    image, where = os.path.join(scratch, "image"), os.path.join(scratch, "disk")
    os.mkdir(where)
    with open(image, "wb") as f:
        f.truncate((4 * log_mib + 512) << 20)
    output("mkfs.ext4", "-q", "-F", image)
    output("mount", "-o", "loop", image, where)
    return where


def one_round(parent, log_mib, record_bytes):
    with Scratch(parent) as scratch:
        log, filled = fill(scratch, log_mib, record_bytes)
        floor_s = copy_s(log, os.path.join(scratch, "copy"))
        return dict(filled, copy_s=floor_s, recover_s=recover_s(log, filled["records"]))


def measure(options, disk):
    print(f"a full log of {options.log_mib} MiB, medians of {options.rounds} rounds; "
          f"aim: {AIM_S} s for 1024 MiB")
    print(f"{'record':>8} {'records':>9} {'data MiB':>9} {'recover s':>10} {'copy s':>8}")
    rows = []
    for record_bytes in options.record_bytes:
        rounds = [one_round(disk, options.log_mib, record_bytes) for _ in range(options.rounds)]
        rows.append({"record_bytes": record_bytes, "rounds": rounds})
        middle = {k: median([r[k] for r in rounds]) for k in rounds[0]}
        print(f"{record_bytes:8} {middle['records']:9.0f} {middle['data_bytes'] / (1 << 20):9.0f} "
              f"{middle['recover_s']:10.1f} {middle['copy_s']:8.1f}", flush=True)
    return rows


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--log-mib", type=int, default=1024)
    p.add_argument("--record-bytes", type=int, nargs="+", default=[4096, 65536])
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--scratch", default="/var/tmp", help="on the disk to be measured")
    p.add_argument("--json", help="write all figures there")
    options = p.parse_args()
    need_stage()
    if os.geteuid() != 0:
        raise Broken("needs root")
    if "PRIVATE_MOUNTS" not in os.environ:
        os.execvpe("unshare", ["unshare", "-m", sys.executable, *sys.argv],
                   dict(os.environ, PRIVATE_MOUNTS="1"))
    facts = machine()
    say_machine(facts)
    with Scratch(options.scratch) as scratch:
        disk = mounted(scratch, options.log_mib)
        try:
            rows = measure(options, disk)
        finally:
            output("umount", disk)
    write_json(options.json, {"machine": facts, "rows": rows})


finish(main)
