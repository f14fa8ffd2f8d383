#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Arguments that fit into an exec without us fit with us too: then the program starts without us.
. test/libinterpose/common.bash
need python3

cat >"$SCRATCH/work.py" <<'P'
import os
def starts(size, how):
    arguments = ["true"] + ["x" * 100_000] * (size // 100_001) + ["y" * (size % 100_001)]
    try:
        return how(arguments)
    except OSError as e:
        return os.strerror(e.errno)
def by_spawn(arguments):
    return os.waitpid(os.posix_spawn("/bin/true", arguments, {}), 0)[1]
def by_exec(arguments):
    child = os.fork()
    if child == 0:
        try:
            os.execve("/bin/true", arguments, {})
        except OSError as e:
            os._exit(e.errno)
    return os.waitpid(child, 0)[1]
def by_inherited(arguments):  # the environment has us in it already
    child = os.fork()
    if child == 0:
        try:
            os.execv("/bin/true", arguments)
        except OSError as e:
            os._exit(e.errno)
    return os.waitpid(child, 0)[1]
def by_actions(arguments):  # what the child does before it starts is done once
    if os.path.exists("made"): os.unlink("made")
    make = (os.POSIX_SPAWN_OPEN, 9, "made", os.O_CREAT | os.O_EXCL, 0o600)
    return os.waitpid(os.posix_spawn("/bin/true", arguments, {}, file_actions=[make]), 0)[1]
os.chdir(os.environ["SCRATCH"])
print(starts(8 << 20, by_actions))
for how in by_spawn, by_exec, by_inherited:
    low, high = 0, 8 << 20
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if starts(middle, how) == 0 else (low, middle)
    print(low, starts(high, how))
P
native=$(env -i "PATH=$PATH" "SCRATCH=$SCRATCH" python3 "$SCRATCH/work.py") || fail "natively: $?"
ours=$(limited open=100k/s env -i "PATH=$PATH" "SCRATCH=$SCRATCH" \
  python3 "$SCRATCH/work.py") || fail "status $?"
[ "$ours" = "$native" ] || fail "$ours; natively $native"
