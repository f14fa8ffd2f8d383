# SPDX-License-Identifier: Apache-2.0
"""A metadata server that is the bottleneck, its victims and its storms.

MooseFS on scripts/sandbox-slurm, its metadata server bounded to 5 % of a core, so that the server
and not this machine is what everybody waits for. The policy's target is /mnt, below which the file
system is mounted. Everything but in_site() is for inside.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
SCRATCH = "/mnt/scratch"
TARGET = "/mnt"
HOME = "/mnt/home"
CLUSTER_RUN = "/run/sluice-cluster"
RESERVED = 120  # operations/s of the victim's class
# Ten times what a call takes alone. A bounded server answers at once, or in the next period when
# its part of this one is used up: then a call takes some 12 ms instead of 0.4. So two slow calls in
# a hundred make the mean 1.6 times what it is alone, and four double it, which is what is allowed:
# three is what an administrator would write.
WANTED = "4ms p97"
STEERED = {"auto": True, "latency": WANTED, "min": f"{RESERVED}/s", "max": "20k/s"}

# Stats 64 files at random moments, 50 times a second; writes when, and how long each took.
VICTIM = """
import os, random, sys, time
seconds, rate, out = float(sys.argv[1]), 50.0, sys.argv[2]
names = ["/mnt/scratch/victim/%d" % i for i in range(64)]
took, begin = [], time.perf_counter()
at = begin
while at < begin + seconds:
    at += (0.2 + 1.6 * random.random()) / rate
    left = at - time.perf_counter()
    if left > 0:
        time.sleep(left)
    name = random.choice(names)
    before = time.perf_counter()
    os.stat(name)
    took.append(time.perf_counter() - before)
with open(out, "w") as f:
    f.write(" ".join("%.6f" % t for t in took))
"""

STORM = """
import os, sys, time
where = "/mnt/scratch/storm/%s" % os.environ["SLURM_PROCID"]
os.makedirs(where, exist_ok=True)
end, done, i = time.monotonic() + float(sys.argv[1]), 0, 0
while time.monotonic() < end:
    name = "%s/%d" % (where, i % 200)
    os.close(os.open(name, os.O_CREAT | os.O_WRONLY))
    os.stat(name)
    os.unlink(name)
    i += 1
    done += 4
print(done, flush=True)
"""


def policy(capacity):
    """`capacity`: operations/s of all, or a steered one."""
    words = capacity if isinstance(capacity, dict) else f"{capacity}/s"
    return {
        "targets": {"scratch": {"path": TARGET, "capacity": {"metadata": words}}},
        "control": {"nodes": "n[0-2],login"},
        "classes": {
            "interactive": {"scratch": {"metadata": {"reservation": f"{RESERVED}/s",
                                                     "weight": 10}}},
            "scavenger": {"scratch": {"metadata": {"weight": 1}}},
        },
    }


def in_site(script, first_policy, words):
    """The script once more, on the login node of a new site. Returns its status."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(first_policy, file)
        file.flush()
        return subprocess.call([os.path.join(TOP, "scripts", "sandbox-slurm"), "--mds-cap",
                                "20000/1000", "--policy", file.name, "run", sys.executable,
                                os.path.abspath(script), *words])


def is_inside():
    return "SLUICE_SITE" in os.environ


def prepare():
    os.makedirs(f"{SCRATCH}/victim")
    os.makedirs(f"{SCRATCH}/storm")
    os.chmod(f"{SCRATCH}/storm", 0o777)
    for i in range(64):
        with open(f"{SCRATCH}/victim/{i}", "w"):
            pass
    for name, text in (("victim", VICTIM), ("storm", STORM)):
        with open(f"{HOME}/{name}.py", "w") as f:
            f.write(text)


def use(content):
    """At the cluster, from where the nodes have it."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(content, file)
        file.flush()
        subprocess.run(["sluice", "--run-dir", CLUSTER_RUN, "policy", "apply", file.name],
                       check=True, stdout=subprocess.DEVNULL)


def sbatch(user, out, options, command):
    words = ["setpriv", "--reuid", user, "--regid", user, "--init-groups", "sbatch", "--parsable",
             "-o", f"{HOME}/{user}/{out}", *options, "--wrap", command]
    return subprocess.run(words, check=True, cwd=f"{HOME}/{user}", text=True,
                          stdout=subprocess.PIPE).stdout.split(";")[0].strip()


def state(job):
    return subprocess.run(["squeue", "-h", "-j", job, "-o", "%T"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.strip()


def wait_for(job, wanted, seconds=60):
    end = time.monotonic() + seconds
    while state(job) not in wanted:
        if time.monotonic() > end:
            sys.exit(f"job {job} is {state(job)}, not {wanted}")
        time.sleep(0.1)


def wait_end(job):
    wait_for(job, ("", "COMPLETED"))


def start_storm(qos_class, seconds):
    """Twelve processes on three nodes. Without a class they are not metered."""
    options = ["-N3", "-n12", "--ntasks-per-node=4"]
    if qos_class:
        options.append(f"--io-class={qos_class}")
    job = sbatch("bob", "storm", options, f"srun python3 {HOME}/storm.py {seconds}")
    wait_for(job, ("RUNNING",))
    return job


def storm_rate(seconds):
    with open(f"{HOME}/bob/storm") as f:
        return sum(int(word) for word in f.read().split() if word.isdigit()) / seconds


def measure(seconds, has_storm=True, storm_class=None):
    """(Latencies of the victim in ms, rate of the storm beside it), under the policy in force."""
    storm = None
    if has_storm:
        storm = start_storm(storm_class, seconds + 4)
        time.sleep(2)
    out = f"{HOME}/ann/victim"
    wait_end(sbatch("ann", "log", ["-w", "n2", "--io-class=interactive"],
                    f"python3 {HOME}/victim.py {seconds} {out}"))
    if storm:
        wait_end(storm)
    with open(out) as f:
        took = [float(word) * 1e3 for word in f.read().split()]
    os.remove(out)
    return took, storm_rate(seconds + 4) if storm else 0


def show_row(run, kind, took, storm):
    cuts = statistics.quantiles(took, n=100)
    print(f"{run:>3} {kind:7}{statistics.fmean(took):9.2f}{cuts[49]:8.2f}{cuts[89]:8.2f}"
          f"{cuts[98]:8.2f}{storm:12.0f}", flush=True)


def show_header():
    print(f"{'run':>3} {'':7}{'mean ms':>9}{'p50':>8}{'p90':>8}{'p99':>8}{'storm op/s':>12}")


def judge(facts):
    """Rows of (what, value, ">=" or "<=", bound). Returns how many are not kept."""
    wrong = 0
    for what, value, relation, bound in facts:
        good = value >= bound if relation == ">=" else value <= bound
        wrong += not good
        print(f"{what:<44}{value:7.2f}   {relation} {bound:g}   {'kept' if good else 'NOT KEPT'}")
    return wrong
