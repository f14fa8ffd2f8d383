# SPDX-License-Identifier: Apache-2.0
"""request_guest.py DIR WANTED: a little store. Its main thread answers GETs (4 KiB read of
DIR/data) and PUTs (4 KiB appended to DIR/store.log), as many a second as the file WANTED says
(`GETS PUTS`), and catches up with what it owes. For each PUT a thread named `compact` reads 64 KiB
later. Ends when that file is gone."""
import ctypes
import os
import queue
import sys
import threading
import time

folder, wish = sys.argv[1:3]
owed = queue.Queue()


def compact():
    ctypes.CDLL(None).prctl(15, b"compact", 0, 0, 0)
    fd = os.open(folder + "/data", os.O_RDONLY)
    while owed.get():
        os.pread(fd, 64 << 10, 0)


def wanted():
    """None: to end."""
    try:
        with open(wish, encoding="ascii") as f:
            return [float(word) for word in f.read().split()]
    except FileNotFoundError:
        return None


threading.Thread(target=compact, daemon=True).start()
data = os.open(folder + "/data", os.O_RDONLY)
log = os.open(folder + "/store.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
due, then = [0.0, 0.0], time.monotonic()
while (rates := wanted()) is not None:
    now = time.monotonic()
    due = [d + r * (now - then) for d, r in zip(due, rates)]
    then = now
    for _ in range(min(int(due[0]), 10)):
        os.pread(data, 4096, 0)
        due[0] -= 1
    for _ in range(min(int(due[1]), 10)):
        os.write(log, bytes(4096))
        owed.put(True)
        due[1] -= 1
    time.sleep(0.02)
owed.put(False)
