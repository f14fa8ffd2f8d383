# SPDX-License-Identifier: Apache-2.0
"""What overhead.py and accuracy.py share: where things are, building the guests, statistics."""
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(TOP, "build")))
SLUICE = os.path.abspath(os.environ.get("SLUICE", os.path.join(BUILD, "bin", "sluice")))
LIBRARY = os.path.abspath(
    os.environ.get("SLUICE_LIB", os.path.join(BUILD, "lib", "libinterpose.so")))


class Broken(Exception):
    """The measurement itself failed: no figure is better than a wrong one."""


def output(*command):
    """What it prints; where it fails, the end of what it said is told."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        said = (done.stdout + done.stderr)[-500:]
        raise Broken(f"status {done.returncode}: {' '.join(command)}\n{said}")
    return done.stdout


def build(name, source, *flags):
    """The Makefile builds the guests too; alone, the scripts need nothing but a compiler."""
    os.makedirs(os.path.join(BUILD, "bench"), exist_ok=True)
    out = os.path.join(BUILD, "bench", name)
    source = os.path.join(HERE, source)
    if not os.path.exists(out) or os.path.getmtime(out) < os.path.getmtime(source):
        command = [os.environ.get("CXX", "g++"), "-std=c++20", "-O2", "-g", "-pthread", source,
                   "-o", out, *flags]
        if subprocess.run(command).returncode != 0:
            raise Broken(f"cannot compile {source}")
    return out


def need_stage():
    for path in (SLUICE, LIBRARY):
        if not os.path.exists(path):
            raise Broken(f"{path} is not there: run make first")


def clean_environment():
    return {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "GCONV_PATH")}


def file_system(path):
    """The type of the mount that holds `path`, as the kernel names it."""
    path, best, kind = os.path.realpath(path), "", "?"
    with open("/proc/self/mounts", encoding="utf-8") as mounts:
        for line in mounts:
            _, where, what = line.split()[:3]
            inside = path == where or path.startswith(where.rstrip("/") + "/")
            if inside and len(where) >= len(best):
                best, kind = where, what
    return kind


def median(values):
    return statistics.median(values)


def uncertainty(values):
    """Two standard errors of the median, from the median absolute deviation."""
    middle = statistics.median(values)
    spread = 1.4826 * statistics.median(abs(v - middle) for v in values)
    return 2 * 1.2533 * spread / len(values) ** 0.5


def machine():
    model = "?"
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            model = next((line.split(":", 1)[1].strip() for line in f if "model name" in line), "?")
    except OSError:
        pass
    return {"cpu": model, "cpus": os.cpu_count(), "kernel": platform.release(),
            "libc": " ".join(platform.libc_ver()), "load_before": os.getloadavg()[0]}


def say_machine(facts):
    print(f"{facts['cpu']}, {facts['cpus']} CPUs, Linux {facts['kernel']}, {facts['libc']}, "
          f"load {facts['load_before']:.1f}")


class Scratch:
    """A private directory that is gone afterwards."""

    def __init__(self, parent):
        os.makedirs(parent, exist_ok=True)
        self.path = tempfile.mkdtemp(prefix="sluice-bench-", dir=parent)

    def __enter__(self):
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


def finish(main):
    """Status 0 when the figures are sound, whatever they say; 1 when they could not be taken."""
    try:
        main()
    except (Broken, OSError) as problem:
        print(f"{os.path.basename(sys.argv[0])}: {problem}", file=sys.stderr)
        sys.exit(1)


def write_json(path, facts):
    if path:
        with open(path, "w", encoding="utf-8") as f:
            json.dump(facts, f, indent=1)
            f.write("\n")
