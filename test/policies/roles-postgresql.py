#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 300
"""Roles of an unmodified PostgreSQL, whose processes show what they are, against its own counters:
over a pgbench, a VACUUM and a CHECKPOINT.
"""
import glob
import os
import pwd
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from roles import (LONGEST_S, SCRATCH, fail, grown, in_a_while, near, of_job, policy,  # noqa: E402
                   skip, under)

BIN = (sorted(glob.glob("/usr/lib/postgresql/*/bin")) or [None])[-1]
if BIN is None or not os.path.exists(os.path.join(BIN, "pgbench")):
    skip("needs postgresql")

HOME = os.path.join(SCRATCH, "home")
DATA = os.path.join(HOME, "data")
LEAST = 0.05
PAGE = 8192
# No advice ahead of a scan: sluice counts it as a read, and PostgreSQL does not.
SETTINGS = {"effective_io_concurrency": "0", "maintenance_io_concurrency": "0",
            "shared_buffers": "16MB", "bgwriter_delay": "10ms", "bgwriter_lru_maxpages": "1000",
            "bgwriter_lru_multiplier": "10", "autovacuum_naptime": "3s", "fsync": "off",
            "listen_addresses": "''", "unix_socket_directories": f"'{HOME}'",
            "max_wal_size": "1GB"}
AS = {}
if os.geteuid() == 0:
    user = pwd.getpwnam("nobody")
    AS = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
ENV = dict(os.environ, HOME=HOME, PGHOST=HOME, PGUSER="pg", PGDATABASE="postgres")


def tool(name, *words, check=True):
    done = subprocess.run([os.path.join(BIN, name), *words], capture_output=True, text=True,
                          env=ENV, check=False, cwd=HOME, **AS)
    if check and done.returncode != 0:
        fail(f"{name} {words}: {done.stderr[-400:]}")
    return done.stdout


class Session:
    """One client that stays. A new one for each question would read its caches first: those reads
    are in no counter, so a look would spoil what is looked at.
    """
    def __init__(self):
        self.psql = subprocess.Popen([os.path.join(BIN, "psql"), "-At"], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, text=True, env=ENV, cwd=HOME, **AS)

    def ask(self, names, query):
        self.psql.stdin.write(query + ";\n")
        self.psql.stdin.flush()
        return dict(zip(names, (int(n or 0) for n in self.psql.stdout.readline().split("|"))))

    def counters(self):
        return self.ask(("checkpointed", "cleaned", "by_backends", "read"),
                        "select buffers_checkpoint, buffers_clean, buffers_backend, "
                        "(select sum(blks_read) from pg_stat_database) from pg_stat_bgwriter")

    def workers(self):
        return self.ask(("autovacuum",), "select count(*) from pg_stat_activity "
                        "where backend_type = 'autovacuum worker'")["autovacuum"]

    def end(self):
        self.psql.stdin.close()
        self.psql.wait(LONGEST_S)


def start():
    os.makedirs(DATA)
    for path in (SCRATCH, HOME, DATA):
        os.chmod(path, 0o755)
        if AS:
            os.chown(path, AS["user"], AS["group"])
    tool("initdb", "-D", DATA, "-k", "--no-sync", "--no-locale", "-A", "trust", "-U", "pg")
    with open(os.path.join(DATA, "postgresql.conf"), "a", encoding="utf-8") as f:
        f.writelines(f"{key} = {value}\n" for key, value in SETTINGS.items())
    return subprocess.Popen([*under(policy("postgresql"), "--job", "pg"),
                             os.path.join(BIN, "postgres"), "-D", DATA], cwd=HOME, env=ENV,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **AS)


def at_rest(session):
    """Both counts at a moment at which no scan is under way. PostgreSQL counts what an autovacuum
    read when it ends, sluice while it reads: between them a whole table could be.
    """
    found = []

    def rests():
        before = session.workers(), session.counters()
        ours = of_job("pg", **AS)
        after = session.workers(), session.counters()
        found[:] = [ours, after[1]]
        return before == after and after[0] == 0

    in_a_while(rests, "PostgreSQL does not come to rest")
    return found


def vacuum():
    """Bytes that it says it read."""
    done = subprocess.run([os.path.join(BIN, "psql"), "-c", "vacuum (verbose) pgbench_accounts"],
                          capture_output=True, text=True, env=ENV, check=True, cwd=HOME, **AS)
    return sum(int(n) for n in re.findall(r"(\d+) misses", done.stderr)) * PAGE


def agree(session, before, first, vacuum_read):
    now, last = of_job("pg", **AS), session.counters()

    def ours(field, *roles):
        return sum(grown(now, before, f"postgresql.{r}", field) for r in roles)

    def theirs(name):
        return (last[name] - first[name]) * PAGE

    return all([
        near("checkpointer", ours("written_bytes", "checkpointer"), theirs("checkpointed"), LEAST),
        near("background writer", ours("written_bytes", "background-writer"), theirs("cleaned"),
             LEAST),
        near("clients write", ours("written_bytes", "clients", "autovacuum", "vacuum"),
             theirs("by_backends"), LEAST),
        near("clients read", ours("read_bytes", "clients", "autovacuum", "vacuum"), theirs("read"),
             LEAST),
        near("a VACUUM reads", ours("read_bytes", "vacuum"), vacuum_read, LEAST)])


def main():
    server, session = start(), None
    try:
        in_a_while(lambda: tool("psql", "-Atc", "select 1", check=False) != "", "no server")
        tool("pgbench", "-i", "-s", "4", "-q")
        tool("psql", "-Atc", "checkpoint")
        session = Session()
        before, first = at_rest(session)
        tool("pgbench", "-c", "4", "-t", "1500")
        vacuum_read = vacuum()
        tool("psql", "-Atc", "checkpoint")
        in_a_while(lambda: agree(session, before, first, vacuum_read),
                   "roles and counters differ")
    finally:
        if session is not None:
            session.end()
        with open(os.path.join(DATA, "postmaster.pid"), encoding="utf-8") as f:
            os.kill(int(f.readline()), signal.SIGINT)
        server.wait(LONGEST_S)


main()
