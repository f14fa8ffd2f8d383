# SPDX-License-Identifier: Apache-2.0
"""Real programs for order.py: dbench, and sysbench's inserts into a MariaDB server.

Each runs once in an empty directory and gives figures of the same names as order_work: per second,
and microseconds (a mean for p50, which these programs do not say). `below` puts a command below
sluice, or leaves it as it is. None: the program is not there (`scripts/deps --install bench`).
"""
import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import time

from common import Broken, output

DBENCH_LOAD = "/usr/share/dbench/client.txt"
INSERTS = "/usr/share/sysbench/oltp_insert.lua"
PATIENCE_S = 60
# What an fsync costs is to be seen: no direct I/O and no ring, of which the log gets nothing, and
# every transaction is on the disk when it is acknowledged.
SERVER = ("--no-defaults", "--user=root", "--skip-networking", "--skip-grant-tables", "--log-bin",
          "--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1", "--innodb-flush-method=fsync",
          "--innodb-log-file-buffering=ON", "--innodb-use-native-aio=OFF",
          "--innodb-log-file-size=32M", "--innodb-buffer-pool-size=64M")


def number(pattern, text):
    found = re.search(pattern, text)
    if not found:
        raise Broken(f"no {pattern} in: {text[-300:]}")
    return float(found.group(1))


@contextlib.contextmanager
def without_flushes():
    """dbench's load, but for its flushes: a path."""
    with tempfile.NamedTemporaryFile("w") as left, open(DBENCH_LOAD) as lines:
        left.writelines(line for line in lines if not line.startswith("Flush "))
        left.flush()
        yield left.name


def dbench(flags, synced, flushes=True):
    """MB per second; latencies are those of its operation `synced`, which waits for the disk."""
    def run(where, threads, ms, below):
        if not shutil.which("dbench"):
            return None
        with contextlib.nullcontext(DBENCH_LOAD) if flushes else without_flushes() as load:
            text = output(*below(["dbench", "-t", str(max(1, ms // 1000)), "-c", load, "-D", where,
                                 *flags, str(threads)]))
        each = synced + r"\s+\d+\s+"
        return {"per_second": number(r"Throughput ([\d.]+) MB/sec", text),
                "p50_us": number(each + r"([\d.]+)", text) * 1000,
                "longest_us": number(each + r"[\d.]+\s+([\d.]+)", text) * 1000}
    return run


class Server:
    """MariaDB in `where`, below sluice or not."""

    def __init__(self, where, below):
        self.data, self.socket = os.path.join(where, "data"), os.path.join(where, "socket")
        os.mkdir(self.data)
        output("mariadb-install-db", "--no-defaults", "--user=root", "--skip-test-db",
               "--auth-root-authentication-method=normal", "--datadir=" + self.data)
        self.log = tempfile.TemporaryFile("w+")
        self.server = subprocess.Popen(
            below(["mariadbd", *SERVER, "--datadir=" + self.data, "--socket=" + self.socket,
                   "--pid-file=" + os.path.join(self.data, "pid")]),
            stdout=self.log, stderr=subprocess.STDOUT)

    def __enter__(self):
        until = time.monotonic() + PATIENCE_S
        while not os.path.exists(self.socket):
            if self.server.poll() is not None or time.monotonic() > until:
                self.log.seek(0)
                raise Broken("the server does not start: " + self.log.read()[-500:])
            time.sleep(0.05)
        return self

    def __exit__(self, *_):
        if self.server.poll() is None:
            output("mariadb-admin", "--no-defaults", "--socket=" + self.socket, "shutdown")
            self.server.wait(PATIENCE_S)
        self.log.close()


def inserts(where, threads, ms, below):
    """Transactions per second, of one table."""
    if not shutil.which("sysbench") or not shutil.which("mariadbd"):
        return None
    with Server(where, below) as server:
        command = ["sysbench", INSERTS, "--db-driver=mysql", "--mysql-user=root", "--tables=1",
                   "--mysql-socket=" + server.socket, "--table-size=1000", "--percentile=99",
                   f"--threads={threads}", f"--time={max(1, ms // 1000)}"]
        output("mariadb", "--no-defaults", "--socket=" + server.socket, "-e",
               "create database sbtest")
        output(*command, "prepare")
        text = output(*command, "run")
    return {"per_second": number(r"transactions:.*\(([\d.]+) per sec", text),
            "p50_us": number(r"avg:\s+([\d.]+)", text) * 1000,
            "p99_us": number(r"99th percentile:\s+([\d.]+)", text) * 1000,
            "longest_us": number(r"max:\s+([\d.]+)", text) * 1000}


PROGRAMS = {"dbench": dbench([], "Flush"), "dbench-fsync": dbench(["-F"], "WriteX"),
            "dbench-sync": dbench(["-s", "-S"], "WriteX"),
            "dbench-never": dbench([], "WriteX", flushes=False), "inserts": inserts}
