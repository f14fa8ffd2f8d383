# SPDX-License-Identifier: Apache-2.0
# A file system with one file. MNT ARMED [OP…]: writes, or requests of these kinds, have no answer
# once that file is there.
import ctypes, os, struct, sys
dev = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={dev},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
if ctypes.CDLL(None, use_errno=True).mount(b"fuse", sys.argv[1].encode(), b"fuse", 6, options):
    sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")
def attr(node):
    mode, size = (0o40777, 0) if node == 1 else (0o100666, 65536)
    return struct.pack("<6Q10I", node, size, 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)
hung = [int(op) for op in sys.argv[3:]] or [16]
while True:
    try:
        request = os.read(dev, 1 << 18)
    except InterruptedError:
        continue
    except OSError:
        break
    _, op, unique, node = struct.unpack_from("<IIQQ", request)
    error, body = 0, b""
    if op in hung and os.path.exists(sys.argv[2]):
        continue
    if op == 26:  # INIT, with BIG_WRITES and WRITEBACK_CACHE
        body = struct.pack("<4I2H2I2H8I", 7, 31, 65536, 1 << 5 | 1 << 16, 12, 9, 65536, 1, 0, 0,
                           *[0] * 8)
    elif op == 1 and request[40:].rstrip(b"\0") != b"f":  # LOOKUP
        error = -2
    elif op == 1:
        body = struct.pack("<4Q2I", 2, 0, 1000, 1000, 0, 0) + attr(2)
    elif op in (3, 4):  # GETATTR, SETATTR
        body = struct.pack("<Q2I", 1000, 0, 0) + attr(node)
    elif op in (14, 27):  # OPEN, OPENDIR
        body = struct.pack("<Q2I", 1, 0, 0)
    elif op == 15:  # READ
        body = bytes(4096)
    elif op == 16:  # WRITE
        body = struct.pack("<2I", struct.unpack_from("<I", request, 56)[0], 0)
    elif op == 17:  # STATFS
        body = bytes(80)
    elif op in (2, 42):  # FORGET
        continue
    elif op not in (18, 20, 25, 29):  # RELEASE, FSYNC, FLUSH, RELEASEDIR
        error = -38
    try:
        os.write(dev, struct.pack("<IiQ", 16 + len(body), error, unique) + body)
    except OSError:
        pass
