# SPDX-License-Identifier: Apache-2.0
"""What a job of several nodes writes in an epoch, and whether a disk has it: see epochs.py.

The part of a node: blocks at the end of one file, blocks in place in another (where the same place
is written again four epochs later), and a file of its own that got its name in one of several ways.
"""
import hashlib
import json
import os

BLOCK, SECTOR = 4096, 512
APPENDED, PLACED, PLACES = 5, 3, 4  # blocks a part; so many parts have places
EPOCHS = 16
ALL = "MANIFEST-all"  # one that every epoch may be added to
SIDE = ".others"  # behind its name: of all nodes but the first, made while a gate stands
LINE = 128
OPENED = 1  # a stream of marks: a gate was passed


def blocks(node, epoch, kind, count):
    return b"".join(hashlib.shake_128(f"{node} {epoch} {kind} {i}".encode()).digest(BLOCK)
                    for i in range(count))


def appended(node):
    return f"rank-{node}.dat"


def placed(node):
    return f"rank-{node}.places.dat"


def own(node, epoch):
    """Some lie in a directory that is new as well."""
    return f"step-{epoch}/rank-{node}.dat" if epoch % 3 == 0 else f"rank-{node}.{epoch}.dat"


def own_data(node, epoch):
    return blocks(node, epoch, "own", 1 + (node + epoch) % 6)


def prepare(top, node):
    with open(os.path.join(top, placed(node)), "wb") as f:
        f.write(bytes(PLACES * PLACED * BLOCK))
    with open(os.path.join(top, appended(node)), "wb"):
        pass


def put(path, data, at, flags=0, syncs=False):
    fd = os.open(path, os.O_WRONLY | flags, 0o644)
    try:
        if os.pwrite(fd, data, at) != len(data):
            raise OSError("short")
        if syncs:
            os.fsync(fd)
    finally:
        os.close(fd)


def write_part(top, node, epoch, syncs):
    """Nothing is synced, but now and then what was appended, so that a log has some of it."""
    put(os.path.join(top, placed(node)), blocks(node, epoch, "placed", PLACED),
        epoch % PLACES * PLACED * BLOCK)
    path, data = os.path.join(top, own(node, epoch)), own_data(node, epoch)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if epoch % 4 == 1:
        put(path + ".new", data, 0, os.O_CREAT)
        os.rename(path + ".new", path)
    elif epoch % 4 == 2:
        put(path + ".new", data, 0, os.O_CREAT)
        if not os.path.exists(path):  # killed, it begins again
            os.link(path + ".new", path)
        os.unlink(path + ".new")
    else:
        put(path, data, 0, os.O_CREAT)
    put(os.path.join(top, appended(node)), blocks(node, epoch, "appended", APPENDED),
        epoch * APPENDED * BLOCK, syncs=syncs and (node + epoch) % 2 == 0)


def read(path):
    try:
        with open(path, "rb") as f:
            return f.read()
    except OSError:
        return b""


def missing(top, node, epoch):
    """What of that part is not on this disk; None: all is there."""
    size = APPENDED * BLOCK
    if read(os.path.join(top, appended(node)))[epoch * size:][:size] != \
            blocks(node, epoch, "appended", APPENDED):
        return appended(node)
    if read(os.path.join(top, own(node, epoch))) != own_data(node, epoch):
        return own(node, epoch)
    size = PLACED * BLOCK
    there = read(os.path.join(top, placed(node)))[epoch % PLACES * size:][:size]
    later = [blocks(node, e, "placed", PLACED) for e in range(epoch, EPOCHS, PLACES)]
    for at in range(0, size, SECTOR):
        if not any(there[at:at + SECTOR] == data[at:at + SECTOR] for data in later):
            return f"{placed(node)} at {at}"
    return None


def manifest(epoch, nodes):
    """Names all parts, with their lengths and checksums."""
    parts = {own(n, epoch): [len(own_data(n, epoch)),
                             hashlib.sha256(own_data(n, epoch)).hexdigest()]
             for n in range(nodes)}
    return json.dumps({"epoch": epoch, "parts": parts}).encode()


def line(epoch):
    return f"{epoch} ".encode().ljust(LINE - 1, b".") + b"\n"


def side_manifests(top):
    return sorted(int(name[9:-len(SIDE)]) for name in os.listdir(top)
                  if name.startswith("MANIFEST-") and name.endswith(SIDE))


def manifests(top):
    """Epochs of which there is a manifest, whole or not."""
    found = {int(name[9:]) for name in os.listdir(top)
             if name.startswith("MANIFEST-") and name[9:].isdigit()}
    text = read(os.path.join(top, ALL))
    for at in range(0, len(text), LINE):
        number = text[at:at + LINE].split(b" ")[0]
        if number.isdigit():
            found.add(int(number))
    return sorted(found)


def is_whole(top, epoch, nodes):
    path = os.path.join(top, f"MANIFEST-{epoch}")
    if os.path.islink(path):
        return True
    if os.path.isdir(path):
        path = os.path.join(path, "list")
    return read(path) == manifest(epoch, nodes) or line(epoch) in read(os.path.join(top, ALL))
