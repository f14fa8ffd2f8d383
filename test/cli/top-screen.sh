#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# top on a terminal: draws, obeys keys and a new size, survives a silent daemon, and gives the
# terminal back as it was, when the user quits and when a signal ends it.
set -u
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/fake.bash"
need python3
fake=
trap 'kill $fake 2>/dev/null; rm -rf "$SCRATCH"' EXIT
stream() { # SUPPLY SERVED WAITERS
  echo "{\"supply\": \"$1\", \"demand\": null, \"grant\": 500, \"served\": $2,
    \"waiting\": $3, \"waiters\": $3, \"blocked\": 0.$3}"
}
job() { # NAME USER STREAM
  echo "{\"job\": \"$1\", \"user\": \"$2\", \"class\": \"gold\", \"nodes\": 1, \"processes\": 1,
    \"escaped\": [], \"state\": \"running\", \"override\": null, \"streams\": [$3]}"
}
many=$(for i in $(seq 60); do echo "$(job "many$i" zoe "$(stream data@home 0 0)"),"; done)
answer hello '{"role": "cluster", "name": "ctl"}'
answer top "{\"cycle\": 5, \"supplies\": [{\"supply\": \"metadata@scratch\", \"capacity\": 1000,
    \"granted\": 500, \"served\": 250, \"demand\": null}],
  \"jobs\": [$many $(job calm ann "$(stream metadata@scratch 400 0)"),
             $(job thirsty bob "$(stream metadata@scratch 100 5)")],
  \"nodes\": [{\"name\": \"n7\", \"role\": \"node\", \"state\": \"gone\", \"age_s\": 9, \"jobs\": 1,
               \"served\": {}, \"granted\": {}}], \"next\": null}"
start_fake
python3 - "$SLUICE" "$RUN" "$fake" <<'P'
import fcntl, os, pty, re, select, signal, struct, subprocess, sys, termios, time

sluice, run, fake = sys.argv[1], sys.argv[2], int(sys.argv[3])


class Screen:
    """A terminal that remembers the bytes drawn since the last look."""

    def __init__(self, rows=24, columns=80):
        self.mine, theirs = pty.openpty()
        self.size(rows, columns)
        self.before = termios.tcgetattr(theirs)
        self.theirs = theirs
        self.text = ""
        self.child = subprocess.Popen(
            [sluice, "--run-dir", run, "top", "-i", "0.5"], stdin=theirs, stdout=theirs,
            stderr=theirs, env=dict(os.environ, TERM="xterm"), start_new_session=True)

    def size(self, rows, columns):
        fcntl.ioctl(self.mine, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def wait(self, pattern, seconds=20):
        """Reads until the pattern was drawn; what was drawn before it is forgotten. Only what has
        changed is drawn, so now and then all of it is asked for."""
        end = time.monotonic() + seconds
        while True:
            plain = re.sub(r"\x1b\[[0-9;]*[mb]|\x1b\(B", "", self.text)
            plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[()][0-9A-B]|\x1b[=>]", " ", plain)
            if re.search(pattern, plain, re.S):
                self.text = ""
                return
            if time.monotonic() > end:
                sys.exit(f"FAILED: /{pattern}/ was not drawn, but: {plain!r}")
            if select.select([self.mine], [], [], 0.2)[0]:
                self.text += os.read(self.mine, 65536).decode(errors="replace")
            elif self.child.poll() is not None:
                sys.exit(f"FAILED: it ended before /{pattern}/: {self.text!r}")
            else:
                self.text = ""
                self.key("\x0c")

    def key(self, keys):
        os.write(self.mine, keys.encode())

    def end(self, wanted):
        """It ends as wanted and the terminal is what it was."""
        raw, end = "", time.monotonic() + 20
        while self.child.poll() is None and time.monotonic() < end:
            if select.select([self.mine], [], [], 0.1)[0]:
                raw += os.read(self.mine, 65536).decode(errors="replace")
        while select.select([self.mine], [], [], 0.1)[0]:
            raw += os.read(self.mine, 65536).decode(errors="replace")
        if self.child.poll() is None:
            self.child.kill()
            sys.exit("FAILED: it does not end")
        if self.child.returncode != wanted:
            sys.exit(f"FAILED: status {self.child.returncode}, wanted {wanted}")
        if "\x1b[?1049l" not in raw:
            sys.exit(f"FAILED: the terminal was not given back: {raw!r}")
        if termios.tcgetattr(self.theirs) != self.before:
            sys.exit("FAILED: the modes of the terminal are others than before")
        os.close(self.mine), os.close(self.theirs)


s = Screen()
s.wait(r"cluster ctl")
s.wait(r"\[#+=+-+\].*JOB.*thirsty.*calm.*many")  # by waiting
s.key("s")
s.wait(r"by served")
s.wait(r"calm.*thirsty")
s.key("r")
s.wait(r"reversed")
s.wait(r"many.*rows 1-")
s.key("\x1b[F\x1bOF")  # End, however this terminal says it
s.wait(r"62 of 62")
s.key("/job=thir\n")
s.wait(r"/job=thir")
s.wait(r"JOB\s+USER[^~]*thirsty(?!.*many)")
s.key("n")
s.wait(r"NODE +ROLE")
s.key("n/\x1b")
s.wait(r"many")
s.key("?")
s.wait(r"less often")
s.key("x")
s.wait(r"JOB")
s.size(12, 50)
s.child.send_signal(signal.SIGWINCH)
s.wait(r"JOB")
s.wait(r"metadata@scratch served")  # no room for a bar
os.kill(fake, signal.SIGSTOP)
s.wait(r"no answer for")
os.kill(fake, signal.SIGCONT)
s.key("q")
s.end(0)
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    s = Screen()
    s.wait(r"thirsty")
    s.child.send_signal(number)
    s.end(-number)
P
