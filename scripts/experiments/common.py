# SPDX-License-Identifier: Apache-2.0
"""What the experiments share: worlds, what jobs were let through over time, tables, a plot.

All figures come from the counters in the shared segments, read every 10 ms by build/bench/served;
nothing a program says of itself is used. Amounts between two looks are taken as even.
"""
import bisect
import concurrent.futures
import html
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TOP, "test/lib"))
import world as w  # noqa: E402

REPLAY = os.environ.get("SLUICE_REPLAY", os.path.join(w.BUILD, "bin", "sluice-replay"))
SERVED = os.path.join(w.BUILD, "bench", "served")
STEP_S = 0.01
QUARANTINE_S = 1.5  # a controller that just started raises nothing until old grants have ended
# Distinct for the colour-blind, and in grey.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")


def need_built():
    """Also asks for priority, if we may, so that other work on the machine disturbs less."""
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -10)
    except PermissionError:
        pass
    for path in (w.SLUICE, w.SLUICED, REPLAY):
        if not os.path.exists(path):
            sys.exit(f"{path} is not there: run make first")
    if not os.path.exists(SERVED):
        target = os.path.relpath(SERVED, TOP)
        subprocess.run(["make", "-s", "-C", TOP, target], check=True)


def fast_dir():
    """Where worlds live: given by the tests, else in memory, so that a disk does not count."""
    if os.environ.get("SCRATCH"):
        return os.environ["SCRATCH"]
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def scratch():
    return tempfile.TemporaryDirectory(prefix="sluice-experiment-", dir=fast_dir())


def take_output(parser):
    parser.add_argument("-o", "--output", metavar="DIR",
                        help="where NAME.json and NAME.svg go (a new temporary directory)")


def results(o, name):
    """Where the results go, without a suffix. Known before the run, so that none is in vain."""
    where = o.output or tempfile.mkdtemp(prefix="sluice-results-")
    os.makedirs(where, exist_ok=True)
    print(f"results: {os.path.join(where, name)}.json and .svg", flush=True)
    return os.path.join(where, name)


def make_world(policy_of, nodes):
    """A cluster controller and nodes n1 … below it. `policy_of` is given the shared tree."""
    world = w.World({}, namespaces=False, root=fast_dir())
    world.write_policy(policy_of(world.tree))
    cluster = world.cluster()
    world.nodes = [world.node(f"n{i + 1}", [cluster]) for i in range(nodes)]
    live = lambda: sum(n["state"] == "live" for n in cluster.ask("top")["nodes"]) == nodes
    if not w.wait_until(live, 15):
        sys.exit("the nodes did not reach the cluster controller")
    time.sleep(QUARANTINE_S)
    return world


def load_average():
    return os.getloadavg()[0]


def together(functions):
    """All at the same time; the first failure is ours."""
    with concurrent.futures.ThreadPoolExecutor(len(functions)) as pool:
        for done in [pool.submit(f) for f in functions]:
            done.result()


def show(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


class Watch:
    """Looks at one channel of all jobs of a world from now on."""

    def __init__(self, world, channel):
        self.path = os.path.join(world.dir, "served.out")
        with open(self.path, "w") as out:
            self.tool = subprocess.Popen([SERVED, world.dir, channel, str(int(STEP_S * 1000))],
                                         stdout=out)
        world.tools.append(self.tool)
        self.begin_ns = time.monotonic_ns()

    def end(self):
        """What was seen, as a History."""
        self.tool.send_signal(signal.SIGTERM)
        self.tool.wait()
        rows = {}
        with open(self.path) as lines:
            for line in lines:
                words = line.split()
                if len(words) == 4:
                    job = words[1].partition("/")[2]
                    rows.setdefault(job, {}).setdefault(words[1], []).append(
                        ((int(words[0]) - self.begin_ns) / 1e9, int(words[2]), words[3] == "1"))
        return History(rows)


class History:
    """Per job: the amount let through until each step of 10 ms, and whether a request waited."""

    def __init__(self, rows):
        end_s = max((r[-1][0] for parts in rows.values() for r in parts.values()), default=0)
        self.steps = int(end_s / STEP_S) + 2
        self.amount, self.waits = {}, {}
        for job, parts in rows.items():
            self.amount[job] = [0.0] * self.steps
            self.waits[job] = [False] * self.steps
            for samples in parts.values():
                self._add(job, samples)
        jobs = list(self.amount)
        self.total = [sum(self.amount[j][i] for j in jobs) for i in range(self.steps)]
        self.anybody_waits = [any(self.waits[j][i] for j in jobs) for i in range(self.steps)]

    def _add(self, job, samples):
        times = [s[0] for s in samples]
        for i in range(self.steps):
            t = i * STEP_S
            k = bisect.bisect_right(times, t) - 1
            if k < 0:
                continue
            value = samples[k][1]
            if k + 1 < len(samples):
                (t0, a0, _), (t1, a1, _) = samples[k], samples[k + 1]
                value = a0 + (a1 - a0) * (t - t0) / (t1 - t0)
                self.waits[job][i] |= samples[k][2]
            self.amount[job][i] += value

    def first_s(self):
        """When the first was let through."""
        return next((i for i, x in enumerate(self.total) if x > 0), 0) * STEP_S

    def per_second(self, job=None):
        """Amounts of whole seconds."""
        row, n = self.total if job is None else self.amount[job], round(1 / STEP_S)
        return [row[min(i + n, self.steps - 1)] - row[i] for i in range(0, self.steps - 1, n)]

    def worst_window(self, seconds=1.0):
        """The most in any window of that length."""
        n = round(seconds / STEP_S)
        return max((self.total[i + n] - self.total[i] for i in range(self.steps - n)), default=0)

    def wasted(self, capacity, job_wants=None):
        """(seconds in which somebody waited, part of the capacity that nobody used in those)."""
        waited_s, unused, begin = 0.0, 0.0, None
        for i in range(self.steps + 1):
            waits = i < self.steps and self.anybody_waits[i]
            if waits and begin is None:
                begin = i
            elif not waits and begin is not None:
                end = min(i, self.steps - 1)
                span_s = (end - begin) * STEP_S
                waited_s += span_s
                unused += max(0.0, capacity * span_s - (self.total[end] - self.total[begin]))
                begin = None
        return waited_s, unused / (capacity * waited_s) if waited_s else 0.0


def write_trace(path, interval_s, ops, jobs, facts):
    """`jobs`: name -> rows of counts, one per op."""
    with open(path, "w") as out:
        for key, value in facts:
            out.write(f"# {key}: {value}\n")
        out.write(f"# interval: {interval_s * 1000:.10g}ms\ntime_s,{','.join(ops)},job\n")
        for i in range(max(len(rows) for rows in jobs.values())):
            for job, rows in jobs.items():
                if i < len(rows):
                    counts = ",".join(f"{c:.10g}" for c in rows[i])
                    out.write(f"{i * interval_s:.10g},{counts},{job}\n")


def replay(trace, tree, job, *more):
    """The command: one job of the trace, with few files, so that making them hardly counts."""
    return [REPLAY, trace, "--target", tree, "--only-job", job, "--files", "8", "--depth", "0",
            "-q", *more]


def simulate(policy, trace, classes):
    """Virtual time: the result of `sluice replay --simulate`."""
    with scratch() as d:
        policy_file, out = os.path.join(d, "policy.json"), os.path.join(d, "out.json")
        with open(policy_file, "w") as f:
            json.dump(policy, f)
        chosen = [word for j, c in classes.items() for word in ("--class", f"{j}={c}")]
        subprocess.run([REPLAY, trace, "--simulate", "--policy", policy_file, *chosen, "-q",
                        "-o", out], check=True)
        with open(out) as f:
            return json.load(f)


def table(header, rows):
    """Right-aligned columns, the first to the left."""
    rows = [[str(c) for c in r] for r in rows]
    widths = [max(len(r[i]) for r in [header, *rows]) for i in range(len(header))]
    for r in [header, *rows]:
        print("  ".join(c.ljust(x) if i == 0 else c.rjust(x)
                        for i, (c, x) in enumerate(zip(r, widths))).rstrip())


def write_json(path, content):
    fresh = path + ".new"
    with open(fresh, "w") as out:
        json.dump(content, out, indent=1)
        out.write("\n")
    os.rename(fresh, path)


# -- the plot -------------------------------------------------------------------------------


class Panel:
    """Stacked areas over seconds; `lines` are (text, value) across, `curves` (name, values)."""

    def __init__(self, title, unit, areas, lines=(), scale=1.0, note=""):
        self.title, self.unit, self.areas = title, unit, areas
        self.lines, self.scale, self.note = lines, scale, note

    def most(self):
        sums = [sum(a[i] for _, a in self.areas if i < len(a)) for i in range(self.length())]
        return max([*sums, *(v for _, v in self.lines), 1e-9])

    def length(self):
        return max((len(a) for _, a in self.areas), default=0)


def nice_step(most, ticks=4):
    raw = most / ticks
    power = 10 ** len(str(int(raw))) / 10 if raw >= 1 else 1e-3
    while power * 10 <= raw:
        power *= 10
    return next((power * m for m in (1, 2, 2.5, 5, 10) if power * m >= raw), power * 10)


def draw_panel(p, x0, y0, width, height, length, most):
    at = lambda i, v: (x0 + width * i / length, y0 + height - height * v / most)
    out = [f'<text x="{x0}" y="{y0 - 8}" class="t">{html.escape(p.title)}</text>',
           f'<text x="{x0 + width}" y="{y0 - 8}" class="n" text-anchor="end">'
           f'{html.escape(p.note)}</text>']
    step = nice_step(most)
    value = 0.0
    while value <= most:
        _, y = at(0, value)
        out.append(f'<line x1="{x0}" y1="{y:.1f}" x2="{x0 + width}" y2="{y:.1f}" class="g"/>'
                   f'<text x="{x0 - 6}" y="{y + 4:.1f}" class="n" text-anchor="end">'
                   f'{value / p.scale:g}</text>')
        value += step
    low = [0.0] * p.length()
    for k, (_, values) in enumerate(p.areas):
        high = [b + (values[i] if i < len(values) else 0) for i, b in enumerate(low)]
        edge = []
        for i, v in enumerate(high):
            edge += [at(i, v), at(i + 1, v)]
        for i in range(len(low) - 1, -1, -1):
            edge += [at(i + 1, low[i]), at(i, low[i])]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in edge)
        out.append(f'<polygon points="{points}" fill="{COLOURS[k % len(COLOURS)]}"/>')
        low = high
    for text, v in p.lines:
        x, y = at(length, v)
        out.append(f'<line x1="{x0}" y1="{y:.1f}" x2="{x:.1f}" y2="{y:.1f}" class="l"/>'
                   f'<text x="{x + 4:.1f}" y="{y + 4:.1f}" class="n">{html.escape(text)}</text>')
    step = nice_step(length, 8)
    t = 0.0
    while t <= length:
        x, y = at(t, 0)
        out.append(f'<text x="{x:.1f}" y="{y + 14:.1f}" class="n" text-anchor="middle">'
                   f'{t:g}</text>')
        t += step
    return "\n".join(out)


def plot(path, title, panels, caption):
    """All panels on one scale, so that they may be compared."""
    width, height, left, top, gap = 760, 120, 70, 96, 52
    length, most = max(p.length() for p in panels), max(p.most() for p in panels)
    total = top + len(panels) * (height + gap) + 20 * len(caption)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width + left + 80} {total}" '
           f'role="img"><title>{html.escape(title)}</title>',
           "<style>text{font-family:sans-serif;fill:#111}.h{font-size:17px;font-weight:bold}"
           ".t{font-size:13px;font-weight:bold}.n{font-size:11px}.g{stroke:#ddd}"
           ".l{stroke:#111;stroke-dasharray:5 3}</style>",
           f'<rect width="100%" height="100%" fill="#fff"/>',
           f'<text x="{left}" y="28" class="h">{html.escape(title)}</text>']
    x = left
    for k, (name, _) in enumerate(panels[0].areas):
        out.append(f'<rect x="{x}" y="42" width="14" height="14" fill="{COLOURS[k]}"/>'
                   f'<text x="{x + 19}" y="54" class="n">{html.escape(name)}</text>')
        x += 40 + 7 * len(name)
    out.append(f'<text x="{left}" y="{top - 24}" class="n">{html.escape(panels[0].unit)}, each '
               f'second; seconds since the start</text>')
    for i, p in enumerate(panels):
        out.append(draw_panel(p, left, top + i * (height + gap), width, height, length, most))
    y = top + len(panels) * (height + gap)
    for line in caption:
        out.append(f'<text x="{left}" y="{y}" class="n">{html.escape(line)}</text>')
        y += 18
    with open(path, "w") as f:
        f.write("\n".join([*out, "</svg>"]) + "\n")
