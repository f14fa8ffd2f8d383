# SPDX-License-Identifier: Apache-2.0
"""Two processes of an ordered target that write in turn, each behind a barrier of the other, of
which it only knows by a pipe. Nothing is acknowledged; the order is asked for. Where the stream is
the job nothing may be there without what came before; where it is the process that must be seen.
A third one keeps the log busy, so that a barrier stands for a while.
"""
import mmap
import os
import time

from files import BLOCK, content, read, start_range
from program import Lost, Program, fork_each, mark

TURNS = 60
MUCH = 48  # blocks
STARTS = 2  # a stream of marks: how far they came


class Relay(Program):
    name = "relay"

    @property
    def order(self):
        return "ordered:job" if "job" in self.options else "ordered"

    def path(self, who):
        return os.path.join(self.dir, str(who))

    def prepare(self):
        super().prepare()
        for name, blocks in ((0, TURNS), (1, TURNS), ("much", MUCH)):
            with open(self.path(name), "wb") as f:
                f.write(bytes(blocks * BLOCK))

    def inside(self, seed):
        ends = [os.pipe(), os.pipe()]  # who writes to the first wakes process 1
        os.write(ends[1][1], b"g")
        done = mmap.mmap(-1, 2)
        return fork_each([lambda w=w: self.take_turns(w, ends[1 - w][0], ends[w][1], done)
                          for w in range(2)] + [lambda: self.write_much(done)])

    def write_much(self, done):
        fd = os.open(self.path("much"), os.O_RDWR)
        turn, end = 0, time.monotonic() + 60
        while bytes(done) != b"11" and time.monotonic() < end:
            os.pwrite(fd, bytes([turn % 251]) * (MUCH * BLOCK), 0)
            os.fsync(fd)
            turn += 1
        os.close(fd)

    def take_turns(self, who, mine, other, done):
        fd = os.open(self.path(who), os.O_RDWR)
        for turn in range(TURNS):
            os.read(mine, 1)
            os.pwrite(fd, content(who, turn), turn * BLOCK)
            os.fsync(fd)
            start_range(fd)
            mark(STARTS, turn)
            os.write(other, b"g")
        done[who:who + 1] = b"1"
        os.close(fd)

    def check(self, acknowledged):
        data = [read(self.path(who)) or b"" for who in range(2)]
        first_gap = None
        for step in range(2 * TURNS):
            who, turn = step % 2, step // 2
            there = data[who][turn * BLOCK:(turn + 1) * BLOCK] == content(who, turn)
            if there and first_gap is not None:
                raise Lost(f"step {step} is there without {first_gap}")
            if not there and first_gap is None:
                first_gap = step
