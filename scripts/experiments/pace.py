# SPDX-License-Identifier: Apache-2.0
"""Clients that ask, each in a thread of its own, and when each answer came.

With a rate they ask at even moments, whether the last answer is there or not: the latency counts
from the moment at which it should have been asked, as with pgbench --rate. Else they never pause.
"""
import threading
import time


def client(ask, begin, end, every_s, rows):
    wanted = begin
    while (now := time.time()) < end:
        if every_s and now < wanted:
            time.sleep(min(wanted, end) - now)
            continue
        since = wanted if every_s else now
        ask()
        done = time.time()
        rows.append((done, (done - since) * 1e3))
        wanted += every_s


def drive(asks, seconds, per_s):
    """(when it was done, ms) of each transaction, in that order; `asks`: one function a client."""
    begin, rows, failed = time.time(), [[] for _ in asks], []
    every_s = len(asks) / per_s if per_s else 0

    def run(i):
        try:
            client(asks[i], begin + i * every_s / len(asks), begin + seconds, every_s, rows[i])
        except Exception as e:
            failed.append(e)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(asks))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if failed:
        raise failed[0]
    return sorted(row for part in rows for row in part)
