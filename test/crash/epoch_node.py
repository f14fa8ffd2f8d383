#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A node of a cluster: epoch_node.py NODE, in a mount and pid namespace of its own, as its init.

Its disk lies at TREE, where the other nodes see theirs. It keeps `sluiced`, and the rank of the job
below `sluice run`; it is told by lines to do something to them, and answers each with one. The rank
(epoch_node.py rank NODE) has pipes of its own. NODE_SYNCS: at any moment somebody syncs.
"""
import ctypes
import errno
import functools
import glob
import os
import random
import signal
import struct
import subprocess
import sys
import threading
import time

import epoch_parts as parts
from program import BIN, mark, sync_directory

TREE = os.environ.get("TREE", "")
RUN = os.environ.get("NODE_RUN", "")
libc = ctypes.CDLL(None, use_errno=True)


def mount_disk(disk):
    bind, lazily = 4096, 2
    if libc.mount(disk.encode(), TREE.encode(), None, ctypes.c_ulong(bind), None) != 0:
        raise OSError(ctypes.get_errno(), "bind")
    for other in os.environ["DISKS"].split(":"):
        libc.umount2(other.encode(), lazily)


def say_that_it_synced():
    """For the control: syncfs is answered with 0, by the kernel, and not done."""
    syncfs = {"x86_64": 306, "aarch64": 267}[os.uname().machine]
    load, jump_equal, give = 0x20, 0x15, 0x06
    allowed, failed_with_0 = 0x7fff0000, 0x00050000
    code = b"".join(struct.pack("HBBI", *row) for row in (
        (load, 0, 0, 0), (jump_equal, 0, 1, syncfs), (give, 0, 0, failed_with_0),
        (give, 0, 0, allowed)))
    kept = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(kept))
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, program, 0, 0) != 0:
        os._exit(126)


def start_daemon():
    words = [os.path.join(BIN, "sluiced"), "--role", "node", "--name", os.environ["NODE_NAME"],
             "--run-dir", RUN, "--plain", "--parent", os.environ["PARENT"], "--metrics", "none"]
    if "NODE_LOG" in os.environ:
        words += ["--journal", os.environ["NODE_LOG"], "--journal-size", "1MiB"]
    with open(RUN + ".said", "ab") as said:
        lies = say_that_it_synced if "NODE_LIES" in os.environ else None
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                                preexec_fn=lies)


def has_policy():
    words = [os.path.join(BIN, "sluice"), "--run-dir", RUN, "policy", "get"]
    return subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          stdin=subprocess.DEVNULL).returncode == 0


def start_rank(node):
    until = time.monotonic() + 60
    while not has_policy():
        if time.monotonic() > until:
            raise RuntimeError("no policy")
        time.sleep(0.02)
    words = [os.path.join(BIN, "sluice"), "--run-dir", RUN, "run", "--no-summary", "--job", "ranks",
             "--", sys.executable, "-B", os.path.abspath(__file__), "rank", node]
    asks, says = int(os.environ["RANK_IN"]), int(os.environ["RANK_OUT"])
    with open(RUN + ".rank", "ab") as said:
        child = subprocess.Popen(words, stdin=asks, stdout=says, stderr=said)
    os.close(asks)
    os.close(says)
    return child


def sync_now_and_then(seed):
    rng = random.Random(seed)
    while True:
        time.sleep(rng.uniform(0.001, 0.03))
        for path in [TREE] + glob.glob(TREE + "/MANIFEST-*"):
            try:
                fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
            except OSError:
                continue
            if path == TREE and rng.random() < 0.5:
                libc.syncfs(fd)
            elif path != TREE:
                libc.sync_file_range(fd, ctypes.c_int64(0), ctypes.c_int64(0), 2)
            os.close(fd)


def keep(node):
    mount_disk(os.environ["NODE_DISK"])
    daemon = start_daemon()
    rank = start_rank(node)
    if "NODE_SYNCS" in os.environ:
        threading.Thread(target=sync_now_and_then, args=(os.environ["NODE_SYNCS"],),
                         daemon=True).start()
    print("ready", flush=True)
    for line in sys.stdin:
        if line == "kill\n":
            daemon.kill()
            daemon.wait()
        elif line == "start\n":
            daemon = start_daemon()
        elif line == "stop\n":
            daemon.send_signal(signal.SIGSTOP)
        elif line == "go on\n":
            os.kill(-1, signal.SIGCONT)
        elif line == "stop all\n":
            os.kill(-1, signal.SIGSTOP)
        print("ok", flush=True)
    rank.kill()


# ---- the rank

def name_one(epoch, way, data):
    """A descriptor of it, or None."""
    path, new = os.path.join(TREE, f"MANIFEST-{epoch}"), os.path.join(TREE, f"new-{epoch}")
    if way == "open":
        fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o644)
    elif way == "stream":
        with open(path, "w") as f:
            fd = os.dup(f.fileno())
    elif way == "add":
        fd = os.open(os.path.join(TREE, parts.ALL), os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
        data = parts.line(epoch)
    elif way == "mkdir":
        os.mkdir(path)
        fd = os.open(path + "/list", os.O_CREAT | os.O_WRONLY, 0o644)
    elif way == "symlink":
        return os.symlink("elsewhere", path)
    else:
        parts.put(new, data, 0, os.O_CREAT)
        (os.rename if way == "rename" else os.link)(new, path)
        return os.open(path, os.O_RDONLY)
    os.write(fd, data)
    return fd


def sync_manifest(epoch, way, fd):
    if fd is not None:
        os.fsync(fd)
    if way == "mkdir":
        sync_directory(os.path.join(TREE, f"MANIFEST-{epoch}"))
    sync_directory(TREE)
    mark(0, epoch)


def make_manifest(epoch, nodes, way, marks):
    try:
        fd = name_one(epoch, way, parts.manifest(epoch, nodes))
    except OSError as error:
        # A directory passes the gate once more, for what is made in it.
        there = way != "mkdir" and os.path.lexists(os.path.join(TREE, f"MANIFEST-{epoch}"))
        return errno.errorcode[error.errno] + (" and it is there" if there else "")
    try:
        if marks:
            sync_manifest(epoch, way, fd)
    except OSError as error:  # behind a gate that was refused the next sync asks again
        if error.errno != errno.EIO:
            raise
    if fd is not None:
        os.close(fd)
    return "opened"


def make_side(epoch):
    try:
        os.close(os.open(os.path.join(TREE, f"MANIFEST-{epoch}{parts.SIDE}"),
                         os.O_CREAT | os.O_WRONLY, 0o644))
        mark(parts.OPENED, epoch)
    except OSError:
        pass  # nobody waits for it


def be_rank(node):
    """Gates have threads of their own: there may be two at a time."""
    def say(text):
        os.write(1, (text + "\n").encode())

    for line in sys.stdin:
        what, *words = line.split()
        epoch = int(words[0])
        if what == "part":
            parts.write_part(TREE, node, epoch, words[1] == "1")
            say(f"written {epoch}")
        elif what == "side":
            threading.Thread(target=make_side, args=(epoch,), daemon=True).start()
        else:
            nodes, way, marks = int(words[1]), words[2], words[3] == "1"
            gate = functools.partial(make_manifest, epoch, nodes, way, marks)
            threading.Thread(target=lambda do=gate: say(do()), daemon=True).start()


if __name__ == "__main__":
    if sys.argv[1] == "rank":
        be_rank(int(sys.argv[2]))
    else:
        keep(sys.argv[1])
