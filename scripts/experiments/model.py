# SPDX-License-Identifier: Apache-2.0
"""What tenants do, what it costs on each disk, and what each idea of cost believes of it.

A load is a row of parts, (what, bytes): `read`, `write`, `unaligned` (a write of one byte more),
`stat` and `fsync`.
"""
import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import common as c  # noqa: E402,F401  (finds world)
import world as w  # noqa: E402

KIB, MIB = 2**10, 2**20
PAGE = 4 * KIB
SIZES = [4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB]
IDEAS = ["vops", "linear", "bytes", "ops"]
LEAST = 0.01  # of one operation that an idea takes for nothing
SERVER = os.path.join(w.BUILD, "bench", "model_disk")


class Load:
    def __init__(self, kind, size=0):
        self.kind, self.size = kind, size

    def parts(self):
        if self.kind == "synced":
            return [("write", self.size), ("fsync", 0)]
        return [(self.kind, self.size)]

    def words(self):
        size = f"{self.size // KIB}K"
        return {"read": f"R{size}", "write": f"W{size}", "unaligned": f"W{size}+1", "stat": "stat",
                "synced": f"W{size}+fsync"}[self.kind]

    def __eq__(self, other):
        return (self.kind, self.size) == (other.kind, other.size)

    def __hash__(self):
        return hash((self.kind, self.size))


class HeldCosts:
    """Of disk.py: reads and writes cost the same, and are held apart."""
    write_factor, look, flush = 1.0, 0.0, 0.0

    def __init__(self, iops, bytes_per_s):
        self.iops, self.bytes_per_s = iops, bytes_per_s

    def moved(self, size):
        return max(1.0, size * self.iops / self.bytes_per_s)

    def part(self, what, size):
        """VOPs of one part, as they are."""
        if what == "read":
            return self.moved(size)
        if what == "write":
            return self.write_factor * self.moved(size)
        if what == "unaligned":  # one page more, and the two at the ends are read
            return self.write_factor * self.moved(size + PAGE) + 2 * self.moved(PAGE)
        return {"stat": self.look, "fsync": self.flush}[what]

    def load(self, load):
        return sum(self.part(*p) for p in load.parts())

    def depth(self, load):
        """Threads that fill the disk with it; none: nobody measured that."""
        return None


class ModelCosts(HeldCosts):
    """Of test/bench/model_disk.cc."""
    write_factor, look, flush = 1.5, 0.5, 4.0


class CalibratedCosts(HeldCosts):
    """Of a cost file: the sizes of its points alone."""

    def __init__(self, path):
        with open(path) as f:
            self.file = json.load(f)
        super().__init__(self.file["provisionable_vops"], 0)

    def point(self, what, size):
        curve = self.file[what]
        points = curve["aligned"] if isinstance(curve, dict) else curve
        points = (p if isinstance(p, dict) else {"bytes": p[0], "cost": p[1]} for p in points)
        return next(p for p in points if p["bytes"] == size)

    def part(self, what, size):
        return self.point(what, size)["cost"]

    def depth(self, load):
        return self.point(load.kind, load.size).get("threads")


def believed_part(idea, disk, what, size):
    if idea == "vops":
        return disk.part(what, size)
    if idea == "ops":
        return 1.0
    if idea == "bytes":
        return max(size / PAGE, LEAST)
    way = "read" if what == "read" else "write"
    small, large = (disk.part(way, s) for s in (SIZES[0], SIZES[-1]))
    slope = (large - small) / (SIZES[-1] - SIZES[0])
    return max(small + slope * (size - SIZES[0]), LEAST)


def believed(idea, disk, load):
    """What the idea says one operation of the load costs."""
    return sum(believed_part(idea, disk, *p) for p in load.parts())


def write_costs(path, idea, disk):
    """The idea as a cost file."""
    cost = lambda what, size: round(believed_part(idea, disk, what, size), 6)
    sizes = SIZES if isinstance(disk, CalibratedCosts) else [512 << i for i in range(14)]
    curve = lambda what: [[s, cost(what, s)] for s in sizes if cost(what, s) >= 0.001]
    content = {"version": 1, "max_vops": disk.iops, "provisionable_vops": disk.iops,
               "read": curve("read"), "write": curve("write"),
               "ops": {"open": LEAST, "stat": LEAST, "fsync": LEAST}}
    if disk.flush:
        content["write"] = {"aligned": curve("write"), "unaligned": curve("unaligned")}
        content["ops"].update(stat=cost("stat", 0), fsync=cost("fsync", 0))
    with open(path, "w") as f:
        json.dump(content, f)


class ModelDisk:
    """test/bench/model_disk.cc, mounted at `root`."""

    def __init__(self, folder):
        self.root, self.server = os.path.join(folder, "model"), None

    def make(self, costs, names, mib):
        if not os.path.exists(SERVER):
            subprocess.run(["make", "-s", "-C", c.TOP, os.path.relpath(SERVER, c.TOP)], check=True)
        os.mkdir(self.root)
        self.server = subprocess.Popen([SERVER, self.root, str(costs.iops), str(costs.bytes_per_s),
                                        str(mib), *names], stderr=subprocess.DEVNULL)
        if not w.wait_until(lambda: os.path.ismount(self.root) or self.server.poll() is not None):
            raise OSError("the model disk does not appear")
        if self.server.poll() is not None:
            raise OSError("the model disk ended: it needs FUSE")

    def enter(self):
        pass

    def close(self):
        if self.server and self.server.poll() is None:
            self.server.send_signal(signal.SIGTERM)
            self.server.wait()
        if os.path.ismount(self.root):
            subprocess.run(["umount", "--lazy", self.root], check=False)
