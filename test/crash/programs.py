#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real programs on a recorded disk: programs.py NAME[+OPTION]... takes lines and answers each.

    prepare              ok | skip WHY       the empty disk is mounted
    run SEED             ok ERRORS           the program does its work, and marks
    check N N N ...      ok | lost | broken  acknowledged epochs of each stream; perhaps ok SEEN

Where they are told to acknowledge what is durable they do as their manuals say: sqlite needs
synchronous=EXTRA with a rollback journal, git and mail a sync of the directories they named in.
"""
import contextlib
import ctypes
import glob
import hashlib
import json
import mailbox
import os
import pwd
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time

from epochs import Epochs
from files import Files
from program import BESIDE, BIN, DISK, HERE, LONGEST_S, Broken, Lost, Program, Skip, fork_each, \
    mark, need, sync_directory, tell
from relay import Relay

STREAMS = 2
ROWS = 60
CHECKPOINT_EVERY = 8  # rows


def text_of(stream, epoch):
    """100 to 3000 bytes that say whose they are."""
    seed = hashlib.sha256(f"{stream} {epoch}".encode()).hexdigest()
    return (seed * 47)[:100 + int(seed[:6], 16) % 2900]


def first_missing(present, acked, what):
    """What is there is 0, 1, 2 ... without a gap, up to the last acknowledged at least."""
    for e, seen in enumerate(sorted(present)):
        if seen != e:
            raise Broken(f"{what}: {e} is missing before {seen}")
    if len(present) < acked:
        raise Lost(f"{what}: {len(present)} of {acked}")


class Sqlite(Program):
    journal, synchronous = "WAL", "FULL"

    def path(self, stream):
        return os.path.join(self.dir_of(stream), f"db{stream}")

    def open(self, stream):
        db = sqlite3.connect(self.path(stream), isolation_level=None, timeout=60)
        try:
            db.execute(f"pragma journal_mode={self.journal}").fetchall()
            db.execute(f"pragma synchronous={self.synchronous}")
            db.execute("pragma wal_autocheckpoint=0")  # that tells nobody of its errors
        except sqlite3.Error:
            db.close()
            raise
        return db

    def prepare(self):
        super().prepare()
        for stream in range(STREAMS):
            db = self.open(stream)
            db.execute("create table t (id integer primary key, text)")
            db.execute("create index i on t (text)")
            db.close()

    def inside(self, seed):
        return fork_each([lambda s=s: self.insert(s) for s in range(STREAMS)])

    def insert(self, stream):
        epoch = 0
        try:
            db = self.open(stream)
            for epoch in range(ROWS):
                db.execute("insert into t values (?, ?)", (epoch, text_of(stream, epoch)))
                mark(stream, epoch)
                if epoch % CHECKPOINT_EVERY == CHECKPOINT_EVERY - 1:
                    db.execute("pragma wal_checkpoint(passive)")
            db.close()
        except sqlite3.Error as error:
            tell(stream, epoch, error)
            # Without closing it, which would do the checkpoint again: ext4 acknowledges a second
            # fsync of what its disk refused once, and after a power cut it is zeros.
            os._exit(0)

    def check(self, acknowledged):
        for stream in range(STREAMS):
            self.check_one(stream, acknowledged[stream])

    def check_one(self, stream, acked):
        try:
            with contextlib.closing(self.open(stream)) as db:
                verdict = db.execute("pragma integrity_check").fetchone()[0]
                rows = dict(db.execute("select id, text from t"))
        except sqlite3.Error as error:
            raise Broken(f"db{stream}: {error}")
        if verdict != "ok":
            raise Broken(f"db{stream}: {verdict}")
        for epoch, text in rows.items():
            if text != text_of(stream, epoch):
                raise Broken(f"db{stream}: row {epoch} is another")
        first_missing(rows, acked, f"db{stream}")


class SqliteWal(Sqlite):
    name = "sqlite-wal"


class SqliteDelete(Sqlite):
    name, journal, synchronous = "sqlite-delete", "DELETE", "EXTRA"


class Users(SqliteWal):
    """Two users of a node, each with a job, a database, and a journal that sluiced keeps."""
    name = "users"
    uids = (64001, 64002)  # the first one's stream is 0
    journals = os.path.join(DISK, "journals")
    go = os.path.join(BESIDE, "go")  # all is served

    def dir_of(self, stream):
        return os.path.join(DISK, str(self.uids[stream]))

    def beside_of(self, stream):
        return os.path.join(BESIDE, str(self.uids[stream]))

    def own(self, path, stream):
        for at, _, names in os.walk(path):
            for one in [at] + [os.path.join(at, name) for name in names]:
                shutil.chown(one, self.uids[stream], self.uids[stream])

    def prepare(self):
        os.mkdir(self.journals, 0o711)
        for stream, uid in enumerate(self.uids):
            may = subprocess.run(["test", "-x", os.path.join(BIN, "sluice")], user=uid)
            if may.returncode != 0:
                raise Skip(f"uid {uid} may not come to {BIN}")
            os.makedirs(self.beside_of(stream), exist_ok=True)
            os.mkdir(self.dir_of(stream), 0o700)
            db = self.open(stream)
            db.execute("create table t (id integer primary key, text)")
            db.execute("create index i on t (text)")
            db.close()
            for path in (self.dir_of(stream), self.beside_of(stream)):
                self.own(path, stream)
        for place in (BESIDE, os.path.dirname(BESIDE)):
            os.chmod(place, os.stat(place).st_mode | 0o11)

    def make_log(self):
        """The node makes them."""

    def said(self):
        with open(os.path.join(BESIDE, "node"), errors="replace") as f:
            return " / ".join([super().said()] + f.read()[-3000:].splitlines())

    def start_node(self):
        with open(os.path.join(BESIDE, "site.json"), "w") as f:
            f.write('{"targets": {"disk": {"path": "%s", "order": "durable"}}}' % DISK)
        open(os.path.join(BESIDE, "said"), "w").close()
        if os.path.exists(self.go):
            os.remove(self.go)
        with open(os.path.join(BESIDE, "node"), "wb") as said:
            return subprocess.Popen(
                [os.path.join(BIN, "sluiced"), "--role", "node", "--name", "n1", "--run-dir",
                 os.path.join(BESIDE, "run"), "--policy", os.path.join(BESIDE, "site.json"),
                 "--metrics", "none", "--journal", self.journals, "--journal-size", "1MiB"],
                stdin=subprocess.DEVNULL, stdout=said, stderr=said)

    def wait_for(self, node, words, times):
        until = time.monotonic() + LONGEST_S
        while self.said().count(words) < times:
            if time.monotonic() > until or node.poll() is not None:
                raise RuntimeError(f"no {words}: {self.said()}")
            time.sleep(0.02)

    def run(self, seed):
        node = self.start_node()
        try:
            self.wait_for(node, " serving", 1)
            marks = os.open(os.environ["MARKS"], os.O_WRONLY)
            with open(os.path.join(BESIDE, "said"), "wb") as said:
                each = [subprocess.Popen(
                    [os.path.join(BIN, "sluice"), "--run-dir", os.path.join(BESIDE, "run"), "run",
                     "--no-summary", "--report", os.path.join(self.beside_of(s), "report.json"),
                     "--", "/usr/bin/python3", "-B", os.path.join(HERE, "programs.py"), self.name,
                     "inside", str(s)], stdin=subprocess.DEVNULL, stderr=said, pass_fds=[marks],
                    env=dict(os.environ, MARKS_FD=str(marks)), user=uid, group=uid,
                    extra_groups=[]) for s, uid in enumerate(self.uids)]
            os.close(marks)
            self.wait_for(node, "the journal is served", len(self.uids))
            open(self.go, "w").close()
            ends = [one.wait(LONGEST_S) for one in each]
            if any(ends):
                raise RuntimeError(f"status {ends}: {self.said()}")
        finally:
            node.terminate()
            node.wait()
        return 0

    def inside(self, seed):
        while not os.path.exists(self.go):
            time.sleep(0.01)
        self.insert(seed)
        return True

    def answered(self):
        counts = []
        for stream in range(len(self.uids)):
            with open(os.path.join(self.beside_of(stream), "report.json")) as f:
                counts.append(json.load(f)["order"]["answered"])
        return min(counts)

    def check(self, acknowledged):
        for stream in range("damaged" in self.options, STREAMS):
            self.check_one(stream, acknowledged[stream])


class Rocksdb(Program):
    """db_bench says after each write how many there were."""
    name = "rocksdb"
    writes = 300

    def prepare(self):
        need("db_bench")
        need("ldb")
        super().prepare()

    def run(self, seed):
        child = self.start(
            ["db_bench", "--benchmarks=fillseq", f"--db={self.dir}/db", f"--num={self.writes}",
             "--sync=1", "--value_size=400", "--write_buffer_size=32768", "--stats_interval=1",
             "--compression_type=none", f"--seed={seed % 1000 + 1}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        tail = b""
        for line in child.stderr:
            done = re.search(rb"thread 0: \(\d+,(\d+)\) ops", line)
            if done:
                mark(0, int(done.group(1)) - 1)
            else:
                tail = line
        if child.wait() != 0:
            raise RuntimeError(f"db_bench: {child.returncode} {tail}")
        return 0

    def check(self, acknowledged):
        if not os.path.exists(f"{self.dir}/db/CURRENT"):
            if acknowledged[0]:
                raise Lost("no database")
            return
        found = subprocess.run(["ldb", f"--db={self.dir}/db", "scan", "--hex", "--no_value"],
                               capture_output=True, text=True)
        if found.returncode != 0 or "orrupt" in found.stderr + found.stdout:
            raise Broken((found.stderr + found.stdout)[-200:])
        keys = [int(k[:16], 16) for k in re.findall(r"^0x([0-9A-F]+)", found.stdout, re.M)]
        first_missing(keys, acknowledged[0], "keys")


class Maildir(Program):
    name = "maildir"

    def prepare(self):
        super().prepare()
        for stream in range(STREAMS):
            mailbox.Maildir(os.path.join(self.dir, f"box{stream}"))

    def inside(self, seed):
        return fork_each([lambda s=s: self.deliver(s) for s in range(STREAMS)])

    def deliver(self, stream):
        path = os.path.join(self.dir, f"box{stream}")
        box = mailbox.Maildir(path)
        for epoch in range(ROWS):
            message = mailbox.MaildirMessage(f"Subject: {epoch}\n\n{text_of(stream, epoch)}\n")
            box.add(message)  # tmp, fsync, link to new
            sync_directory(os.path.join(path, "new"))
            mark(stream, epoch)
            if epoch >= 8:  # read, and thrown away
                for key, old in box.iteritems():
                    if int(old["Subject"]) == epoch - 8:
                        box.remove(key)
                        break

    def check(self, acknowledged):
        for stream in range(STREAMS):
            there = set()
            new = os.path.join(self.dir, f"box{stream}", "new")
            for name in os.listdir(new):
                with open(os.path.join(new, name)) as f:
                    found = re.fullmatch(r"Subject: (\d+)\n\n(\w*)\n+", f.read())
                if not found or found.group(2) != text_of(stream, int(found.group(1))):
                    raise Broken(f"box{stream}: {name} is not whole")
                there.add(int(found.group(1)))
            for epoch in range(max(0, acknowledged[stream] - 8), acknowledged[stream]):
                if epoch not in there:
                    raise Lost(f"box{stream}: {epoch} of {acknowledged[stream]}")


class Git(Program):
    name = "git"
    commits = 25

    def git(self, *words):
        env = dict(os.environ, HOME=BESIDE, GIT_CONFIG_NOSYSTEM="1", GIT_AUTHOR_NAME="a",
                   GIT_AUTHOR_EMAIL="a@b", GIT_COMMITTER_NAME="a", GIT_COMMITTER_EMAIL="a@b")
        return subprocess.run(["git", "-C", self.dir, "-c", "core.fsync=all", "-c",
                               "core.fsyncMethod=fsync", "-c", "gc.auto=0", *words],
                              capture_output=True, text=True, env=env)

    def prepare(self):
        need("git")
        super().prepare()
        if self.git("init", "-q", "-b", "main").returncode != 0:
            raise RuntimeError("git init")

    def inside(self, seed):
        for epoch in range(self.commits):
            with open(os.path.join(self.dir, f"file{epoch % 5}"), "w") as f:
                f.write(text_of(0, epoch))
            for words in (("add", "-A"), ("commit", "-q", "-m", str(epoch))):
                done = self.git(*words)
                if done.returncode != 0:
                    raise RuntimeError(done.stderr)
            # Objects are named by link or rename: their directories are not synced by git.
            for at, _, _ in os.walk(os.path.join(self.dir, ".git")):
                sync_directory(at)
            mark(0, epoch)
        return True

    def check(self, acknowledged):
        head = self.git("rev-parse", "-q", "--verify", "HEAD")
        if head.returncode != 0:
            if acknowledged[0]:
                raise Lost(f"no HEAD: {head.stderr}")
            return
        verdict = self.git("fsck", "--full", "--strict")
        if verdict.returncode != 0:
            raise Broken((verdict.stdout + verdict.stderr)[-300:])
        log = self.git("log", "--format=%s")
        if log.returncode != 0:
            raise Broken(log.stderr)
        first_missing([int(line) for line in log.stdout.split()], acknowledged[0], "commits")


class Postgres(Program):
    name = "postgres"
    settings = {"shared_buffers": "2MB", "max_connections": "8", "listen_addresses": "''",
                "max_wal_size": "4MB", "min_wal_size": "2MB", "wal_level": "minimal",
                "max_wal_senders": "0", "checkpoint_timeout": "30s", "jit": "off",
                "unix_socket_directories": f"'{BESIDE}/run'", "fsync": "on"}

    def __init__(self, options=()):
        super().__init__(options)
        where = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
        self.bin = where[-1] if where else None
        self.user = "postgres"

    def program(self, name, *words, **more):
        return subprocess.run([os.path.join(self.bin, name), *words], capture_output=True,
                              text=True, **more, **self.as_user())

    def prepare(self):
        if self.bin is None:
            raise Skip("needs postgresql")
        try:
            pwd.getpwnam(self.user)
            ctypes.CDLL("libpq.so.5")
        except (KeyError, OSError) as missing:
            raise Skip(f"needs postgresql: {missing}")
        may = subprocess.run(["test", "-x", os.path.join(BIN, "sluice")], **self.as_user())
        if may.returncode != 0:
            raise Skip(f"the user {self.user} may not come to {BIN}")
        made = self.program("initdb", "-D", self.dir, "-k", "--no-sync", "--no-locale",
                            "--wal-segsize=1", "-A", "trust", "-E", "UTF8")
        if made.returncode != 0:
            raise RuntimeError(made.stderr)
        with open(os.path.join(self.dir, "postgresql.conf"), "a") as f:
            f.writelines(f"{key} = {value}\n" for key, value in self.settings.items())
        self.single("create extension amcheck;\n"
                    "create table t (stream int, epoch int, text text, "
                    "primary key (stream, epoch));\n")

    def single(self, text):
        """Recovers, as a server does, and runs it."""
        done = self.program("postgres", "--single", "-D", self.dir, "postgres", input=text)
        if done.returncode != 0 or "ERROR" in done.stderr or "FATAL" in done.stderr:
            raise Broken((done.stdout + done.stderr)[-300:])
        return done.stdout

    def run(self, seed):
        child = self.start([os.path.join(self.bin, "postgres"), "-D", self.dir])
        clients = [threading.Thread(target=self.insert, args=(s,)) for s in range(STREAMS)]
        for c in clients:
            c.start()
        for c in clients:
            c.join()
        with open(os.path.join(self.dir, "postmaster.pid")) as f:
            os.kill(int(f.readline()), signal.SIGINT)
        if child.wait(LONGEST_S) != 0:
            raise RuntimeError(f"postgres: {child.returncode} {self.said()}")
        return 0

    def insert(self, stream):
        pq = ctypes.CDLL("libpq.so.5")
        for call in (pq.PQconnectdb, pq.PQexec):
            call.restype = ctypes.c_void_p
        where = f"host={BESIDE}/run user={self.user} dbname=postgres".encode()
        for _ in range(200):
            link = ctypes.c_void_p(pq.PQconnectdb(where))
            if pq.PQstatus(link) == 0:
                break
            pq.PQfinish(link)
            time.sleep(0.05)
        else:
            return
        for epoch in range(ROWS):
            words = f"insert into t values ({stream}, {epoch}, '{text_of(stream, epoch)}')"
            result = ctypes.c_void_p(pq.PQexec(link, words.encode()))
            good = pq.PQresultStatus(result) == 1  # PGRES_COMMAND_OK
            pq.PQclear(result)
            if not good:
                return
            mark(stream, epoch)
        pq.PQfinish(link)

    def check(self, acknowledged):
        found = self.single("select stream || ' ' || epoch || ' ' || text as row from t;\n"
                            "select bt_index_parent_check('t_pkey'::regclass, true);\n")
        rows = re.findall(r'row = "(\d+) (\d+) (\w*)"', found)
        for stream in range(STREAMS):
            mine = {int(e): text for s, e, text in rows if int(s) == stream}
            for epoch, text in mine.items():
                if text != text_of(stream, epoch):
                    raise Broken(f"row {stream} {epoch} is another")
            first_missing(mine, acknowledged[stream], f"stream {stream}")
        sums = self.program("pg_checksums", "--check", "-D", self.dir)
        if sums.returncode != 0:
            raise Broken((sums.stdout + sums.stderr)[-300:])


def answer(program, words):
    try:
        if words[0] == "prepare":
            program.make_places()
            program.prepare()
            program.make_log()
            return "ok"
        if words[0] == "run":
            told = program.run(int(words[1]))
            if not told and "native" not in program.options and not program.answered():
                return "failed: the log daemon answered nothing"
            return f"ok {told}"
        seen = program.check([int(w) for w in words[1:]])
        return "ok" if seen is None else f"ok {seen}"
    except Skip as why:
        return f"skip: {why}"
    except Lost as what:
        return f"lost: {what}"
    except Broken as what:
        return f"broken: {what}"
    except Exception as error:
        if words[0] == "check":
            return f"broken: {type(error).__name__}: {error}"
        return f"failed: {type(error).__name__}: {error}"


def main():
    kinds = {k.name: k for k in (SqliteWal, SqliteDelete, Users, Rocksdb, Maildir, Git, Postgres,
                                  Files, Relay, Epochs)}
    name, *options = sys.argv[1].split("+")
    program = kinds[name](options)
    if sys.argv[2:3] == ["inside"]:
        return 0 if program.inside(int(sys.argv[3])) else 1
    for line in sys.stdin:
        said = answer(program, line.split())
        os.write(1, (" / ".join(said.splitlines()) + "\n").encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
