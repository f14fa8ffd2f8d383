# SPDX-License-Identifier: Apache-2.0
"""Three databases for database-background: each is made once, and run from a copy.

`run` gives the transactions (when done, ms), the spans of background work (what, begin, end), and
what was left of that work: `owed` is what a run may not leave more of than another.
"""
import contextlib
import glob
import json
import os
import pwd
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

import common as c
import pace
from disk import run
import world as w

KIB, MIB = 2**10, 2**20
LONGEST_S = 120
HERE = os.path.dirname(os.path.abspath(__file__))


class Outcome:
    def __init__(self, begin, end, done, spans, owed, note, written):
        self.begin, self.end, self.done, self.spans = begin, end, done, spans
        self.owed, self.note, self.written = owed, note, written


class Span:
    """A list of spans that grows: `with spans.of("VACUUM"):`."""

    def __init__(self, rows, what):
        self.rows, self.what = rows, what

    def __enter__(self):
        self.begin = time.time()

    def __exit__(self, *_):
        self.rows.append((self.what, self.begin, time.time()))


def fresh_copy(made, disk, user=None):
    """Past the throttle, for this process is not in its group; nothing of it is cached after."""
    path = os.path.join(disk.root, "db")
    shutil.rmtree(path, ignore_errors=True)
    run("cp", "-a", made, path)
    if user:
        run("chown", "-R", user, path)
    run("sync", "-f", path)
    for folder, _, names in os.walk(path):
        for name in names:
            fd = os.open(os.path.join(folder, name), os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)
    return path


def grown(disk, before):
    return [now - then for now, then in zip(disk.written_bytes(), before)]


def need(condition, what):
    if not w.wait_until(condition, LONGEST_S, 0.05):
        raise RuntimeError(what)


def beside(work):
    """A thread of it, and the list to which it adds what went wrong."""
    failed = []

    def safe():
        try:
            work()
        except Exception as e:
            failed.append(e)

    thread = threading.Thread(target=safe)
    thread.start()
    return thread, failed


def sleep_until(moment):
    time.sleep(max(0.0, moment - time.time()))


class Postgresql:
    """pgbench as shipped; CHECKPOINT, VACUUM and CHECKPOINT by a session beside it."""
    name, page, background = "postgresql", 8 * KIB, {
        "flush": "background-writer", "low": "vacuum", "high": "checkpointer"}
    SETTINGS = {"shared_buffers": "24MB", "autovacuum": "off", "max_wal_size": "2GB",
                "checkpoint_timeout": "1h", "listen_addresses": "''", "vacuum_cost_delay": "0",
                "log_checkpoints": "on"}
    CLIENTS = 4
    # A checkpoint that is spread over a tenth of a minute, and the pauses of an autovacuum.
    OWN = ["-c", "checkpoint_completion_target=0.1", "-c", "checkpoint_timeout=1min", "-c",
           "vacuum_cost_delay=2ms"]

    def __init__(self, o):
        self.o, self.user = o, pwd.getpwnam("nobody")
        self.bin = (sorted(glob.glob("/usr/lib/postgresql/*/bin")) or [""])[-1]
        self.home = os.path.join(o.folder, "home")
        self.env = dict(os.environ, HOME=self.home, PGHOST=self.home, PGUSER="pg",
                        PGDATABASE="postgres")
        self.as_user = ["setpriv", f"--reuid={self.user.pw_uid}", f"--regid={self.user.pw_gid}",
                        "--clear-groups"]
        self.rate = o.rate or 150

    def lacks(self):
        tools = os.path.join(self.bin, "pgbench")
        return None if self.bin and os.path.exists(tools) else "postgresql with pgbench"

    def tool(self, name, *words):
        done = subprocess.run([os.path.join(self.bin, name), *words], capture_output=True,
                              text=True, env=self.env, cwd=self.home)
        if done.returncode != 0:
            raise RuntimeError(f"{name} {words}: {done.stderr[-400:]}")
        return done.stdout.strip()

    def ask(self, text):
        return self.tool("psql", "-XAtqc", text)

    def is_up(self):
        return subprocess.run([os.path.join(self.bin, "pg_isready"), "-q"],
                              env=self.env).returncode == 0

    def start(self, data, before=(), preexec_fn=None, options=()):
        with open(os.path.join(self.o.folder, "postgresql.log"), "a") as log:
            command = [*self.as_user, *before, os.path.join(self.bin, "postgres"), "-D", data]
            server = subprocess.Popen([*command, *options], env=self.env, cwd=self.home, stdout=log,
                                      stderr=log, preexec_fn=preexec_fn)
        need(lambda: self.is_up() or server.poll() is not None, "PostgreSQL does not begin")
        if server.poll() is not None:
            with open(os.path.join(self.o.folder, "postgresql.log")) as log:
                raise RuntimeError(f"PostgreSQL ended: {log.read()[-500:]}")
        return server

    def stop(self, data, server, number):
        with open(os.path.join(data, "postmaster.pid")) as f:
            os.kill(int(f.readline()), number)
        server.wait(LONGEST_S)

    def make(self):
        """A third of the accounts is dead, so that a VACUUM has work to do."""
        self.made = os.path.join(self.o.folder, "pg")
        for path in (self.home, self.made):
            os.mkdir(path, 0o700)
            os.chown(path, self.user.pw_uid, self.user.pw_gid)
        subprocess.run([*self.as_user, os.path.join(self.bin, "initdb"), "-D", self.made,
                        "--no-sync", "--no-locale", "-A", "trust", "-U", "pg"], check=True,
                       stdout=subprocess.DEVNULL, env=self.env, cwd=self.home)
        with open(os.path.join(self.made, "postgresql.conf"), "a") as f:
            f.writelines(f"{k} = {v}\n" for k, v in self.SETTINGS.items())
            f.write(f"unix_socket_directories = '{self.home}'\n")
        server = self.start(self.made)
        self.tool("pgbench", "-i", "-q", "-s", str(self.o.scale))
        self.ask("update pgbench_accounts set abalance = 1 where aid % 3 = 0")
        self.stop(self.made, server, signal.SIGINT)

    def run(self, disk, before, per_s, is_own):
        data = fresh_copy(self.made, disk)
        server = self.start(data, before, disk.enter, self.OWN if is_own else ())
        try:
            self.ask("checkpoint")
            return self.measure(disk, per_s, is_own)
        finally:
            self.stop(data, server, signal.SIGQUIT)  # no checkpoint at the end

    def measure(self, disk, per_s, is_own):
        dead, written = self.dead(), disk.written_bytes()
        begin, spans = time.time(), []
        thread, failed = beside(lambda: self.work(begin, spans, is_own))
        done = self.pgbench(per_s)
        end = time.time()
        thread.join()
        if failed:
            raise failed[0]
        left = self.dead()
        wal = int(self.ask("select sum(size) from pg_ls_waldir()"))
        note = f"dead tuples {dead} to {left}, WAL {wal / MIB:.0f} MiB"
        return Outcome(begin, end, done, spans, max(0, left - len(done)), note,
                       grown(disk, written))

    def dead(self):
        return int(self.ask("select n_dead_tup from pg_stat_user_tables "
                            "where relname = 'pgbench_accounts'"))

    def work(self, begin, spans, is_own):
        """A backup begins with a checkpoint that is spread, if it may."""
        texts = {"VACUUM": "vacuum pgbench_accounts",
                 "CHECKPOINT": "select pg_backup_start('own', false)" if is_own else "checkpoint"}
        for at, what in ((0.1, "CHECKPOINT"), (0.25, "VACUUM"), (0.8, "CHECKPOINT")):
            sleep_until(begin + at * self.o.seconds)
            with Span(spans, what):
                self.ask(texts[what])

    def pgbench(self, per_s):
        prefix = os.path.join(self.o.folder, "transactions")
        self.tool("pgbench", "-n", "-c", str(self.CLIENTS), "-T", str(self.o.seconds), "--log",
                  "--log-prefix", prefix, *(["--rate", str(per_s)] if per_s else []))
        done = []
        for path in glob.glob(prefix + ".*"):
            with open(path) as lines:
                words = (line.split() for line in lines)
                done += [(int(x[4]) + int(x[5]) / 1e6, int(x[2]) / 1e3) for x in words
                         if x[2].isdigit()]
            os.unlink(path)
        return sorted(done)


class Mariadb:
    """Clients over a socket; rows that were deleted under an old view are purged when it goes."""
    name, page, background = "mariadb", 16 * KIB, {"high": "page-cleaner"}
    CLIENTS, ROWS, DELETED = 4, 40_000, 4000
    OWN = None
    LEFT = 0.1  # of the history: clients add to it all the time
    OPTIONS = ["--skip-networking", "--skip-grant-tables", "--innodb-use-native-aio=0",
               "--innodb-flush-method=O_DIRECT",
               "--innodb-log-file-size=256M",
               "--innodb-buffer-pool-dump-at-shutdown=0", "--innodb-buffer-pool-load-at-startup=0"]

    def __init__(self, o):
        self.o = o
        self.server = shutil.which("mariadbd", path=os.environ["PATH"] + ":/usr/sbin")
        self.client = shutil.which("mariadb")
        self.socket = os.path.join(o.folder, "socket")
        self.rate = o.rate or 60
        self.rows = self.ROWS // (4 if o.short else 1)
        self.deleted = self.DELETED // (4 if o.short else 1)
        self.options = [*self.OPTIONS, f"--innodb-buffer-pool-size={8 if o.short else 64}M"]

    def lacks(self):
        return None if self.server and self.client else "mariadbd and mariadb (mariadb-server)"

    def ask(self, text, check=True, timeout=LONGEST_S):
        done = subprocess.run([self.client, "--no-defaults", "-S", self.socket, "-N", "-e", text],
                              capture_output=True, text=True, timeout=timeout)
        if check and done.returncode != 0:
            raise RuntimeError(f"MariaDB refuses: {text}: {done.stderr[-400:]}")
        return done.stdout if done.returncode == 0 else None

    def history(self):
        said = self.ask("select count from information_schema.innodb_metrics "
                        "where name = 'trx_rseg_history_len'")
        return int(said)

    def waits_for_pages(self):
        """How often somebody waited until the page cleaner had freed one."""
        said = self.ask("show global status like 'Innodb_buffer_pool_wait_free'")
        return int(said.split()[1])

    def start(self, data, before=(), preexec_fn=None):
        with open(os.path.join(self.o.folder, "mariadb.log"), "a") as log:
            server = subprocess.Popen([*before, self.server, "--no-defaults", "--user=root",
                                       f"--datadir={data}", f"--socket={self.socket}",
                                       f"--pid-file={self.o.folder}/mariadb.pid", *self.options],
                                      stdout=log, stderr=log, preexec_fn=preexec_fn)
        need(lambda: self.ask("select 1", check=False) or server.poll() is not None,
             "MariaDB does not begin")
        return server

    def stop(self, server, number):
        with open(os.path.join(self.o.folder, "mariadb.pid")) as f:
            os.kill(int(f.readline()), number)
        server.wait(LONGEST_S)
        for name in (self.socket, os.path.join(self.o.folder, "mariadb.pid")):
            if os.path.exists(name):
                os.unlink(name)

    def make(self):
        self.made = os.path.join(self.o.folder, "maria")
        os.mkdir(self.made)
        server = self.start(self.made)
        for table in ("kept", "old"):
            self.ask("create database if not exists t; "
                     f"create table t.{table} (id int primary key, k int, v varchar(2000), "
                     "index (k)) engine=innodb; "
                     f"insert into t.{table} select seq, crc32(seq) % 1000000, "
                     f"repeat(md5(seq), 50) from t.seq_1_to_{self.rows}")
        self.stop(server, signal.SIGTERM)

    def run(self, disk, before, per_s, _):
        server = self.start(fresh_copy(self.made, disk), before, disk.enter)
        try:
            return self.measure(disk, per_s)
        finally:
            self.stop(server, signal.SIGKILL)

    def session(self):
        """One client that stays; what it is told ends with a line of an answer."""
        return subprocess.Popen([self.client, "--no-defaults", "-S", self.socket, "-N",
                                 "--unbuffered"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                text=True, bufsize=1)

    def tell(self, session, text):
        session.stdin.write(text + "\n")
        session.stdin.flush()
        if not session.stdout.readline():
            raise RuntimeError(f"MariaDB refuses: {text}")

    def asker(self, session, seed):
        chance = random.Random(seed)

        def ask():
            one, other = chance.randint(1, self.rows), chance.randint(1, self.rows)
            self.tell(session, f"begin; update t.kept set k = k + 1 where id = {one}; "
                               f"select length(v) from t.kept where id = {other} into @x; "
                               "commit; select 1;")
        return ask

    def measure(self, disk, per_s):
        view = self.session()
        sessions = [self.session() for _ in range(self.CLIENTS)]
        try:
            self.tell(view, "start transaction with consistent snapshot; "
                            "select count(*) from t.old where id < 2;")
            self.delete()
            written, waited = disk.written_bytes(), self.waits_for_pages()
            begin, spans, found = time.time(), [], []
            thread, failed = beside(lambda: self.purge(begin, view, spans, found))
            done = pace.drive([self.asker(s, i) for i, s in enumerate(sessions)],
                              self.o.seconds, per_s)
            end, left = time.time(), self.history()
            thread.join()
            if failed:
                raise failed[0]
        finally:
            for s in (view, *sessions):
                s.stdin.close()
                s.wait(LONGEST_S)
        return Outcome(begin, end, done, spans, max(0, left - int(found[0] * self.LEFT)),
                       f"history {found[0]} to {left}, {self.waits_for_pages() - waited} waits "
                       "for a free page", grown(disk, written))

    def delete(self):
        """Each its own transaction, for the history is counted in these."""
        ids = random.Random(1).sample(range(1, self.rows + 1), self.deleted)
        text = "".join(f"delete from t.old where id = {i};\n" for i in ids)
        done = subprocess.run([self.client, "--no-defaults", "-S", self.socket], text=True,
                              input="set global innodb_flush_log_at_trx_commit=0;" + text +
                              "set global innodb_flush_log_at_trx_commit=1;", capture_output=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr[-400:])

    def purge(self, begin, view, spans, found):
        """The history is short when what was deleted is gone. By itself the purge takes its time
        where clients are few: waiting for it wakes it.
        """
        sleep_until(begin + 0.15 * self.o.seconds)
        found.append(self.history())
        with Span(spans, "purge"):
            self.tell(view, "commit; select 1;")
            most = int(found[0] * self.LEFT)
            with contextlib.suppress(subprocess.TimeoutExpired):  # told as unfinished
                self.ask(f"set global innodb_max_purge_lag_wait = {most}",
                         timeout=2 * self.o.seconds)


class Sqlite:
    """Two writers in WAL mode, and a checkpointer that is a process of its own."""
    name, page, background = "sqlite", 4 * KIB, {"high": "checkpoint"}
    ROWS, WAL = 60_000, 16 * MIB
    OWN = 16  # times smaller checkpoints

    def __init__(self, o):
        self.o = o
        self.rate = o.rate or 150
        self.rows, self.wal = (self.ROWS // 4, self.WAL // 8) if o.short else (self.ROWS, self.WAL)

    def lacks(self):
        return None

    def make(self):
        import sqlite3
        self.made = os.path.join(self.o.folder, "lite")
        os.mkdir(self.made)
        db = sqlite3.connect(os.path.join(self.made, "x.db"))
        db.execute("pragma journal_mode=wal")
        db.execute("create table t (id integer primary key, n int, v blob)")
        db.executemany("insert into t values (?, 0, randomblob(3000))",
                       ((i,) for i in range(1, self.rows + 1)))
        db.commit()
        db.close()

    def run(self, disk, before, per_s, is_own):
        path = os.path.join(fresh_copy(self.made, disk), "x.db")
        out = os.path.join(self.o.folder, "sqlite.out")
        command = [*before, sys.executable, os.path.join(HERE, "sqlite_clients.py"), path,
                   self.o.seconds, per_s, self.rows, self.wal // (self.OWN if is_own else 1), out]
        written = disk.written_bytes()
        done = subprocess.run([str(x) for x in command], capture_output=True, text=True,
                              preexec_fn=disk.enter)
        if done.returncode != 0:
            raise RuntimeError(f"sqlite: status {done.returncode}: {done.stderr.strip()[-500:]}")
        with open(out) as f:
            said = json.load(f)
        locked_s = sum(s[3] for s in said["spans"])
        return Outcome(said["begin"], said["end"], said["done"], [s[:3] for s in said["spans"]],
                       max(0, said["wal_bytes"] - self.wal),
                       f"{len(said['spans'])} checkpoints, writers locked out {locked_s:.1f} s",
                       grown(disk, written))


ALL = {d.name: d for d in (Postgresql, Mariadb, Sqlite)}
