# SPDX-License-Identifier: Apache-2.0
"""File systems on disks whose flushes take a known time (timed_disks.cc), for order.py.

They are mounted in a namespace of their own, so a script that is killed leaves none. Needs root,
FUSE and loop devices.
"""
import contextlib
import os
import signal
import subprocess
import sys
import time

from common import BUILD, Broken, output

SERVER = os.path.join(BUILD, "bench", "timed_disks")
MIB = 1536
PATIENCE_S = 20
MAKE = {"ext4": ["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard"],
        "xfs": ["mkfs.xfs", "-q", "-f", "-K"]}
# By name: more for mkfs, and the options of the mount.
WAYS = {"plain": ([], ""),
        "async": ([], "data=writeback,journal_async_commit"),
        "fast": (["-O", "fast_commit"], "")}
_INSIDE = "SLUICE_BENCH_MOUNTS"


def enter_own_mounts():
    """Runs this script again, where nobody else sees its mounts."""
    if _INSIDE not in os.environ:
        os.environ[_INSIDE] = "1"
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable,
                              *sys.argv])


@contextlib.contextmanager
def served(scratch, flush_us, names):
    """Gives the directory of the files; says who does the reads and writes."""
    where = os.path.join(scratch, "disks")
    os.makedirs(where, exist_ok=True)
    server = subprocess.Popen([SERVER, where, str(flush_us), str(MIB), *names],
                              stdout=subprocess.PIPE, text=True)
    try:
        until = time.monotonic() + PATIENCE_S
        while not os.path.exists(os.path.join(where, names[0])):
            if server.poll() is not None or time.monotonic() > until:
                raise Broken("the disks do not appear")
            time.sleep(0.01)
        yield where, server
    finally:
        subprocess.run(["umount", "--lazy", where])
        server.send_signal(signal.SIGTERM)
        server.wait()


@contextlib.contextmanager
def mounted(file, fs, way, at):
    more, options = WAYS[way]
    os.makedirs(at, exist_ok=True)
    device = output("losetup", "--find", "--show", file).strip()
    try:
        output(*MAKE[fs], *more, device)
        output("mount", "-t", fs, "-o", "noatime" + ("," + options if options else ""), device, at)
        try:
            yield at
        finally:
            output("umount", at)
    finally:
        output("losetup", "--detach", device)


@contextlib.contextmanager
def disks(scratch, fs, flush_us, ways):
    """Gives the mount point of each way, and whether writes take no time of this machine's."""
    with contextlib.ExitStack() as all_of_them:
        where, server = all_of_them.enter_context(served(scratch, flush_us, ways))
        places = {way: all_of_them.enter_context(
            mounted(os.path.join(where, way), fs, way, os.path.join(scratch, way)))
            for way in ways}
        yield places, server.stdout.readline().strip() == "kernel"
