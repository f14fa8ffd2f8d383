# SPDX-License-Identifier: Apache-2.0
"""A small cluster on one machine: daemons, keys, network namespaces, jobs.

Used by tests and benchmarks, scripts/sandbox and scripts/experiments. As root each daemon lives in
a network namespace of its own, joined by a bridge, and speaks CURVE; else all use loopback ports,
plain. What stays true: everything started here is ended by stop(), by pid; nothing is left behind.
"""
import atexit
import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(TOP, "build")))
SLUICE = os.path.join(BUILD, "bin", "sluice")
SLUICED = os.path.join(BUILD, "bin", "sluiced")
PORT = 7421


class Gone(Exception):
    """Nobody answers on a local socket."""


def need(*programs):
    """Skips the test where one of them was not built."""
    for program in programs:
        if not os.access(os.path.join(BUILD, program), os.X_OK):
            print(f"needs {BUILD}/{program}")
            sys.exit(77)


def ask(run_dir, verb, timeout_s=2.0, **fields):
    """One request to the daemon of a run directory."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.settimeout(timeout_s)
        try:
            s.connect(os.path.join(run_dir, "sluiced.sock"))
            s.send(json.dumps({"verb": verb, **fields}).encode())
            answer = s.recv(1 << 17)
        except OSError as e:
            raise Gone(f"{run_dir}: {e}") from e
    if not answer:
        raise Gone(f"{run_dir}: closed")
    return json.loads(answer)


def ask_all(run_dir, verb, part, **fields):
    """An answer that comes in pages, as one."""
    whole, start = None, 0
    while start is not None:
        page = ask(run_dir, verb, **{"from": start}, **fields)
        if whole is None:
            whole = page
        else:
            whole[part] += page[part]
        start = page.get("next")
    return whole


def wait_until(condition, timeout_s=10.0, step_s=0.01):
    """True as soon as `condition` holds, False after the time."""
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(step_s)
    return condition()


class Namespace:
    """A network namespace without a name, held by a sleeping process."""

    def __init__(self):
        self.holder = subprocess.Popen(
            ["unshare", "--net", "sleep", "infinity"], stdin=subprocess.DEVNULL)
        own = os.readlink("/proc/self/ns/net")
        wait_until(lambda: os.readlink(f"/proc/{self.holder.pid}/ns/net") != own
                   and self._is_sleep())
        self.ip("link", "set", "lo", "up")

    def _is_sleep(self):
        with open(f"/proc/{self.holder.pid}/comm") as comm:
            return comm.read().strip() == "sleep"

    def prefix(self):
        return ["nsenter", "--net=/proc/%d/ns/net" % self.holder.pid]

    def ip(self, *words):
        subprocess.run([*self.prefix(), "ip", *words], check=True)

    def end(self):
        self.holder.kill()
        self.holder.wait()


class Daemon:
    """One sluiced. start() may be called again after kill()."""

    def __init__(self, world, role, name, argv, run_dir, namespace):
        self.world, self.role, self.name, self.argv = world, role, name, argv
        self.run_dir, self.namespace = run_dir, namespace
        self.process = None
        self.log_path = os.path.join(world.dir, name + ".log")

    def start(self, wait=True):
        prefix = self.namespace.prefix() if self.namespace else []
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(prefix + self.argv, stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log)
        if wait and not wait_until(self.is_up, 10):
            raise RuntimeError(f"{self.name} did not start, {self.where()}:\n{self.log()[-2000:]}")
        return self

    def where(self):
        """What its threads do, for who has to find out why."""
        told = []
        for task in glob.glob(f"/proc/{self.process.pid}/task/*"):
            for part in ("comm", "wchan", "syscall", "stack"):
                try:
                    with open(os.path.join(task, part)) as f:
                        told.append(f.read().strip())
                except OSError:
                    pass
        return " | ".join(told)

    def is_up(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"{self.name} ended with {self.process.returncode}:\n"
                               f"{self.log()[-2000:]}")
        try:
            self.ask("hello", timeout_s=0.5)
            return True
        except Gone:
            return False

    def ask(self, verb, **fields):
        return ask(self.run_dir, verb, **fields)

    def log(self):
        with open(self.log_path, errors="replace") as log:
            return log.read()

    def kill(self, number=signal.SIGKILL):
        if self.process and self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait(20)

    def signal(self, number):
        self.process.send_signal(number)

    def pid(self):
        return self.process.pid


class World:
    """Daemons and jobs under one scratch directory."""

    def __init__(self, policy, namespaces=None, root=None):
        self.dir = tempfile.mkdtemp(prefix="sluice-", dir=root or os.environ.get("SCRATCH"))
        os.chmod(self.dir, 0o755)
        self.tree = os.path.join(self.dir, "tree")  # the shared file system of the jobs
        os.mkdir(self.tree)
        self.policy = os.path.join(self.dir, "policy.json")
        self.write_policy(policy)
        self.daemons, self.jobs, self.tools = {}, [], []
        self.use_namespaces = os.geteuid() == 0 if namespaces is None else namespaces
        self.switch = self._make_switch() if self.use_namespaces else None
        self.spaces = []
        self._stopped = False
        atexit.register(self.stop)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # runs atexit

    def write_policy(self, policy):
        fresh = self.policy + ".new"
        with open(fresh, "w") as out:
            json.dump(policy, out, indent=2)
        os.rename(fresh, self.policy)

    def _make_switch(self):
        switch = Namespace()
        switch.ip("link", "add", "bridge", "type", "bridge")
        switch.ip("link", "set", "bridge", "up")
        return switch

    def _make_space(self):
        space = Namespace()
        number = len(self.spaces) + 1
        self.switch.ip("link", "add", f"v{number}", "type", "veth", "peer", "name", "eth",
                       "netns", str(space.holder.pid))
        self.switch.ip("link", "set", f"v{number}", "master", "bridge")
        self.switch.ip("link", "set", f"v{number}", "up")
        space.address = f"10.7.0.{number}"
        space.ip("addr", "add", space.address + "/24", "dev", "eth")
        space.ip("link", "set", "eth", "up")
        self.spaces.append(space)
        return space

    def cut(self, daemon, is_cut=True):
        """Takes a daemon's cable out, or puts it back."""
        number = self.spaces.index(daemon.namespace) + 1
        self.switch.ip("link", "set", f"v{number}", "down" if is_cut else "up")

    def block(self, daemon, other, is_blocked=True):
        """What `daemon` sends to `other` vanishes, or no longer does."""
        daemon.namespace.ip("route", "add" if is_blocked else "del", "blackhole",
                            other.namespace.address + "/32")

    # -- keys -------------------------------------------------------------------------------

    def _keys(self, name, parent, role):
        """A key pair for `name`; known to its parent, and knowing it."""
        mine = os.path.join(self.dir, "keys", name)
        run = lambda *words: subprocess.run([SLUICED, "keys", *words], check=True,
                                            stdout=subprocess.PIPE, text=True).stdout
        run("new", "--dir", mine, name)
        for p in parent:
            theirs = os.path.join(self.dir, "keys", p.name)
            run("allow", "--dir", theirs, "--role", role, name,
                os.path.join(mine, "public"))
            with open(os.path.join(theirs, "public")) as key, \
                    open(os.path.join(mine, "parent.pub"), "a") as known:
                known.write(key.read())
            if p.process:
                p.signal(signal.SIGHUP)
        return mine

    # -- daemons ----------------------------------------------------------------------------

    def daemon(self, role, name, parents=(), extra=(), start=True):
        """A new daemon below `parents`, in their order of preference."""
        space = self._make_space() if self.use_namespaces else None
        run_dir = os.path.join(self.dir, name)
        argv = [SLUICED, "--role", role, "--name", name, "--run-dir", run_dir]
        for parent in parents:
            argv += ["--parent", parent.listen]
        if self.use_namespaces:
            argv += ["--keys", self._keys(name, parents, role)]
        else:
            argv += ["--plain"]
        listen = None
        if role != "node":
            listen = (f"tcp://{space.address}:{PORT}" if space
                      else f"tcp://127.0.0.1:{free_port()}")
            argv += ["--listen", listen]
        if role == "cluster":
            argv += ["--policy", self.policy]
        daemon = Daemon(self, role, name, argv + [word.format(name=name) for word in extra],
                        run_dir, space)
        daemon.listen = listen
        self.daemons[name] = daemon
        return daemon.start() if start else daemon

    def cluster(self, name="cluster", **more):
        return self.daemon("cluster", name, **more)

    def relay(self, name, parents, **more):
        return self.daemon("relay", name, parents, **more)

    def node(self, name, parents=(), **more):
        return self.daemon("node", name, parents, **more)

    # -- jobs -------------------------------------------------------------------------------

    def run(self, node, job, command, qos_class=None, options=(), **popen):
        """`sluice run` of a program on a node; returns the process."""
        argv = [SLUICE, "--run-dir", node.run_dir, "run", "--job", job, "--no-summary"]
        if qos_class:
            argv += ["--class", qos_class]
        popen.setdefault("stdout", subprocess.DEVNULL)
        popen.setdefault("stderr", subprocess.PIPE)
        process = subprocess.Popen([*argv, *options, "--", *command], stdin=subprocess.DEVNULL,
                                   text=True, start_new_session=True, **popen)
        self.jobs.append(process)
        return process

    def watch_curves(self, channel, capacity):
        """Starts test/bench/curves; returns it and the file it writes."""
        path = os.path.join(self.dir, "curves.out")
        with open(path, "w") as out:
            tool = subprocess.Popen([os.path.join(BUILD, "bench", "curves"), self.dir, channel,
                                     str(capacity)], stdout=out)
        self.tools.append(tool)
        return tool, path

    def counted(self, node, job):
        """Calls and bytes by channel, from the job's segment itself."""
        out = subprocess.run([SLUICE, "--run-dir", node.run_dir, "--json", "stat", job],
                             stdout=subprocess.PIPE, text=True, check=True).stdout
        return {c["name"]: c["amount"] if c["unit"] == "bytes" else c["calls"]
                for c in json.loads(out)["channels"]}

    def end_job(self, process, number=signal.SIGTERM):
        if process.poll() is None:
            try:
                os.killpg(process.pid, number)
            except ProcessLookupError:
                pass
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def stop(self):
        if self._stopped:
            return
        self._stopped = True
        for process in self.jobs:
            self.end_job(process)
        for tool in self.tools:
            tool.kill()
            tool.wait()
        for daemon in reversed(list(self.daemons.values())):
            if daemon.process and daemon.process.poll() is None:
                daemon.signal(signal.SIGCONT)
                daemon.signal(signal.SIGTERM)
                try:
                    daemon.process.wait(5)
                except subprocess.TimeoutExpired:
                    daemon.kill()
        for space in self.spaces + ([self.switch] if self.switch else []):
            space.end()
        shutil.rmtree(self.dir, ignore_errors=True)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]
