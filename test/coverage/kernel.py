# SPDX-License-Identifier: Apache-2.0
"""What the kernel saw: reads the files of `strace -ff -i -yy` and sorts each call by its origin.

The instruction pointer tells who made a call: the dynamic loader, the preloaded library itself, or
the program and libc. Only the last can be seen by a preloaded library, so only those are compared;
the others are kept apart under their own names, as are calls of constructors that ran before the
stage's own. Nothing is guessed from the order of calls.
Only calls on regular files and directories count: no pipes, sockets, devices, /proc, /sys.
"""
import collections
import glob
import os
import re

SYSCALLS = {
    "open": "open openat openat2 creat",
    "close": "close",
    "stat": "stat lstat fstat newfstatat statx",
    "access": "access faccessat faccessat2",
    "statfs": "statfs fstatfs",
    "rename": "rename renameat renameat2",
    "link": "link linkat",
    "symlink": "symlink symlinkat",
    "readlink": "readlink readlinkat",
    "unlink": "unlink unlinkat",
    "mkdir": "mkdir mkdirat",
    "rmdir": "rmdir",
    "mknod": "mknod mknodat",
    "chmod": "chmod fchmod fchmodat fchmodat2",
    "chown": "chown lchown fchown fchownat",
    "utime": "utime utimes futimesat utimensat",
    "truncate": "truncate ftruncate",
    "fallocate": "fallocate",
    "chdir": "chdir fchdir",
    "exec": "execve execveat",
    "readdir": "getdents getdents64",
    "getxattr": "getxattr lgetxattr fgetxattr",
    "setxattr": "setxattr lsetxattr fsetxattr",
    "listxattr": "listxattr llistxattr flistxattr",
    "removexattr": "removexattr lremovexattr fremovexattr",
    "read": "read pread64 readv preadv preadv2 readahead",
    "write": "write pwrite64 writev pwritev pwritev2",
    "copy": "copy_file_range sendfile splice",
    "map": "mmap",
    "fsync": "fsync fdatasync syncfs sync_file_range msync",
    "lock": "flock",
    "seek": "lseek",
    "aio": "io_submit io_uring_enter",
}
OP_OF = {call: op for op, calls in SYSCALLS.items() for call in calls.split()}
BIRTHS = ("clone", "clone3", "fork", "vfork")
LINE = re.compile(r"^\[([0-9a-f?]+)\] (\w+)\((.*)\)\s+= (0x[0-9a-f]+|-?\d+|\?)(.*)$")
FD = re.compile(r"^(?:\d+|AT_FDCWD)<(.*?)>(?:\(deleted\))?(?=,|$|\))")
ON_FD = re.compile(r"^f(stat|statfs|chmod|chown|chdir|truncate|allocate|sync|datasync)$|"
                   r"^f(get|set|list|remove)xattr$")
ANY_FD = re.compile(r"\b\d+<([^<>]*(?:<[^<>]*>)?)>")
PATH = re.compile(r'"((?:[^"\\]|\\.)*)"')
NOT_FILES = ("/proc", "/sys", "/dev")
LOADER_REACH = 1 << 18


class Image:
    """Address ranges of one address space that matter: loader, libc, preloaded library."""

    def __init__(self, program):
        self.program = program
        self.loader = None
        self.ranges = {}
        self.attached = False

    def map(self, args, result):
        path = re.search(r"\d+<([^<>]*)>", args)
        if not path:
            return
        base = os.path.basename(path.group(1))
        kind = ("stage" if base.startswith("libinterpose.so")
                else "libc" if base.startswith("libc.so") else None)
        if kind:
            low = int(result, 16)
            size = int(args.split(",")[1])
            old = self.ranges.get(kind, (low, low))
            self.ranges[kind] = (min(old[0], low), max(old[1], low + size))

    def origin(self, ip):
        if self.loader is None:
            self.loader = ip
        for kind, (low, high) in self.ranges.items():
            if low <= ip < high:
                self.attached = self.attached or kind == "stage"
                return kind if self.attached else "constructor"
        return "loader" if abs(ip - self.loader) < LOADER_REACH else "program"


def is_file(path):
    """A name on a real file system, as far as a name can say."""
    if not path:
        return False
    if not path.startswith("/"):
        return not re.match(r"(pipe|socket|anon_inode|UNIX|TCP|UDP|NETLINK|mqueue)\b.*:", path)
    if path.startswith("/memfd:") or "<char " in path or "<block " in path:
        return False
    return not any(path == p or path.startswith(p + "/") for p in NOT_FILES)


def target_of(call, args):
    """The path a call speaks about, or None when it is not a file."""
    if call in ("mmap", "copy_file_range", "sendfile", "splice"):
        found = [p for p in ANY_FD.findall(args) if is_file(p)]
        return found[0] if found and "MAP_ANONYMOUS" not in args else None
    if call in ("io_submit", "io_uring_enter"):
        return "(queue)"
    if call.startswith("symlink"):
        args = args.split('",', 1)[-1].strip()
    fd = FD.match(args)
    name = PATH.search(args)
    if fd is None and (name is None or ON_FD.match(call)):
        return None
    if ON_FD.match(call):
        name = None
    named = name is not None and name.start() < 4096 and (
        fd is None or args[fd.end():].startswith((', "', ", \"")))
    if not named:
        path = fd.group(1) if fd else None
    elif fd is None or name.group(1).startswith("/"):
        path = name.group(1)
    elif not name.group(1):
        path = fd.group(1)
    else:
        path = fd.group(1).rstrip("/") + "/" + name.group(1)
    return path if path is not None and is_file(path) else None


class Call:
    __slots__ = ("op", "name", "origin", "path", "bytes", "error", "program", "ip")


class Trace:
    """All processes of one run below `sluice run`, each from its first exec of a program."""

    def __init__(self, prefix):
        self.prefix = prefix
        self.calls = []
        self.programs = collections.Counter()
        self.root = root_of(prefix)
        self.read_process(self.root, None)

    def read_process(self, pid, image):
        """Follows one process; image is None while it is still sluice itself."""
        name = f"{self.prefix}.{pid}"
        if not os.path.exists(name):
            return
        is_root = pid == self.root
        execs = 0
        with open(name, errors="replace") as f:
            for line in f:
                match = LINE.match(line)
                if not match:
                    continue
                ip, call, args, result, rest = match.groups()
                ip = int(ip, 16) if "?" not in ip else 0
                if call in BIRTHS and result.isdigit() and int(result) > 0:
                    self.read_process(int(result), image)
                elif call.startswith("execve") and result == "0":
                    execs += 1
                    program = os.path.basename(PATH.search(args).group(1)) if PATH.search(
                        args) else "?"
                    if image is not None:
                        self.note(image, ip, call, args, result, rest)
                    # The first exec of the root is strace starting sluice.
                    if not (is_root and execs == 1):
                        image = Image(program)
                        self.programs[program] += 1
                elif image is not None:
                    self.note(image, ip, call, args, result, rest)
                    if call == "mmap" and result.startswith("0x"):
                        image.map(args, result)

    def note(self, image, ip, call, args, result, rest):
        origin = image.origin(ip)
        op = OP_OF.get(call)
        if op is None:
            return
        path = target_of(call, args)
        if path is None:
            return
        c = Call()
        c.op, c.name, c.origin, c.path, c.ip = op, call, origin, path, ip
        c.program = image.program
        c.error = rest.split()[0] if result.startswith("-") and rest.split() else ""
        c.bytes = int(result) if op in ("read", "write", "copy") and result.isdigit() else 0
        self.calls.append(c)


def traced_calls():
    return ",".join("?" + name for name in sorted(list(OP_OF) + list(BIRTHS)))


def root_of(prefix):
    """strace -ff names its files PREFIX.PID; the root is the only one that nobody gave birth to."""
    pids, born = set(), set()
    for name in glob.glob(glob.escape(prefix) + ".*"):
        pids.add(int(name.rsplit(".", 1)[1]))
        with open(name, errors="replace") as f:
            for line in f:
                match = LINE.match(line)
                if match and match.group(2) in BIRTHS and match.group(4).isdigit():
                    born.add(int(match.group(4)))
    roots = sorted(pids - born)
    return roots[0] if roots else None
