#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 300
"""Roles of an unmodified mariadbd against InnoDB's own counters, over inserts, updates, a purge and
scans. Its pages are written by calls that can be seen only without native asynchronous I/O.
"""
import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from roles import (LONGEST_S, SCRATCH, fail, grown, in_a_while, near, of_job, policy,  # noqa: E402
                   skip, under)

SERVER = shutil.which("mariadbd") or shutil.which("mariadbd", path="/usr/sbin")
CLIENT = shutil.which("mariadb")
if SERVER is None or CLIENT is None:
    skip("needs mariadbd and mariadb (mariadb-server)")

DATA = os.path.join(SCRATCH, "data")
SOCKET = os.path.join(SCRATCH, "socket")
LEAST = 0.05


def ask(text):
    done = subprocess.run([CLIENT, "--no-defaults", "-S", SOCKET, "-N", "-e", text], check=False,
                          capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None


def counters():
    rows = ask("show global status like 'Innodb%'")
    return dict(line.split("\t") for line in rows.splitlines())


def start():
    os.makedirs(DATA)
    return subprocess.Popen(
        [*under(policy("mariadb"), "--job", "maria"), SERVER, "--no-defaults", "--user=root",
         f"--datadir={DATA}", f"--socket={SOCKET}", "--skip-networking", "--skip-grant-tables",
         *os.environ.get("MARIADB_OPTIONS", "").split(), "--innodb-use-native-aio=0",
         "--innodb-flush-method=O_DIRECT", "--innodb-buffer-pool-size=8M",
         "--innodb-log-file-size=16M", "--innodb-flush-log-at-trx-commit=0",
         "--innodb-max-dirty-pages-pct=1", "--innodb-io-capacity=2000"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def work():
    for text in ("create database t",
                 "create table t.t (id int primary key, v varchar(4000)) engine=innodb",
                 "insert into t.t select seq, repeat(md5(seq),100) from t.seq_1_to_10000",
                 "update t.t set v=repeat(md5(id+1),100) where id % 3 = 0",
                 "delete from t.t where id % 2 = 0",
                 "select count(*) from t.t where v like '%abc%'"):
        if ask(text) is None:
            fail(f"the server refuses: {text}")


def agree(before, first):
    now, last = of_job("maria"), counters()

    def theirs(name):
        return int(last[name]) - int(first[name])

    def ours(field, *roles):
        return sum(grown(now, before, f"mariadb.{r}", field) for r in roles)

    return all([
        near("pages written", ours("written_bytes", "page-cleaner", "temporary"),
             theirs("Innodb_data_written"), LEAST),
        near("pages read", ours("read_bytes", "page-reads", "temporary"),
             theirs("Innodb_data_read"), LEAST),
        near("redo log", ours("written_bytes", "redo-log"), theirs("Innodb_os_log_written"),
             LEAST)])


def main():
    server = start()
    try:
        in_a_while(lambda: ask("select 1") is not None, "the server does not begin")
        before, first = of_job("maria"), counters()
        work()
        in_a_while(lambda: agree(before, first), "roles and counters differ")
    finally:
        with open(os.path.join(DATA, f"{os.uname().nodename}.pid"), encoding="utf-8") as f:
            os.kill(int(f.readline()), signal.SIGTERM)
        server.wait(LONGEST_S)


main()
