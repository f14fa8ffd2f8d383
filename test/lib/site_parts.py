# SPDX-License-Identifier: Apache-2.0
"""The daemons of scripts/sandbox-slurm, seen from inside its namespaces.

Each part is started by start(WHAT, NODE) and ended by kill(WHAT, NODE), by the pid it had; up()
starts them in their order and waits until the cluster is idle and a file was written and read back.
What stays true: nothing outside the directory `d`, the private mounts and two control groups is
touched, and no address but those of the namespace's own lo is used.
"""
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(TOP, "build")))
SCRATCH = "/mnt/scratch"
MASTER = "10.99.0.1"
CONTROL = "tcp://127.0.0.1:7421"
CPU = "/sys/fs/cgroup/cpu"
LOGIN = "login"  # the host where jobs are submitted, outside all nodes
CLUSTER_RUN = "/run/sluice-cluster"
USERS = {"ann": 20001, "bob": 20002, "cem": 20003}

POLICY = {
    "targets": {"scratch": {"path": SCRATCH, "capacity": {"metadata": "2k/s", "data": "1GiB/s"}}},
    "classes": {
        "gold": {"scratch": {"metadata": {"reservation": "500/s", "weight": 4}}},
        "silver": {"scratch": {"metadata": {"weight": 2}}},
        "bronze": {"scratch": {"metadata": {"weight": 1}}},
        "scavenger": {"scratch": {"metadata": {"weight": 0.1}}},
    },
    "access": {"gold": {"groups": ["hpc"]}},
}

SLURM_CONF = """
ClusterName=sluicesite
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort=16817
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
StateSaveLocation={d}/state
SlurmctldPidFile={d}/pid/slurmctld
SlurmdPidFile={d}/pid/slurmd-%n
SlurmdSpoolDir={d}/spool/%n
SlurmctldLogFile={d}/log/slurmctld.log
SlurmdLogFile={d}/log/slurmd-%n.log
PlugStackConfig=/etc/slurm/plugstack.conf
Prolog=/etc/slurm/prolog.sh
Epilog=/etc/slurm/epilog.sh
TaskProlog=/etc/slurm/taskprolog.sh
PrologFlags=Alloc
ProctrackType=proctrack/{proctrack}
TaskPlugin=task/{task}
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MpiDefault=none
ReturnToService=2
SlurmctldTimeout=30
SlurmdTimeout=60
InactiveLimit=0
MessageTimeout=10
KillWait=2
SchedulerType=sched/backfill
SchedulerParameters=sched_min_interval=100000,bf_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
TreeWidth=64
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
"""
NODE_CONF = "NodeName={n} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=8 " \
            "RealMemory={mem} State=UNKNOWN\n"

MASTER_CFG = """
WORKING_USER=root
WORKING_GROUP=root
DATA_PATH={d}/meta
EXPORTS_FILENAME={d}/mfsexports.cfg
LOCK_MEMORY=0
NICE_LEVEL=0
FILE_UMASK=027
MATOML_LISTEN_HOST={ip}
MATOML_LISTEN_PORT=19419
MATOCS_LISTEN_HOST={ip}
MATOCS_LISTEN_PORT=19420
MATOCL_LISTEN_HOST={ip}
MATOCL_LISTEN_PORT=19421
"""
CHUNK_CFG = """
WORKING_USER=root
WORKING_GROUP=root
DATA_PATH={d}/csdata
HDD_CONF_FILENAME={d}/mfshdd.cfg
LOCK_MEMORY=0
NICE_LEVEL=0
HDD_LEAVE_SPACE_DEFAULT=64MiB
MASTER_HOST={ip}
MASTER_PORT=19420
CSSERV_LISTEN_HOST={ip}
CSSERV_LISTEN_PORT=19422
"""


def missing(options):
    """Why it cannot be: one line, or nothing."""
    wanted = ["munged", "slurmctld", "slurmd", "sbatch", "unshare", "nsenter", "ip"]
    if options.fs == "moosefs":
        wanted += ["mfsmaster", "mfschunkserver", "mfsmount"]
    lost = [w for w in wanted if shutil.which(w) is None]
    if lost:
        return f"needs {' '.join(lost)} (scripts/deps --install site)"
    if options.fs == "moosefs" and not os.path.exists("/dev/fuse"):
        return "needs /dev/fuse"
    if not options.no_plugin and not os.path.exists(f"{BUILD}/lib/sluice_spank.so"):
        return "needs the plugin, which is built where libslurm-dev is"
    return None


def keep_options(d, options):
    words = {k: getattr(options, k) for k in ("nodes", "fs", "mds_cap", "policy", "no_plugin",
                                              "cgroup")}
    if words["policy"]:
        words["policy"] = os.path.abspath(words["policy"])
    words["group"] = f"{CPU}/sluice-site-{os.path.basename(d)}"
    with open(f"{d}/options.json", "w") as f:
        json.dump(words, f)


def read_options(d):
    with open(f"{d}/options.json") as f:
        return json.load(f)


def control_groups(d):
    try:
        o = read_options(d)
    except (OSError, ValueError):
        return []
    groups = [f"{o['group']}/mds", f"{o['group']}/rest", o["group"]] if o["mds_cap"] else []
    if o["cgroup"]:
        for controller in ("freezer", "cpuset", "memory", "devices"):
            for n in range(o["nodes"]):
                top = f"/sys/fs/cgroup/{controller}/slurm_n{n}"
                groups += [w for w, _, _ in os.walk(top, topdown=False)]
    return groups


def put(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, mode)


def run(*words, **more):
    more.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run(words, check=True, **more)


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


class Site:
    def __init__(self, d):
        self.d = d
        self.o = read_options(d)
        self.nodes = [f"n{i}" for i in range(self.o["nodes"])]
        self.host = socket.gethostname().split(".")[0]

    # -- files --------------------------------------------------------------------------------

    def write_files(self):
        d = self.d
        for sub in ("state", "pid", "munge", "spool", "meta", "csdata", "hdd", "run", "plain"):
            os.makedirs(f"{d}/{sub}", exist_ok=True)
        os.chmod(f"{d}/munge", 0o700)
        os.chmod(f"{d}/plain", 0o1777)
        with open("/dev/urandom", "rb") as r, open(f"{d}/munge/munge.key", "wb") as w:
            os.fchmod(w.fileno(), 0o400)
            w.write(r.read(128))
        with open("/proc/meminfo") as f:
            mem = int(f.readline().split()[1]) // 2048
        conf = SLURM_CONF.format(d=d, host=self.host,
                                 proctrack="cgroup" if self.o["cgroup"] else "linuxproc",
                                 task="cgroup" if self.o["cgroup"] else "none")
        for i, n in enumerate(self.nodes):
            os.makedirs(f"{d}/spool/{n}", exist_ok=True)
            os.makedirs(f"{d}/run/{n}", mode=0o711, exist_ok=True)
            conf += NODE_CONF.format(n=n, host=self.host, port=17000 + i, mem=mem)
        conf += f"PartitionName=main Nodes=n[0-{len(self.nodes) - 1}] Default=YES " \
                "MaxTime=INFINITE State=UP OverSubscribe=NO\n"
        put(f"{d}/etc/slurm.conf", conf)
        put(f"{d}/etc/cgroup.conf", "CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\n"
            "CgroupAutomount=no\nConstrainRAMSpace=no\n")
        put(f"{d}/etc/plugstack.conf", "include /etc/slurm/plugstack.conf.d/*.conf\n")
        os.makedirs(f"{d}/etc/plugstack.conf.d", exist_ok=True)
        self.write_hooks()
        self.write_policy()
        put(f"{d}/mfsmaster.cfg", MASTER_CFG.format(d=d, ip=MASTER))
        put(f"{d}/mfschunkserver.cfg", CHUNK_CFG.format(d=d, ip=MASTER))
        put(f"{d}/mfsexports.cfg", f"{MASTER}/32 / rw,alldirs,admin,maproot=0:0\n")
        put(f"{d}/mfshdd.cfg", f"{d}/hdd\n")
        put(f"{d}/meta/metadata.mfs", "MFSM NEW")
        with open("/etc/passwd") as p, open("/etc/group") as g:
            passwd, group = p.read(), g.read()
        for name, uid in USERS.items():
            passwd += f"{name}:x:{uid}:{uid}::/mnt/home/{name}:/bin/bash\n"
            group += f"{name}:x:{uid}:\n"
        put(f"{d}/passwd", passwd)
        put(f"{d}/group", group + "hpc:x:20100:ann\n")

    def write_hooks(self):
        names = {"prolog.sh": "prolog", "epilog.sh": "epilog", "taskprolog.sh": "task-prolog"}
        for name, hook in names.items():
            text = "#!/bin/sh\nexit 0\n"
            if self.o["no_plugin"]:
                text = f"#!/bin/sh\n{BUILD}/bin/sluice hook {hook}\nexit 0\n"
            put(f"{self.d}/etc/{name}", text, 0o755)
        if not self.o["no_plugin"]:
            put(f"{self.d}/etc/plugstack.conf.d/sluice.conf",
                f"optional {BUILD}/lib/sluice_spank.so\n")

    def write_policy(self):
        policy = POLICY
        if self.o["policy"]:
            with open(self.o["policy"]) as f:
                policy = json.load(f)
        policy.setdefault("control", {}).setdefault(
            "nodes", f"n[0-{len(self.nodes) - 1}],{LOGIN}")
        put(f"{self.d}/policy.json", json.dumps(policy, indent=2))

    # -- the order of things ------------------------------------------------------------------

    def up(self, is_stopped):
        self.write_files()
        self.make_mounts()
        self.make_groups()
        parts = [("munge", None), ("cluster", None)]
        if self.o["fs"] == "moosefs":
            parts += [("mds", None), ("chunks", None)]
        parts += [("slurmctld", None)] + [("node", n) for n in self.nodes]
        for what, node in parts:
            if is_stopped():
                return
            self.start(what, *([node] if node else []))
        self.mount_scratch(SCRATCH)
        self.start("sluiced", LOGIN)
        self.wait(lambda: self.idle() == len(self.nodes), "the nodes are not idle", is_stopped)
        self.wait(self.can_write, "nothing can be written to the file system", is_stopped)
        run("chmod", "1777", SCRATCH)
        self.bound_mds()

    def wait(self, condition, what, is_stopped=lambda: False):
        end = time.monotonic() + 40
        while not condition():
            if is_stopped():
                return
            if time.monotonic() > end:
                sys.exit(what)
            time.sleep(0.1)

    def idle(self):
        out = subprocess.run(["sinfo", "-h", "-N", "-o", "%T"], capture_output=True, text=True)
        return out.stdout.split().count("idle")

    def can_write(self):
        probe = f"echo x >{SCRATCH}/.probe && cat {SCRATCH}/.probe && rm {SCRATCH}/.probe"
        return subprocess.run(["timeout", "5", "sh", "-c", probe], capture_output=True).returncode \
            == 0

    def down(self):
        for n in self.nodes + [LOGIN]:
            for what in ("slurmd", "sluiced"):
                self.signal(what, n, signal.SIGTERM)
        for what in ("slurmctld", "cluster", "munge"):
            self.signal(what, None, signal.SIGTERM)
        if self.o["fs"] == "moosefs":
            subprocess.run(["umount", "-l", SCRATCH], stderr=subprocess.DEVNULL)
            for what in ("chunks", "mds"):
                self.signal(what, None, signal.SIGKILL)

    # -- namespaces and groups ----------------------------------------------------------------

    def make_mounts(self):
        d = self.d
        run("mount", "--make-rprivate", "/")
        for place in ("/run", "/mnt"):
            run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", place)
        for place in ("/run/sluice", CLUSTER_RUN, "/run/munge", SCRATCH, "/mnt/home"):
            os.makedirs(place)
        os.chmod("/run/sluice", 0o711)
        for name, uid in USERS.items():
            os.makedirs(f"/mnt/home/{name}")
            os.chown(f"/mnt/home/{name}", uid, uid)
        os.makedirs("/etc/slurm", exist_ok=True)  # the package made it
        run("mount", "--bind", f"{d}/etc", "/etc/slurm")
        for name in ("passwd", "group"):
            run("mount", "--bind", f"{d}/{name}", f"/etc/{name}")
        run("mount", "-t", "tmpfs", "-o", "size=3g", "tmpfs", f"{d}/hdd")
        run("ip", "link", "set", "lo", "up")
        run("ip", "addr", "add", f"{MASTER}/32", "dev", "lo")

    def make_groups(self):
        if not self.o["mds_cap"]:
            return
        for sub in ("mds", "rest"):
            os.makedirs(f"{self.o['group']}/{sub}", exist_ok=True)
        put(f"{self.o['group']}/cpu.shares", "16384")
        with open(f"{self.o['group']}/rest/cgroup.procs", "w") as f:
            f.write("0")

    def bound_mds(self):
        if self.o["fs"] != "moosefs" or not self.o["mds_cap"]:
            return
        period, quota = self.o["mds_cap"].split("/")
        mds = f"{self.o['group']}/mds"
        for name, value in (("cpu.cfs_quota_us", "-1"), ("cpu.cfs_period_us", period),
                            ("cpu.cfs_quota_us", quota)):
            with open(f"{mds}/{name}", "w") as f:
                f.write(value)
        with open(f"{mds}/cgroup.procs", "w") as f:
            f.write(str(self.pid("mds")))

    def enter_node(self, node):
        """This process sees what the node sees."""
        if node == LOGIN:
            return
        holder = self.pid("holder", node)
        with open(f"/proc/{holder}/ns/mnt") as space:
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.setns(space.fileno(), 0x00020000) != 0:
                sys.exit(f"setns: {os.strerror(ctypes.get_errno())}")
        os.environ["SLUICE_SITE_NODE"] = node

    def environment(self):
        env = dict(os.environ, SLUICE_SITE=self.d, BUILD=BUILD, HOME="/root")
        env["PATH"] = f"{BUILD}/bin:" + env.get("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        return env

    def become(self, user, env):
        uid = USERS[user]
        os.setgroups([uid, 20100] if user == "ann" else [uid])
        os.setgid(uid)
        os.setuid(uid)
        return dict(env, HOME=f"/mnt/home/{user}", USER=user, LOGNAME=user)

    # -- parts --------------------------------------------------------------------------------

    def pid_file(self, what, node=None):
        return f"{self.d}/pid/{what}" + (f"-{node}" if node else "")

    def pid(self, what, node=None):
        try:
            with open(self.pid_file(what, node)) as f:
                return int(f.read())
        except (OSError, ValueError):
            return 0

    def signal(self, what, node, number):
        pid = self.pid(what, node)
        if pid and is_alive(pid):
            os.kill(pid, number)
        return pid

    def kill(self, what, *more):
        """kill WHAT [NODE [SIGNAL]]: at once, and waits until it is gone."""
        node = more[0] if more and what in ("sluiced", "slurmd") else None
        word = more[-1] if more and more[-1] != node else "KILL"
        pid = self.signal(what, node, signal.Signals["SIG" + word])
        if word in ("KILL", "TERM"):
            self.wait(lambda: not is_alive(pid), f"{what} does not end")

    def spawn(self, what, node, argv, **more):
        with open(f"{self.d}/log/{what}{'-' + node if node else ''}.log", "a") as log:
            child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                     start_new_session=True, **more)
        put(self.pid_file(what, node), str(child.pid))

    def start(self, what, *more):
        getattr(self, "start_" + what)(*more)

    def start_munge(self):
        d = self.d
        run("munged", f"--key-file={d}/munge/munge.key", f"--pid-file={d}/pid/munge",
            f"--log-file={d}/munge/munged.log", f"--seed-file={d}/munge/munged.seed", "--force")

    def start_cluster(self):
        self.spawn("cluster", None, [
            f"{BUILD}/bin/sluiced", "--role", "cluster", "--name", "ctl", "--plain", "--metrics",
            "none", "--run-dir", CLUSTER_RUN, "--listen", CONTROL, "--policy",
            f"{self.d}/policy.json"])

    def start_slurmctld(self):
        run("slurmctld")

    def start_mds(self):
        d = self.d
        run("mfsmaster", "-c", f"{d}/mfsmaster.cfg", *(["-a"] if self.pid("mds") else []), "start",
            stdout=subprocess.DEVNULL)
        with open(f"{d}/meta/.mfsmaster.lock") as f:
            put(self.pid_file("mds"), f.read().strip())
        if os.path.exists(f"{d}/ready"):
            self.bound_mds()

    def start_chunks(self):
        d = self.d
        run("mfschunkserver", "-c", f"{d}/mfschunkserver.cfg", "start", stdout=subprocess.DEVNULL)
        with open(f"{d}/csdata/.mfschunkserver.lock") as f:
            put(self.pid_file("chunks"), f.read().strip())

    def mount_scratch(self, place):
        if self.o["fs"] == "plain":
            run("mount", "--bind", f"{self.d}/plain", place)
            return
        run("mfsmount", f"{MASTER}:19421:/", place, "-o",
            "mfsnice=0,mfsattrcacheto=0,mfsentrycacheto=0,mfsdirentrycacheto=0,"
            "mfsnegentrycacheto=0,allow_other", stdout=subprocess.DEVNULL)

    def start_node(self, n):
        """The node's own mounts, held by a process that sleeps; then its daemons."""
        self.spawn("holder", n, ["unshare", "--mount", "--propagation", "private", "sleep",
                                 "infinity"])
        own, holder = os.readlink("/proc/self/ns/mnt"), self.pid("holder", n)
        self.wait(lambda: os.readlink(f"/proc/{holder}/ns/mnt") != own, "unshare")
        child = os.fork()
        if child == 0:
            try:
                self.enter_node(n)
                run("mount", "--bind", f"{self.d}/run/{n}", "/run/sluice")
                self.mount_scratch(SCRATCH)
                self.start_sluiced(n)
                self.start_slurmd(n)
                os._exit(0)
            except BaseException as e:
                print(f"{n}: {e}", file=sys.stderr, flush=True)
                os._exit(1)
        if os.waitpid(child, 0)[1] != 0:
            sys.exit(f"node {n} does not start")

    def start_sluiced(self, n):
        self.spawn("sluiced", n, [
            f"{BUILD}/bin/sluiced", "--role", "node", "--name", n, "--plain", "--metrics", "none",
            "--parent", CONTROL, "--view", "cluster" if n == LOGIN else "node"])

    def start_slurmd(self, n):
        run("slurmd", "-N", n)
