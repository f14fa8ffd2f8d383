# SPDX-License-Identifier: Apache-2.0
"""background_guest.py DIR: a program with background work. How often it gets a processor does not
decide what a control makes of it: whatever it does is far from the bounds of background.bash.

A thread bg:high reads more at once than an idle limit saves up, so it waits under any limit; and
seldom, so it does not wait for most of the time. bg:low and bg:flush read too little to wait. The
main thread does what people wait for, as DIR/foreground says: `little` every now and then, `much`
without a pause, or `none`. When that file is gone, all end.
"""
import ctypes
import os
import sys
import threading
import time

folder = sys.argv[1]
libc = ctypes.CDLL(None)
MIB = 1 << 20


def wanted():
    """None: to end."""
    try:
        with open(folder + "/foreground", encoding="ascii") as f:
            return f.read().strip()
    except FileNotFoundError:
        return None


def work(name, size, pause_s):
    libc.prctl(15, name.encode(), 0, 0, 0)
    fd, buffer = os.open(folder + "/file", os.O_RDONLY), bytearray(size)
    while not is_over:
        os.preadv(fd, [buffer], 0)
        time.sleep(pause_s)


is_over = False
with open(folder + "/file", "wb") as file:
    file.write(bytes(8 * MIB))
for each in (("bg:high", 8 * MIB, 0.5), ("bg:low", 64 << 10, 0.1), ("bg:flush", 4 << 10, 0.1)):
    threading.Thread(target=work, args=each).start()
front, piece = os.open(folder + "/file", os.O_RDONLY), bytearray(MIB)
while (how := wanted()) is not None:
    if how == "much":
        os.preadv(front, [piece], 0)
        continue
    if how == "little":
        os.preadv(front, [memoryview(piece)[:64 << 10]], 0)
    time.sleep(0.01)
is_over = True
