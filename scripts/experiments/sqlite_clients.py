#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two writers of one SQLite database in WAL mode, and a checkpointer that is a process of its own.

  sqlite_clients.py DB SECONDS PER_SECOND ROWS WAL_BYTES OUT

It writes OUT as JSON: transactions, spans of the checkpoints, and the size of the log at the end.
A checkpoint begins when the log has WAL_BYTES. It copies beside the writers (PASSIVE) as long as
that leaves less each time, then the rest, for which they wait (TRUNCATE).
"""
import json
import multiprocessing
import os
import random
import sqlite3
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pace  # noqa: E402

LONGEST_S, LOOK_S, WRITERS, TOUCHED = 60, 0.02, 2, 4
LITTLE = 100  # pages that nobody minds waiting for


def connect(path):
    db = sqlite3.connect(path, timeout=LONGEST_S, isolation_level=None, check_same_thread=False)
    for line in ("journal_mode=wal", "synchronous=full", "wal_autocheckpoint=0",
                 "cache_size=-2000"):
        db.execute("pragma " + line).fetchall()
    return db


def writer(path, rows, seed):
    db, chance = connect(path), random.Random(seed)

    def ask():
        db.execute("begin immediate")
        for _ in range(TOUCHED):
            db.execute("update t set n = n + 1 where id = ?", (chance.randint(1, rows),))
        db.execute("commit")

    return ask


def log_bytes(path):
    try:
        return os.stat(path + "-wal").st_size
    except FileNotFoundError:
        return 0


def wal_pages_left(db):
    """After a checkpoint beside the writers."""
    _, written, copied = db.execute("pragma wal_checkpoint(passive)").fetchone()
    return written - copied


def checkpoints(path, wal_bytes, is_over, told):
    db, spans = connect(path), []
    while not is_over.is_set():
        if log_bytes(path) < wal_bytes:
            time.sleep(LOOK_S)
            continue
        begin = time.time()
        left, before = wal_pages_left(db), float("inf")
        while LITTLE < left < before:
            left, before = wal_pages_left(db), left
        waits = time.time()
        db.execute("pragma wal_checkpoint(truncate)").fetchall()
        spans.append(("checkpoint", begin, time.time(), time.time() - waits))
    told.put(spans)


def main():
    path, seconds, per_s, rows, wal_bytes, out = sys.argv[1:]
    is_over, told = multiprocessing.Event(), multiprocessing.Queue()
    other = multiprocessing.Process(target=checkpoints, args=(path, int(wal_bytes), is_over, told))
    other.start()
    asks = [writer(path, int(rows), i) for i in range(WRITERS)]
    begin = time.time()
    done = pace.drive(asks, float(seconds), float(per_s))
    end, left = time.time(), log_bytes(path)
    is_over.set()
    spans = told.get()
    other.join()
    with open(out, "w") as f:
        json.dump({"begin": begin, "end": end, "done": done, "spans": spans, "wal_bytes": left}, f)


if __name__ == "__main__":
    main()
