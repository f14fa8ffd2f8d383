# SPDX-License-Identifier: Apache-2.0
"""A program that writes files in every way the log knows, one process a way.

An epoch is one write made durable, and is marked when fsync has returned 0. Blocks say whose they
are. After an error a process tells it and ends; killed, it goes on behind its last mark.
"""
import ctypes
import errno
import hashlib
import mmap
import os
import random
import signal
import struct
import sys
import threading
import time

from program import BESIDE, DISK, KILLED, Lost, Program, end, fork, fork_each, log_daemon, mark, \
    sync_directory, tell

BLOCK, SECTOR = 4096, 512
EPOCHS = 30
PWRITE = (18, 68)  # x86-64, arm64; none of them is another call that we make there
KEPT = 4  # files, of those who make and remove
CUT_EVERY = 8
DIRECTORY_EVERY = 7  # seldom enough that new files go to the log
APPENDS = 1  # the stream
FREE = 24 << 20  # of a disk that is to be full
TICK_S = 0.01  # files do not have finer times
FAR = 4 << 20  # in other folios, whatever their size
FOREIGN, ENDED = 8, 1024  # a stream that no process of ours writes; in shared memory, a byte each
BEGAN = os.path.join(BESIDE, "began")
CAREFUL = "careful" in sys.argv[1].split("+")
COUNTER = os.path.join(BESIDE, "foreign")


def content(stream, epoch):
    return hashlib.shake_128(f"{stream} {epoch}".encode()).digest(BLOCK)


def put(path, data, at, flags=0, sync=os.fsync):
    fd = os.open(path, os.O_RDWR | flags, 0o644)
    try:
        if os.pwrite(fd, data, at) != len(data):
            raise OSError(errno.ENOSPC, "short")
        sync(fd)
        fail_if_given_up(path)
    finally:
        os.close(fd)


def fail_if_given_up(path):
    """Who is careful knows that ext4 acknowledges a sync when it has just given up its journal, and
    that whoever changes it next is told."""
    if CAREFUL:
        os.close(os.open(os.path.dirname(path), os.O_TMPFILE | os.O_WRONLY))


def sync_disk():
    """Of this one only: another trial that runs now must not have its pages written."""
    fd = os.open(DISK, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(fd) != 0:
            raise OSError(ctypes.get_errno(), "syncfs")
    finally:
        os.close(fd)


def sync_range(fd, how=7):
    """Waits, writes and waits."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.sync_file_range(fd, ctypes.c_int64(0), ctypes.c_int64(0), how) != 0:
        raise OSError(ctypes.get_errno(), "sync_file_range")


def start_range(fd):
    """Other load makes the kernel write back what it likes."""
    sync_range(fd, how=2)


def put_durably(path, data, at, flag):
    """By a flag of the call."""
    fd = os.open(path, os.O_RDWR)
    try:
        if os.pwritev(fd, [data], at, flag) != len(data):
            raise OSError(errno.ENOSPC, "short")
        fail_if_given_up(path)
    finally:
        os.close(fd)


def write_and_die(work):
    """A process of its own does `work` and is killed when the kernel has made its first pwrite."""
    trace_me, go_on, set_up, look = 0, 24, 0x4200, 0x420e  # PTRACE_TRACEME, _SYSCALL, _SETOPTIONS,
    tells_calls = 1  # _GET_SYSCALL_INFO, _O_TRACESYSGOOD
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]

    def traced():
        libc.ptrace(trace_me, 0, None, None)
        os.kill(os.getpid(), signal.SIGSTOP)
        work()

    pid, is_inside = fork(traced), False
    seen = ctypes.create_string_buffer(128)
    status = os.waitpid(pid, 0)[1]
    libc.ptrace(set_up, pid, None, tells_calls)
    while os.WIFSTOPPED(status):
        if libc.ptrace(look, pid, len(seen), ctypes.addressof(seen)) > 0:
            entry, leave = seen.raw[0] == 1, seen.raw[0] == 2
            if leave and is_inside:
                os.kill(pid, signal.SIGKILL)
            is_inside = entry and struct.unpack_from("Q", seen.raw, 24)[0] in PWRITE
        libc.ptrace(go_on, pid, None, None)
        status = os.waitpid(pid, 0)[1]
    if not os.WIFSIGNALED(status):
        raise RuntimeError("nobody was killed")


def write_mapped(path, data):
    with open(path, "r+b") as f, mmap.mmap(f.fileno(), BLOCK) as page:
        page[:] = data
        page.flush()


def write_direct(path, data):
    fd = os.open(path, os.O_RDWR | os.O_DIRECT)
    try:
        with mmap.mmap(-1, BLOCK) as page:
            page[:] = data
            os.pwritev(fd, [page], 0)
        os.fsync(fd)
    finally:
        os.close(fd)


def write_synced(path, data):
    put(path, data, 0, os.O_DSYNC, sync=lambda fd: None)


def write_copy(path, data):
    put(path + ".from", data, 0, os.O_CREAT, sync=lambda fd: None)
    with open(path + ".from", "rb") as source, open(path, "r+b") as f:
        os.copy_file_range(source.fileno(), f.fileno(), BLOCK)
        os.fsync(f.fileno())


def moved(path):
    return os.path.join(os.path.dirname(path) + ".moved", os.path.basename(path))


def read(path):
    try:
        with open(path, "rb") as f:
            return f.read()
    except FileNotFoundError:
        return None


def want(holds, stream, epoch, acked, found=b""):
    if not holds:
        raise Lost(f"stream {stream}, epoch {epoch} of {acked}{described(found, stream, acked)}")


def described(found, stream, acked):
    """What is there instead, for who looks for the cause."""
    if found is None:
        return ", no file"
    known = [e for e in range(-acked - 1, acked + 1) if found == content(stream, e)]
    return f", epoch {known[0]} is there" if known else f", {len(found)} bytes" if found else ""


class Files(Program):
    name = "files"

    def __init__(self, options=()):
        super().__init__(options)
        self.epochs = 4 * EPOCHS if "log-killed" in self.options else EPOCHS
        self.kept = 1 if "reuse" in self.options else KEPT
        self.ways = [self.overwrite, self.append, self.make, self.replace, self.rewrite, self.cut,
                     self.go_apart]
        self.checks = [self.all_there, self.all_there, self.window, self.replaced, self.rewritten,
                       self.since_cut, self.apart]
        if "reuse" in self.options:
            self.ways, self.checks = self.ways[2:4] * 3, self.checks[2:4] * 3
        if "half" in self.options:
            self.ways, self.checks = [self.half_said] * 3, [self.both_there] * 3
        if "again" in self.options:
            self.ways, self.checks = [self.make_again] * 2, [self.made_again] * 2
        if "gone" in self.options:
            self.ways, self.checks = [self.remove], [self.gone]
        if "through" in self.options:
            self.ways, self.checks = [self.flush_range] * 4, [self.rewritten] * 4

    def place(self, stream):
        return os.path.join(self.dir_of(stream), str(stream))

    def path(self, stream, epoch=None):
        return os.path.join(self.place(stream), "all" if epoch is None else str(epoch))

    def prepare(self):
        super().prepare()
        for stream in range(len(self.ways)):
            os.mkdir(self.place(stream))
            with open(self.path(stream), "wb") as f:
                if self.checks[stream] == self.all_there:
                    f.write(bytes(self.epochs * BLOCK))
            if self.checks[stream] == self.gone:
                os.mkdir(self.place(stream) + ".moved")
                for epoch in range(0, self.epochs, 2):
                    open(self.path(stream, epoch), "wb").close()
        if "full" in self.options:
            self.leave_little()
        with open(COUNTER, "wb") as f:
            f.write(struct.pack("Q", 0))
        if os.path.exists(BEGAN):
            os.unlink(BEGAN)

    # One epoch each; doing it again after it was cut short is as good as once.

    def overwrite(self, stream, epoch):
        path, data, at = self.path(stream), content(stream, epoch), epoch * BLOCK
        if epoch % 3 == 2:
            return put_durably(path, data, at, os.RWF_DSYNC)
        put(path, data, at, sync=os.fdatasync if epoch % 3 else os.fsync)

    def append(self, stream, epoch):
        """Behind blocks that belong to others."""
        seen = self.foreign_blocks()
        path, data, at = self.path(stream), content(stream, epoch), (self.epochs + epoch) * BLOCK
        if epoch % 3 == 2:
            put_durably(path, data, at, os.RWF_SYNC)
        else:
            put(path, data, at)
        if seen:
            mark(FOREIGN, seen - 1)

    def make(self, stream, epoch):
        old, new = self.path(stream, epoch - self.kept), self.path(stream, epoch)
        if os.path.exists(new):
            os.unlink(new)
        put(new, content(stream, epoch), 0, os.O_CREAT | os.O_EXCL)
        if "held" in self.options:
            self.held = getattr(self, "held", []) + [os.open(new, os.O_RDONLY)]
        if os.path.exists(old):
            os.unlink(old)
        if self.kept > 1 and epoch % DIRECTORY_EVERY == DIRECTORY_EVERY - 1:
            sync_directory(self.place(stream))

    def replace(self, stream, epoch):
        new = self.path(stream) + ".new"
        put(new, content(stream, epoch), 0, os.O_CREAT | os.O_TRUNC)
        os.rename(new, self.path(stream))
        sync_directory(self.place(stream))

    def rewrite(self, stream, epoch):
        if epoch % 3 == 2:
            os.chmod(self.path(stream), 0o644 if epoch % 2 else 0o640)
        put(self.path(stream), content(stream, epoch), 0)

    def flush_range(self, stream, epoch):
        """Of a block that the log may have: enough on a disk without a cache."""
        if epoch == 0:
            put(self.path(stream), bytes(BLOCK), 0)
        put(self.path(stream), content(stream, epoch), 0,
            sync=sync_range if epoch % 2 else os.fdatasync)

    def half_said(self, stream, epoch):
        """A process is killed when its block is in the file and before it has said so; another one
        syncs the file."""
        path, data = self.path(stream), content(stream, 2 * epoch)
        write_and_die(lambda: put(path, data, self.half_at(stream, 2 * epoch)))
        put(path, content(stream, 2 * epoch + 1), self.half_at(stream, 2 * epoch + 1))

    def half_at(self, stream, block):
        """Behind each other, or too far apart for the kernel to keep them in one piece."""
        return block * BLOCK + (block % 2) * stream * FAR

    def make_again(self, stream, epoch):
        """A name that another file had, which no log knows: its removal, or that it was moved away,
        is not durable when the new file is."""
        path, moved = self.path(stream, epoch), self.path(stream, epoch) + ".moved"
        for left in (path, moved):
            if os.path.exists(left):
                os.unlink(left)
        put(path, content(stream, ~epoch), 0, os.O_CREAT | os.O_EXCL, sync=lambda fd: None)
        sync_disk()
        if epoch % 2:
            os.unlink(path)
        else:
            os.rename(path, moved)
        if epoch % 3:
            time.sleep(TICK_S)
        put(path, content(stream, epoch), 0, os.O_CREAT | os.O_EXCL)
        for _ in range(4):  # while it is so
            put(path, content(stream, epoch), 0)

    def remove(self, stream, epoch):
        """What was there, so no log has its name; what is new; what was moved."""
        path = self.path(stream, epoch)
        if os.path.exists(path) or epoch % 2:
            put(path, content(stream, epoch), 0, os.O_CREAT)
            put(path, content(stream, ~epoch), BLOCK)
            if epoch % 4 == 3:
                os.rename(path, moved(path))
                path = moved(path)
                sync_directory(os.path.dirname(path))
            os.unlink(path)
        time.sleep(12 * TICK_S)

    def cut(self, stream, epoch):
        first = epoch - epoch % CUT_EVERY
        if epoch == first:
            os.truncate(self.path(stream), 0)
        put(self.path(stream), content(stream, epoch), (epoch - first) * BLOCK)

    def go_apart(self, stream, epoch):
        """A new file, in the log; then written where the log does not see it."""
        path, data = self.path(stream, epoch // 2), content(stream, epoch)
        if epoch % 2 == 0:
            return put(path, data, 0, os.O_CREAT)
        (write_mapped, write_direct, write_synced, write_copy)[epoch // 2 % 4](path, data)
        fail_if_given_up(path)

    # What has to be there when `acked` epochs were acknowledged; the next may be under way.

    def all_there(self, stream, acked):
        data = read(self.path(stream)) or b""
        first = self.epochs if stream == APPENDS else 0
        for e in range(acked):
            at = (first + e) * BLOCK
            want(data[at:at + BLOCK] == content(stream, e), stream, e, acked)

    def both_there(self, stream, acked):
        data = read(self.path(stream)) or b""
        for e in range(2 * acked):
            at = self.half_at(stream, e)
            want(data[at:at + BLOCK] == content(stream, e), stream, e // 2, acked)

    def made_again(self, stream, acked):
        for e in range(acked):
            want(read(self.path(stream, e)) == content(stream, e), stream, e, acked)

    def window(self, stream, acked):
        there = {e: read(self.path(stream, e)) for e in range(acked + 1)}
        good = {e for e in there if there[e] == content(stream, e)}
        for e in range(max(0, acked - self.kept + 1), acked):
            want(e in good, stream, e, acked)
        if self.kept == 1:
            want(not acked or good & {acked - 1, acked}, stream, acked - 1, acked)
        # Whose removal was not made durable may be back, as it was.
        synced = acked - acked % DIRECTORY_EVERY if self.kept > 1 else 0
        for e in range(max(0, acked - self.kept)):
            want(there[e] is None or e + self.kept >= synced and e in good, stream, e, acked)

    def replaced(self, stream, acked):
        data = read(self.path(stream))
        want(data in [content(stream, e) for e in (acked - 1, acked)] or not acked and data == b"",
             stream, acked - 1, acked, data)

    def rewritten(self, stream, acked, path=None):
        data = read(path or self.path(stream)) or b""
        either = [content(stream, e) for e in (acked - 1, acked)]
        for at in range(0, BLOCK, SECTOR):
            want(not acked or data[at:at + SECTOR] in [c[at:at + SECTOR] for c in either], stream,
                 acked - 1, acked)

    def apart(self, stream, acked):
        for e in range(1, acked - 1, 2):
            there = read(self.path(stream, e // 2))
            want(there == content(stream, e), stream, e, acked, there)
        self.rewritten(stream, acked, self.path(stream, (acked - 1) // 2))

    def gone(self, stream, acked):
        for e in range(acked):
            whole = content(stream, e) + content(stream, ~e)
            for found in map(read, (self.path(stream, e), moved(self.path(stream, e)))):
                want(found in (None, whole), stream, e, acked, found)

    def since_cut(self, stream, acked):
        data = read(self.path(stream)) or b""
        first = acked - acked % CUT_EVERY
        for e in range(first, acked):
            at = (e - first) * BLOCK
            want(data[at:at + BLOCK] == content(stream, e), stream, e, acked)

    def check(self, acknowledged):
        for stream, looks in enumerate(self.checks):
            looks(stream, acknowledged[stream])
        data = read(self.path(APPENDS)) or b""
        for k in range(acknowledged[FOREIGN]):
            want(data[k * BLOCK:(k + 1) * BLOCK] == content(FOREIGN, k), FOREIGN, k,
                 acknowledged[FOREIGN])

    # How it is run.

    def inside(self, seed):
        self.done = mmap.mmap(-1, mmap.PAGESIZE)  # epochs of each stream, for who comes after
        open(BEGAN, "w").close()
        works = [lambda s=s: self.stream(s, seed + s) for s in range(len(self.ways))]
        if "killed" in self.options:
            works = [lambda w=w: self.killed_and_again(w, seed) for w in works]
        if "full" in self.options:
            works.append(self.fill)
        return fork_each(works)

    def epochs_of(self, stream):
        return struct.unpack_from("Q", self.done, stream * 8)[0]

    def stream(self, stream, seed):
        try:
            self.write_all(stream, random.Random(seed))
        finally:
            self.done[ENDED + stream] = 1

    def write_all(self, stream, dice):
        tries = 0
        # Killed between the two lines that say it is done: what was marked is not done again.
        if self.epochs_of(stream) != 0:
            mark(stream, self.epochs_of(stream) - 1)
        while self.epochs_of(stream) < self.epochs:
            epoch = self.epochs_of(stream)
            try:
                self.ways[stream](stream, epoch)
            except OSError as error:
                tell(stream, epoch, error.errno)
                if "full" in self.options and error.errno == errno.ENOSPC and tries < 400:
                    tries += 1
                    time.sleep(0.005)
                    continue
                if "ignores" not in self.options:
                    return
            struct.pack_into("Q", self.done, stream * 8, epoch + 1)
            mark(stream, epoch)
            if "log-killed" in self.options or "reuse" in self.options:  # time to let go of files
                time.sleep(0.02 + dice.random() * 0.02)
            else:
                time.sleep(dice.random() * 0.004)

    def killed_and_again(self, work, seed):
        dice = random.Random(seed)
        for _ in range(200):
            pid = fork(work)
            killer = threading.Timer(0.005 + dice.random() * 0.05, end, [pid])
            killer.start()
            status = os.waitpid(pid, 0)[1]
            killer.cancel()
            if not os.WIFSIGNALED(status):
                if status != 0:
                    raise RuntimeError(f"status {status}")
                return
        work()

    def leave_little(self):
        """Of a disk that is larger than what is written here."""
        there = os.statvfs(self.dir)
        taken = there.f_bavail * there.f_bsize - FREE
        if taken > 0:
            with open(os.path.join(DISK, "taken"), "wb") as f:
                os.posix_fallocate(f.fileno(), 0, taken)

    def fill(self):
        """Until the others are done the disk is full, and not full, and full."""
        names, number = [], 0
        while not all(self.done[ENDED:ENDED + len(self.ways)]):
            name = os.path.join(self.dir, f"hog{number}")
            number += 1
            try:
                put(name, bytes(256 << 10), 0, os.O_CREAT)
                names.append(name)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    return
                if os.path.exists(name):
                    names.append(name)
                for old in names[:len(names) // 2 + 1]:
                    os.unlink(old)
                names = names[len(names) // 2 + 1:]
                time.sleep(0.02)

    def foreign_blocks(self):
        if "foreign" not in self.options:
            return 0
        with open(COUNTER, "rb") as f:
            return struct.unpack("Q", f.read(8))[0]

    def disturb(self, child, seed):
        dice = random.Random(seed)
        while not os.path.exists(BEGAN) and child.poll() is None:
            time.sleep(0.005)
        if "log-killed" in self.options:
            for _ in range(3):
                time.sleep(0.2 + dice.random() * 0.6)
                pid = log_daemon(child.pid)
                if pid is not None:
                    mark(KILLED, pid)
                    os.kill(pid, signal.SIGKILL)
        if "foreign" in self.options:
            self.write_from_outside(child, dice)

    def write_from_outside(self, child, dice):
        """Other pages of a file that the program appends to, with nothing said about them."""
        for k in range(self.epochs):
            if child.poll() is not None:
                return
            put(self.path(APPENDS), content(FOREIGN, k), k * BLOCK, sync=lambda fd: None)
            with open(COUNTER, "r+b") as f:
                f.write(struct.pack("Q", k + 1))
            time.sleep(dice.random() * 0.006)
