# SPDX-License-Identifier: Apache-2.0
"""background_guest.py DIR: threads named bg:* write as fast as they may, and the main thread writes
as many MB a second as the file DIR/rate says, for what people wait for. Ends when that is gone.
"""
import ctypes
import os
import sys
import threading
import time

folder = sys.argv[1]
libc = ctypes.CDLL(None)


def wanted():
    """None: to end."""
    try:
        with open(folder + "/rate", encoding="ascii") as f:
            return float(f.read() or 0) * 1e6
    except FileNotFoundError:
        return None


def work(name, size, pause_s):
    libc.prctl(15, name.encode(), 0, 0, 0)
    fd = os.open(f"{folder}/{name[3:]}", os.O_CREAT | os.O_WRONLY, 0o600)
    block = b"x" * size
    while not is_over:
        os.pwrite(fd, block, 0)
        time.sleep(pause_s)


is_over = False
for each in (("bg:high", 1 << 20, 0.001), ("bg:low", 1 << 16, 0.05), ("bg:flush", 1 << 16, 0.2)):
    threading.Thread(target=work, args=each).start()
front = os.open(folder + "/front", os.O_CREAT | os.O_WRONLY, 0o600)
due = 0
while (rate := wanted()) is not None:
    due = min(due + rate * 0.002, rate * 0.1)
    while due >= 4096:
        os.pwrite(front, b"y" * 4096, 0)
        due -= 4096
    time.sleep(0.002)
is_over = True
