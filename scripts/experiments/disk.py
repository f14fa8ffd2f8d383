# SPDX-License-Identifier: Apache-2.0
"""A disk of known speed: a file in memory behind a loop device, held to so many requests and
bytes a second by the kernel's own throttle for the control group of those who use it. Reads and
writes are held separately. Needs root, a loop device and the blkio (or io) controller.
"""
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import common as c  # noqa: E402,F401  (finds world)
import world as w  # noqa: E402

UNIFIED = "/sys/fs/cgroup"
BLKIO = os.path.join(UNIFIED, "blkio")
SKIPPED = 77


class Disk:
    """A loop device of known speed, with ext4 on it, mounted at `root`."""

    def __init__(self, folder):
        self.folder, self.root = folder, os.path.join(folder, "disk")
        self.group, self.device = None, None

    def make(self, size, iops, bytes_per_s, fill):
        """`fill` puts files on it while it is still as fast as memory."""
        self.mount(size)
        fill(self.root)
        self.throttle(iops, bytes_per_s)

    def mount(self, size):
        """As fast as memory."""
        image = os.path.join(self.folder, "image")
        with open(image, "wb") as f:
            f.truncate(size)
        self.device = run("losetup", "--find", "--show", image).strip()
        run("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", self.device)
        os.mkdir(self.root)
        run("mount", self.device, self.root)

    def throttle(self, iops, bytes_per_s):
        number = os.stat(self.device).st_rdev
        device = f"{os.major(number)}:{os.minor(number)}"
        name = f"sluice-disk-{os.getpid()}"
        if os.path.isdir(BLKIO):
            self.group = os.path.join(BLKIO, name)
            os.mkdir(self.group)
            for way in ("read", "write"):
                self.write(f"blkio.throttle.{way}_iops_device", f"{device} {iops}")
                self.write(f"blkio.throttle.{way}_bps_device", f"{device} {bytes_per_s}")
        else:
            with open(os.path.join(UNIFIED, "cgroup.subtree_control"), "w") as f:
                f.write("+io")
            self.group = os.path.join(UNIFIED, name)
            os.mkdir(self.group)
            self.write("io.max", f"{device} riops={iops} wiops={iops} rbps={bytes_per_s} "
                                 f"wbps={bytes_per_s}")

    def write(self, name, text):
        with open(os.path.join(self.group, name), "w") as f:
            f.write(text)

    def enter(self):
        """Called in the child: its requests are held back."""
        with open(os.path.join(self.group, "cgroup.procs"), "w") as f:
            f.write("0")

    def close(self):
        if os.path.ismount(self.root):
            run("umount", self.root)
        if self.device:
            run("losetup", "-d", self.device)
        if self.group:
            w.wait_until(lambda: not self.members(), 10)
            os.rmdir(self.group)

    def written_bytes(self):
        """By (its group, all): what the kernel writes back by itself is in no group, nor held. The
        first counts what is queued, too.
        """
        with open(f"/sys/block/{os.path.basename(self.device)}/stat") as f:
            total = int(f.read().split()[6]) * 512
        number = os.stat(self.device).st_rdev
        wanted, ours = f"{os.major(number)}:{os.minor(number)}", 0
        unified = not os.path.isdir(BLKIO)
        name = "io.stat" if unified else "blkio.throttle.io_service_bytes"
        with open(os.path.join(self.group, name)) as f:
            for words in (line.split() for line in f):
                if words[0] == wanted and unified:
                    ours = int(dict(x.split("=") for x in words[1:])["wbytes"])
                elif words[0] == wanted and words[1] == "Write":
                    ours = int(words[2])
        return ours, total

    def members(self):
        with open(os.path.join(self.group, "cgroup.procs")) as f:
            return f.read().strip()


def on_own_mounts(name):
    """Starts the script again where nobody else sees what it mounts; 77 where no disk can be."""
    if os.geteuid() != 0 or not (os.path.isdir(BLKIO) or
                                 os.path.exists(os.path.join(UNIFIED, "cgroup.controllers"))):
        print(f"{name}: needs root and the blkio (or io) controller of the kernel")
        sys.exit(SKIPPED)
    own_mounts()


def own_mounts():
    """As root: starts the script again where nobody else sees what it mounts."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was made goes
    if "HAS_OWN_MOUNTS" not in os.environ:
        os.environ["HAS_OWN_MOUNTS"] = "1"
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable,
                              os.path.abspath(sys.argv[0]), *sys.argv[1:]])


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout
