# SPDX-License-Identifier: Apache-2.0
"""Unmodified programs with small I/O: one row each in ALL, with what it needs and what it makes."""
import dataclasses
import functools
import os
import shutil
import subprocess
import sys
import typing

HERE = os.path.dirname(os.path.abspath(__file__))
WRITES, READS, HINTS = ("strict", "close-to-open"), ("reads",), ("hints",)
EVERY = (*WRITES, *READS, *HINTS)
PACKAGES = {"gfortran": "gfortran", "h5py": "python3-h5py", "netCDF4": "python3-netcdf4"}
STRIDE = 40_000


@dataclasses.dataclass
class Program:
    name: str
    modes: tuple           # those of small I/O that concern it
    count: int             # so many pieces; natively about half a second
    command: typing.Callable   # of the count: a list of words, or a line for bash
    before: typing.Callable = lambda count: None  # makes what it reads, in the current directory
    needs: str = ""        # a command, or a module of Python
    cold: str = ""         # a file that is not in the cache at the beginning
    varies: tuple = ()     # files that differ from run to run
    env: dict = dataclasses.field(default_factory=dict)

    def lacks(self):
        return self.needs and not (python_with(self.needs) if self.needs in MODULES else
                                   shutil.which(self.needs))

    def words(self, count):
        line = self.command(count)
        return ["bash", "-c", line] if isinstance(line, str) else line


MODULES = ("h5py", "netCDF4")


@functools.cache
def python_with(module):
    """An interpreter that has it: ours, or that of the distribution."""
    for python in (sys.executable, "/usr/bin/python3"):
        try:
            if subprocess.run([python, "-c", f"import {module}"], check=False,
                              capture_output=True).returncode == 0:
                return python
        except FileNotFoundError:
            pass
    return None


def install(needs):
    return f"scripts/deps --install bench ({PACKAGES[needs]})" if needs in PACKAGES else \
        f"scripts/deps --install test ({needs})"


def work(kind, module=None):
    """small_work.py."""
    script = os.path.join(HERE, "small_work.py")
    return lambda count: [python_with(module) if module else sys.executable, script, kind,
                          str(count)]


def fortran(kind):
    return lambda count: ["../records", kind, str(count)]


def compile_fortran(folder):
    subprocess.run(["gfortran", "-O1", "-o", os.path.join(folder, "records"),
                    os.path.join(HERE, "records.f90")], check=True)


def input_of(bytes_of):
    """Makes `in`, the same in each run."""
    def before(count):
        size = bytes_of(count)
        part = bytes((i * 131 + i // 256 * 17) % 251 for i in range(1 << 16))
        with open("in", "wb") as f:
            for begin in range(0, size, len(part)):
                f.write(part[:size - begin])
            f.flush()
            os.fsync(f.fileno())
    return before


def lines_in(count):
    with open("in", "w", encoding="ascii") as f:
        f.writelines(f"line {i}\n" for i in range(count))


def sources(count):
    for i in range(count):
        with open(f"part{i}.c", "w", encoding="ascii") as f:
            f.write("#include <stdio.h>\n" + "".join(
                f'int f{i}_{k}(int x) {{ return printf("%d\\n", x + {k}) + x * {i}; }}\n'
                for k in range(200)))
    os.mkdir("tmp")


def tree(count):
    for i in range(count):
        os.makedirs(f"tree/{i % 10}", exist_ok=True)
        with open(f"tree/{i % 10}/{i}", "w", encoding="ascii") as f:
            f.write(f"file {i}\n" * (1 + i % 100))


def statements(count):
    with open("in.sql", "w", encoding="ascii") as f:
        f.write("create table t(i integer primary key, x text);\n" + "".join(
            f"insert into t values({i}, 'row {i}');\n" for i in range(count)))


def chunked(count):
    subprocess.run([*work("hdf5", "h5py")(count)], check=True)
    os.rename("out.h5", "in.h5")


UNBUFFERED = {"GFORTRAN_UNBUFFERED_ALL": "y"}
DATE = "2001-02-03T04:05:06Z"
GIT = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "LC_ALL": "C",
       "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_AUTHOR_DATE": DATE,
       "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b", "GIT_COMMITTER_DATE": DATE}
GIT_LINE = ("git init -q -b main . && git config gc.auto 0 && git add tree && "
            "git commit -q -m one && git status --short && "
            "for i in 1 2 3 4 5 6 7 8 9 10; do echo $i >>tree/0/0; git commit -q -a -m $i; "
            "git status --short; done; git rev-parse HEAD")
PERL_LOG = 'open F,">","out"; select F; $|=1; print "step $_ of the work is done\\n" for 1..%d'
PERL_READ = 'open F,"<","in"; while (sysread F,$x,64) { $n+=ord $x } print "$n\\n"'

ALL = [
    Program("nothing", EVERY, 1, lambda n: ["true"]),  # what the beginning of a run costs
    # Fortran
    Program("fortran-formatted", WRITES, 150_000, fortran("formatted"), needs="gfortran"),
    Program("fortran-formatted-unbuffered", WRITES, 150_000, fortran("formatted"),
            needs="gfortran", env=UNBUFFERED),
    Program("fortran-flush", WRITES, 150_000, fortran("flushed"), needs="gfortran"),
    Program("fortran-stream", WRITES, 3_000_000, fortran("stream"), needs="gfortran"),
    Program("fortran-stream-flush", WRITES, 250_000, fortran("stream-flushed"), needs="gfortran"),
    Program("fortran-direct", WRITES, 1_000_000, fortran("direct"), needs="gfortran"),
    Program("fortran-direct-unbuffered", WRITES, 200_000, fortran("direct"), needs="gfortran",
            env=UNBUFFERED),
    Program("fortran-scattered", WRITES, 150_001, fortran("scattered"), needs="gfortran"),
    # Libraries of scientific data
    Program("hdf5-append", WRITES, 2_500, work("hdf5", "h5py"), needs="h5py"),
    Program("hdf5-append-flush", WRITES, 2_500, work("hdf5-flush", "h5py"), needs="h5py"),
    Program("hdf5-read", READS, 2_000, work("read-hdf5", "h5py"), chunked, needs="h5py"),
    Program("netcdf4-record", WRITES, 4_000, work("netcdf4", "netCDF4"), needs="netCDF4"),
    Program("netcdf4-record-sync", WRITES, 1_500, work("netcdf4-sync", "netCDF4"),
            needs="netCDF4"),
    Program("netcdf3-record", WRITES, 3_000, work("netcdf3", "netCDF4"), needs="netCDF4"),
    Program("netcdf3-record-sync", WRITES, 2_500, work("netcdf3-sync", "netCDF4"),
            needs="netCDF4"),
    # Loggers and scripts
    Program("python-unbuffered", WRITES, 250_000, work("unbuffered")),
    Program("python-lines", WRITES, 200_000, work("lines")),
    Program("python-logging", WRITES, 20_000, work("log")),
    Program("python-read-unbuffered", READS, 350_000, work("read-unbuffered"),
            input_of(lambda n: 8 * n)),
    Program("perl-logger", WRITES, 250_000, lambda n: ["perl", "-e", PERL_LOG % n], needs="perl"),
    Program("perl-sysread", READS, 350_000, lambda n: ["perl", "-e", PERL_READ],
            input_of(lambda n: 64 * n), needs="perl"),
    Program("bash-append", WRITES, 12_500, lambda n: f"for ((i=0;i<{n};i++)); do echo $i >>out;"
                                                     " done"),
    Program("bash-loop", WRITES, 50_000, lambda n: f"for ((i=0;i<{n};i++)); do echo $i; done"
                                                    " >out"),
    Program("bash-read", READS, 30_000, lambda n: "while read -r a b; do n=$((n+b)); done <in;"
                                                  " echo $n", lines_in),
    Program("dd-write", WRITES, 350_000, lambda n: f"dd if=/dev/zero of=out bs=8 count={n} "
                                                   "status=none"),
    Program("dd-copy", (*WRITES, *READS), 200_000, lambda n: "dd if=in of=out bs=8 status=none",
            input_of(lambda n: 8 * n)),
    Program("dd-read", READS, 500_000, lambda n: "dd if=in of=/dev/null bs=8 status=none",
            input_of(lambda n: 8 * n)),
    # For advice
    Program("dd-overwrite", HINTS, 60_000,
            lambda n: f"dd if=/dev/zero of=in bs=513 count={n} conv=notrunc status=none",
            input_of(lambda n: 513 * n), cold="in"),
    Program("python-strides", HINTS, 1_500, work("strides"), input_of(lambda n: STRIDE * n),
            cold="in"),
    # No gain is expected, and no harm may come
    Program("sqlite3-insert", EVERY, 4_000, lambda n: "sqlite3 db <in.sql", statements,
            needs="sqlite3"),
    Program("git-commit", EVERY, 300, lambda n: GIT_LINE, tree, needs="git",
            varies=(".git/index",), env=GIT),
    Program("gcc", EVERY, 4, lambda n: "for f in part*.c; do gcc -c $f || exit; done", sources,
            needs="gcc", env={"TMPDIR": "tmp"}),
    Program("tar", EVERY, 3_000, lambda n: "tar -cf out.tar --sort=name --owner=a --group=a "
            "--mtime=@0 tree && mkdir to && tar -xf out.tar -C to", tree, needs="tar"),
]
