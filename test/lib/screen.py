# SPDX-License-Identifier: Apache-2.0
"""A program on a terminal of its own: what it draws is waited for, keys are pressed."""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time


class Screen:
    """A terminal that remembers the bytes drawn since the last look."""

    def __init__(self, command, rows=24, columns=80):
        self.mine, theirs = pty.openpty()
        self.size(rows, columns)
        self.before = termios.tcgetattr(theirs)
        self.theirs = theirs
        self.text = ""
        self.child = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs,
                                      env=dict(os.environ, TERM="xterm"), start_new_session=True)

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
