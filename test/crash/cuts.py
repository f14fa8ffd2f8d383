#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# disks
# rows
# timeout: 900
"""Power cuts on a recorded disk: one table of what is tried, and one test for each cell of it.

    cuts.py MODE FS [STATES]    CRASH_STATES and CRASH_SEED of the environment change what is tried
    cuts.py --rows              the arguments of all tests, for run-tests

A cell says how many states are tried: in `make check`, then in one round of `make crash-long`
(long.py). README.md says what a mode does and whether it must hold; power_cut knows it too.
"""
import os
import shutil
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOL = os.path.join(os.path.abspath(os.environ.get("BUILD", os.path.join(TOP, "build"))),
                    "test/crash/power_cut")
SYSTEMS = ("ext4", "xfs")
TABLE = """
                  make check       a long round
                  ext4   xfs       ext4   xfs

# What was acknowledged survives, in order, by fsync and through the journal.
fsync              120    60        500   100
jdurhome           120    60       1000   250
user               120    60       1000   250

# The same with the journal's daemon, also while it is killed, stands still, or programs
# sync all themselves.
durable            120    60       3000   700
killed             120    60       3000   700
stopped            120    60       3000   700
synced             120     0       1500   300

# Barriers instead of waits: no later change without what a barrier stands before.
ordered            120    60       2000   600
okilled            120    60       1500   500
ostopped           120     0       1000   300
stage              120    60       1000   300
relay               60     0        300   100

# Losses that must be seen: no sync, no flush, nobody who replays, a rule less, no gate.
none               600     0          0     0
ack                600     0          0     0
jordhome           600     0          0     0
norecover          600     0          0     0
noreplay           600     0          0     0
noflush            600     0          0     0
norevoke           600     0          0     0
noremove           600     0          0     0
nomark             600     0          0     0
novoid             600     0          0     0
nogate             600   600          0     0
relay-apart       1500     0          0     0

# Real programs, whole and with all that they acknowledged.
sqlite-wal         100    20        500   150
sqlite-delete       60     0        500   150
rocksdb             80     0        400   100
maildir             80     0        500   150
git                 40     0        400   100
postgres            12     0         60    20

# Two users of a node at once, each with his journal; and the first one's journal is damaged.
users               60    20        400   100
users-damaged       40     0        300   100

# Files written in every way, while programs or the daemon are killed, others write to the same
# file, inode numbers come back, the disk is full, or has no cache; and two file systems.
files               80    20        600   200
app-killed          40     0        600   200
log-killed          30     0        600   200
foreign             30     0        400   100
reuse               50     0        600   200
through             20     0        200    50
half-said           20     0        300   100
again               60     0        600   600
full                40     0        300    60
homes               40     0        400   100
homes-sqlite        30     0        300   100

# While the daemon lets go of all files, or of what the journal has of them.
resting             60    20        600   200
resting-killed      30     0        300   100
resting-foreign      0     0        300   100
resting-again        0     0        300   100
resting-delete      30     0        300   100
resting-mail         0     0        300   100
each                40    20        600   200
each-killed          0     0        300   100
each-again           0     0        600   300
each-mail            0     0        300   100
each-gone           60    30        300   100
each-sqlite          0     0        300   100
whole               30     0        300   100
whole-mail           0     0        300   100

# While it looks who else wrote a file only after it has begun to flush.
late                40    20        600   200
late-foreign        40    20        400   100
late-half           20     0        300   100
late-killed          0     0        300   100
late-sqlite         30     0        300   100

# Disks that refuse reads, writes and flushes, in recovery too: an error was told.
eio-home            80     0        400   100
eio-log             80     0        400   100
eio-recover         60     0        400   100
eio-sqlite          40     0        200    60
eio-killed          40     0        200    60
each-eio             0     0        300   100
each-eio-sqlite     60     0        300   100

# Real programs with a rule less: each loss must be seen.
app-norecover      600     0          0     0
users-norecover    600     0          0     0
mail-norecover     600     0          0     0
eio-ignored        600     0          0     0
app-noflush        600     0          0     0
app-notrim         600     0          0     0
app-norevoke       600     0          0     0
app-noremove       600     0          0     0
foreign-unseen     600     0          0     0
late-unseen        600     0          0     0
half-unseen        600     0          0     0
reuse-unseen       600     0          0     0
again-undated      600     0          0     0

# Two to four nodes, cut at one moment: what a manifest names is there, on every node; and two
# gates that must be seen to be open too early.
epochs              40     0        600   200
epochs-log          40    20        600   200
epochs-ordered      40     0        400   100
epochs-killed       40     0        200    80
epochs-log-killed    0     0        200    80
epochs-lost         40     0        200    80
epochs-log-lost     40     0        200    80
gate-open          600     0          0     0
gate-lies          600     0          0     0
"""


def cells(first):
    """(mode, file system, states) of the two columns from `first` on, where states are tried."""
    for mode, *counts in (line.split() for line in TABLE.splitlines() if line[:1].isalpha()):
        for system, states in zip(SYSTEMS, map(int, counts[first:first + 2])):
            if states:
                yield mode, system, states


def of_check():
    return cells(0)


def of_a_round():
    return cells(2)


def missing(system):
    """Why nothing can be cut here, or nothing."""
    if os.geteuid() != 0:
        return "needs root"
    if not os.access(TOOL, os.X_OK):
        return "needs libfuse3-dev to be built"
    if not shutil.which("mkfs." + system):
        return "needs mkfs." + system
    return ""


def main():
    if sys.argv[1:] == ["--rows"]:
        for mode, system, _ in of_check():
            print(mode, system)
        return 0
    states = {(mode, system): states for mode, system, states in of_check()}
    mode, system, *wanted = sys.argv[1:]
    wanted = os.environ.get("CRASH_STATES") or (wanted or [states.get((mode, system), 600)])[0]
    if missing(system):
        print(missing(system))
        return 77
    os.nice(10)
    return os.execv(TOOL, [TOOL, mode, system, str(wanted), os.environ.get("CRASH_SEED", "1")])


if __name__ == "__main__":
    sys.exit(main() if len(sys.argv) > 1 else __doc__)
