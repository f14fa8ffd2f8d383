#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Signals: passed on when sent, the child dies with sluice, a stop is seen by both where it was told
# through sluice or by the terminal. Who stops the child alone continues or kills it.
# set -m: each run has a process group of its own, whose parent is this session. In an orphaned
# group, such as that of a session leader, the kernel ignores TSTP.
set -um
. test/lib/lib.sh
run() { "$SLUICE" --run-dir "$SCRATCH/run" run --summary "$@"; }
wait_for() { # FILE
  for _ in $(seq 100); do [ -s "$1" ] && return; sleep 0.05; done
  fail "$1 did not appear"
}
state() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -c1; }
wait_state() { # PID WANTED WHAT
  for _ in $(seq 200); do case "$(state "$1")" in [$2]) return ;; esac; sleep 0.05; done
  fail "$3: process $1 is in state $(state "$1"), wanted $2"
}
"$SLUICE" --run-dir "$SCRATCH/run" run --summary -- \
  bash -c 'trap "echo got >$0/got; exit 9" USR1
    echo $$ >"$0/pid"
    while :; do sleep 0.05; done' "$SCRATCH" \
  2>/dev/null &
parent=$!
wait_for "$SCRATCH/pid"
kill -USR1 $parent
wait $parent
[ $? = 9 ] || fail "USR1 was not passed on"
[ -s "$SCRATCH/got" ] || fail "the trap did not run"

rm "$SCRATCH/pid"
run -- bash -c 'echo $$ >'"$SCRATCH"'/pid; exec sleep 60' 2>/dev/null &
group=$!
trap 'kill -KILL -$group 2>/dev/null; rm -rf "$SCRATCH"' EXIT
wait_for "$SCRATCH/pid"
child=$(cat "$SCRATCH/pid")
parent=$(sed 's/.*) //' "/proc/$child/stat" | cut -d' ' -f2)
kill -TSTP "$parent"
wait_state "$child" T "the child, TSTP to sluice"
wait_state "$parent" T "sluice, TSTP to sluice"
kill -CONT "$parent"
wait_state "$child" S "the child, CONT to sluice"
wait_state "$parent" S "sluice, CONT to sluice"
kill -TSTP "$child" "$parent"  # not the group: the bash in it would end a loop of this one
wait_state "$child" T "the child, TSTP to both"
wait_state "$parent" T "sluice, TSTP to both"
kill -CONT "$child" "$parent"
wait_state "$child" S "the child, CONT to both"
wait_state "$parent" S "sluice, CONT to both"
for how in STOP TSTP; do
  kill -"$how" "$child"
  wait_state "$child" T "the child, $how to it"
  kill -CONT "$child"
  wait_state "$child" S "the child, CONT to it"
done
wait_state "$parent" S "sluice, a stop and CONT to the child"
kill -KILL "$parent"
for _ in $(seq 100); do
  case "$(state "$child")" in '' | Z) break ;; esac
  sleep 0.05
done
case "$(state "$child")" in '' | Z) ;; *) fail "the child outlived sluice" ;; esac
wait 2>/dev/null

# It is stopped, and killed; once after it has ignored a stop that came through sluice.
for how in STOP TSTP; do
  rm "$SCRATCH/pid"
  run -- bash -c '[ '$how' = STOP ] && trap "" TSTP
    echo $$ >'"$SCRATCH"'/pid; exec sleep 60' 2>/dev/null &
  group=$!
  wait_for "$SCRATCH/pid"
  child=$(cat "$SCRATCH/pid")
  [ $how = TSTP ] || kill -TSTP "$(sed 's/.*) //' "/proc/$child/stat" | cut -d' ' -f2)"
  kill -"$how" "$child"
  wait_state "$child" T "the child, $how to it"
  kill -KILL "$child"
  ended() { [ -z "$(state "$group")" ] || [ "$(state "$group")" = Z ]; }
  until_true ended || fail "sluice, $how and KILL to the child: $(state "$group")"
  wait "$group"
  status=$?
  [ $status = 137 ] || fail "$how and KILL: status $status"
done

# At a terminal, below a shell: what stops the program stops sluice too, until `fg`, also where a
# shell that it runs has a group of its own. What a bare program shows is the rule.
cat >"$SCRATCH/terminal.py" <<'P'
import os, pty, select, sys
scene, program = sys.argv[1], " ".join(f"'{word}'" for word in sys.argv[2:])
bash = ["bash", "--norc", "--noprofile", "-i"]
shell, terminal = pty.fork()
if shell == 0: os.execvpe("bash", bash, {**os.environ, "PS1": "READY> "})
seen = b""
def until(text):  # what came before it
    global seen
    while text not in seen:
        if not select.select([terminal], [], [], 60)[0]: sys.exit(f"{scene}: no {text}: {seen}")
        seen += os.read(terminal, 4096)
    before, seen = seen.split(text, 1)
    return before
def say(line, text=None):
    os.write(terminal, line)
    return until(text) if text else None
def ready(): until(b"READY> ")  # what is typed while a shell changes the terminal may be lost
def begin(what): say(f"{program} sh -c 'echo be\"\"gun; {what}'\n".encode(), b"begun")
def end():
    say(b"exit 7\n")
    ready()
    say(b"echo ended=$?\n", b"ended=7")
ready()
if scene == "background":  # it stops again, as it reads there
    # No shell between: it would be seen to have stopped before its child has, which then takes
    # what is typed for the shell above, and a CONT to all of them undoes its stop by a read.
    begin(f"exec python3 {sys.argv[0]}.reads")
    until(b"reads")
    say(b"\x1a", b"Stopped")
    ready()
    say(b"bg\n")
    ready()
    while b"Stopped" not in say(b"jobs; echo as''ked\n", b"asked"): ready()
    ready()
    say(b"fg\n", b"continued")
    say(b"hello\n", b"has read hello")
    ready()
    say(b"echo ended=$?\n", b"ended=7")
else:  # a shell; the second time a command of it has the terminal
    stop = {"suspend": b"suspend\n", "stopped below": b"sh -c 'kill -STOP $PPID'\n"}[scene]
    begin("exec " + " ".join(bash))
    ready()
    for _ in range(2):
        say(stop, b"Stopped")
        ready()
        say(b"fg\n")
        ready()
        say(b"echo go''es on\n", b"goes on")
        ready()
    end()
ready()
os.write(terminal, b"exit\n")
os.waitpid(shell, 0)
P
cat >"$SCRATCH/terminal.py.reads" <<'P'
import os, signal
signal.signal(signal.SIGCONT, lambda *_: os.write(1, b"continued\n"))
os.write(1, b"reads\n")
print("has read", os.read(0, 100).decode().strip())
raise SystemExit(7)
P
for scene in background suspend "stopped below"; do
  python3 "$SCRATCH/terminal.py" "$scene" env || fail "bare, $scene"
  python3 "$SCRATCH/terminal.py" "$scene" "$SLUICE" --run-dir "$SCRATCH/run" run -q --summary -- ||
    fail "$scene"
done

# Where no shell waits for its stops, it stays: who continues the program does not know of it.
cat >"$SCRATCH/alone.py" <<'P'
import os, pty, re, select, signal, sys, time
top, terminal = pty.fork()
if top == 0: os.execvpe(sys.argv[1], sys.argv[1:], {**os.environ, "PS1": "READY> "})
def until(pattern):
    seen = b""
    while not re.search(pattern, seen):
        if not select.select([terminal], [], [], 60)[0]: sys.exit(f"no {pattern}: {seen}")
        seen += os.read(terminal, 4096)
    return re.search(pattern, seen)
until(b"READY> ")
os.write(terminal, b"echo i''s $$ .\n")
below = int(until(rb"is (\d+) \.")[1])
def state(pid):
    with open(f"/proc/{pid}/stat") as f: return f.read().rsplit(")", 1)[1].split()[0]
def wait(pid, states):
    end = time.monotonic() + 60
    while state(pid) not in states:
        if time.monotonic() > end: sys.exit(f"{pid} is {state(pid)}, not {states}")
        time.sleep(0.02)
for _ in range(2):
    os.kill(below, signal.SIGSTOP)
    wait(below, "T")
    if below != top: wait(top, "S")
    os.kill(below, signal.SIGCONT)
    wait(below, "SR")
os.write(terminal, b"exit 7\n")
try: until(b"never said")
except OSError: pass  # nobody has the terminal any more
sys.exit(os.waitstatus_to_exitcode(os.waitpid(top, 0)[1]))
P
shell=(bash --norc --noprofile -i)
python3 "$SCRATCH/alone.py" "${shell[@]}"
[ $? = 7 ] || fail "bare, alone at a terminal"
python3 "$SCRATCH/alone.py" "$SLUICE" --run-dir "$SCRATCH/run" run -q --summary -- "${shell[@]}"
[ $? = 7 ] || fail "alone at a terminal"

# A CONT that comes after the child has stopped and before sluice has must end the stop. strace
# makes that moment long.
strace -o "$SCRATCH/trace" true 2>/dev/null || exit 0
rm "$SCRATCH/pid"
strace -o "$SCRATCH/trace" -e trace=wait4 -e inject=wait4:delay_exit=300000 \
  "$SLUICE" --run-dir "$SCRATCH/run" run --summary -- \
  bash -c 'echo $$ >'"$SCRATCH"'/pid; exec sleep 60' 2>/dev/null &
group=$!
wait_for "$SCRATCH/pid"
child=$(cat "$SCRATCH/pid")
parent=$(sed 's/.*) //' "/proc/$child/stat" | cut -d' ' -f2)
sleep 0.5
kill -TSTP "$parent"
sleep 0.1
kill -CONT "$parent"
sleep 1.5
wait_state "$child" S "the child, TSTP and CONT at once"
wait_state "$parent" S "sluice, TSTP and CONT at once"
exit 0
