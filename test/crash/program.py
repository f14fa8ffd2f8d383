# SPDX-License-Identifier: Apache-2.0
"""What the programs below the recorder share: where things are, `sluice run`, and marks.

A program is prepared, run below `sluice run --order durable` and looked at after power cuts. What
it has acknowledged is marked at once, and through a file of the recorder, so that a mark lies in
the record behind all that the acknowledgement promises.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
DISK = os.environ.get("DISK", "")  # the file system that is cut
DISKS = os.environ.get("DISKS", "").split(":")  # and others that are cut with it
LOG = os.environ.get("LOG", "")  # of sluice: there, or on a disk of its own
BESIDE = os.environ.get("BESIDE", "")  # where no power cut reaches
BIN = os.path.abspath(os.environ.get("BIN", "build/bin"))
LOG_MIB = 1  # it makes laps within a run
LONGEST_S = 240
TOLD, KILLED = 16, 17  # streams of marks that acknowledge nothing: for who reads what a loss left


class Skip(Exception):
    pass


class Lost(Exception):
    """Something acknowledged is not there."""


class Broken(Exception):
    """The program's own check does not pass."""


def need(program):
    if shutil.which(program) is None:
        raise Skip(f"needs {program}")


marks = None


def mark(stream, epoch):
    global marks
    if marks is None:
        known = os.environ.get("MARKS_FD")  # of who may not open it
        marks = int(known) if known else os.open(os.environ["MARKS"], os.O_WRONLY | os.O_CLOEXEC)
    os.write(marks, b"%d %d" % (stream, epoch))


def tell(stream, epoch, error):
    mark(TOLD, stream)
    os.write(1, f"error {stream} {epoch} {error}\n".encode())


def sync_directory(path):
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def fork(work):
    """Its pid. Status 0 when `work` raised nothing."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            work()
            status = 0
        except BaseException:  # said here: nobody above is to go on with it
            sys.excepthook(*sys.exc_info())
        os._exit(status)
    return pid


def fork_each(works):
    """False when one of them ended badly: not by a mapping of which the disk refused a page."""
    ends = [os.waitpid(pid, 0)[1] for pid in [fork(work) for work in works]]
    return all(end == 0 or os.WIFSIGNALED(end) and os.WTERMSIG(end) == signal.SIGBUS
               for end in ends)


class Program:
    order = "durable"
    user = None  # whose processes they are; None: ours

    def __init__(self, options=()):
        self.options = set(options)
        self.dir = os.path.join(DISK, "data")

    def homes(self):
        """File systems of one log."""
        return DISKS[:2] if "apart" in self.options else [DISK]

    def dir_of(self, stream):
        homes = self.homes()
        return os.path.join(homes[stream % len(homes)], "data")

    def prepare(self):
        """Before the recording begins."""
        for home in self.homes():
            os.mkdir(os.path.join(home, "data"))

    def inside(self, seed):
        """Below sluice."""
        raise NotImplementedError

    def run(self, seed):
        """Recorded. Returns how many errors it was told."""
        words = [sys.executable, "-B", os.path.join(HERE, "programs.py"),
                 "+".join([self.name] + sorted(self.options)), "inside", str(seed)]
        child = self.start(words, stdout=subprocess.PIPE)
        beside = threading.Thread(target=self.disturb, args=(child, seed), daemon=True)
        beside.start()
        try:
            out = child.communicate(timeout=LONGEST_S)[0]
        except subprocess.TimeoutExpired:
            child.kill()
            raise RuntimeError("the program hangs")
        beside.join()
        if child.returncode == 125 and "does not start" in self.said():
            return 1  # a fault came so early that this is all that was told
        if child.returncode != 0:
            raise RuntimeError(f"status {child.returncode}: {self.said()}")
        return out.count(b"error ")

    def disturb(self, child, seed):
        """Beside it, from outside."""

    def check(self, acknowledged):
        """After a power cut and recovery. Raises Lost or Broken."""
        raise NotImplementedError

    def said(self):
        with open(os.path.join(BESIDE, "said"), errors="replace") as f:
            return " / ".join(f.read()[-3000:].splitlines())

    def make_log(self, log=LOG):
        """An empty one of LOG_MIB, before anything is recorded."""
        os.makedirs(os.path.dirname(log), exist_ok=True)
        ready, said = os.pipe()
        daemon = subprocess.Popen(
            [os.path.join(BIN, "sluice-order"), "serve", "--jobs", BESIDE, "--journal", log,
             "--journal-mib", str(LOG_MIB), "--ready-fd", str(said)],
            pass_fds=[said], **self.as_user())
        os.close(said)
        if os.read(ready, 1) != b"1":
            raise RuntimeError("sluice-order does not make a log")
        os.close(ready)
        daemon.terminate()
        daemon.wait()

    def as_user(self):
        return {"user": self.user, "group": self.user, "extra_groups": []} if self.user else {}

    def start(self, words, **more):
        """The program, below sluice, or bare with the option `native`."""
        if "native" not in self.options:
            orders = [w for home in self.homes() for w in ("--order", f"{self.order}@{home}")]
            words = [os.path.join(BIN, "sluice"), "--run-dir", os.path.join(BESIDE, "run"), "run",
                     *orders, "--order-journal", LOG, "--no-summary", "--report",
                     os.path.join(BESIDE, "run", "report.json"), "--"] + words
        with open(os.path.join(BESIDE, "said"), "wb") as said:
            return subprocess.Popen(words, **{"stdin": subprocess.DEVNULL, "stderr": said,
                                              **more, **self.as_user()})

    def make_places(self):
        os.makedirs(os.path.join(BESIDE, "run"), exist_ok=True)
        if not self.user:
            return
        # The user has to come to what is below a scratch folder of ours.
        for place in (BESIDE, os.path.dirname(BESIDE)):
            os.chmod(place, os.stat(place).st_mode | 0o11)
        for place in (os.path.dirname(LOG), DISK, os.path.join(BESIDE, "run")):
            shutil.chown(place, self.user, self.user)

    def answered(self):
        """How many fsyncs the daemon of the log answered, or took as barriers, in the last run."""
        with open(os.path.join(BESIDE, "run", "report.json")) as f:
            order = json.load(f)["order"]
        return order["answered"] + order["barriers"]


def log_daemon(parent, patience_s=2):
    """The pid of the sluice-order that this sluice started; None: there is none."""
    until = time.monotonic() + patience_s
    while time.monotonic() < until:
        try:
            with open(f"/proc/{parent}/task/{parent}/children") as f:
                for pid in f.read().split():
                    with open(f"/proc/{pid}/comm") as name:
                        if name.read().strip() == "sluice-order":
                            return int(pid)
        except OSError:
            pass
        time.sleep(0.02)
    return None


def end(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
