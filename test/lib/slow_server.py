#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A metadata server that takes its time: slow_server.py DIR MILLISECONDS.

A file system without content, served by one thread that sleeps for so long at each look-up. So
calls wait in one line, and take the longer, the more of them there are. Names that begin with f
are files. Mounts itself; ends when it is unmounted. Needs root.
"""
import ctypes
import errno
import os
import stat
import struct
import sys
import time

LOOKUP, FORGET, GETATTR, INIT, INTERRUPT, DESTROY, BATCH_FORGET = 1, 2, 3, 26, 36, 38, 42
UNANSWERED = (FORGET, INTERRUPT, BATCH_FORGET)
KEPT_S = 3600  # attributes; names are asked for each time


def mount(directory, fd):
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"fd={fd},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
    if libc.mount(b"slow", directory.encode(), b"fuse", 0, options) != 0:
        sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")


def attributes(node):
    mode = stat.S_IFDIR | 0o755 if node == 1 else stat.S_IFREG | 0o644
    return struct.pack("<6Q10I", node, 0, 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def answer(opcode, node, body, rest_s):
    """The error and the bytes of an answer."""
    if opcode == INIT:
        return 0, struct.pack("<4I2H2I2H8I", 7, 31, 0, 0, 64, 48, 4096, 1, 1, 0, *[0] * 8)
    if opcode == GETATTR:
        return 0, struct.pack("<Q2I", KEPT_S, 0, 0) + attributes(node)
    if opcode == LOOKUP:
        time.sleep(rest_s)
        if not body.startswith(b"f"):
            return errno.ENOENT, b""
        return 0, struct.pack("<4Q2I", 2, 0, 0, KEPT_S, 0, 0) + attributes(2)
    return errno.ENOSYS, b""


def serve(fd, rest_s):
    while True:
        try:
            request = os.read(fd, 1 << 17)
        except OSError as e:
            if e.errno in (errno.EINTR, errno.ENOENT, errno.EAGAIN):
                continue
            return  # ENODEV: unmounted
        length, opcode, unique, node = struct.unpack_from("<2I2Q", request)
        if opcode in UNANSWERED:
            continue
        error, body = answer(opcode, node, request[40:length], rest_s)
        try:
            os.write(fd, struct.pack("<IiQ", 16 + len(body), -error, unique) + body)
        except OSError:
            pass  # who asked is gone
        if opcode == DESTROY:
            return


def main():
    directory, rest_ms = sys.argv[1:]
    fd = os.open("/dev/fuse", os.O_RDWR)
    mount(directory, fd)
    serve(fd, float(rest_ms) / 1000)


if __name__ == "__main__":
    main()
