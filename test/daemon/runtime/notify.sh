#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The service manager hears of the start, that we live, of reloads and of the end.
set -u
. test/lib/site.bash
policy "$SCRATCH/p.json"
exec python3 - "$SLUICED" "$SCRATCH" <<'END'
import os, signal, socket, subprocess, sys, time
sluiced, scratch = sys.argv[1:]
manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
manager.bind(scratch + "/notify")
manager.settimeout(20)

def next_of(key):
    """The next message with this key; others pass by."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        text = manager.recv(4096).decode()
        if text.startswith(key + "="):
            return text
    sys.exit(f"no {key}")

for role, more in (("cluster", ["--listen", "tcp://127.0.0.1:*", "--plain"]), ("node", [])):
    env = dict(os.environ, NOTIFY_SOCKET=scratch + "/notify", WATCHDOG_USEC="300000")
    daemon = subprocess.Popen([sluiced, "--role", role, "--policy", scratch + "/p.json",
                               "--run-dir", f"{scratch}/run-{role}", *more], env=env)
    try:
        next_of("READY")
        for _ in range(3):
            next_of("WATCHDOG")
        daemon.send_signal(signal.SIGHUP)
        assert "MONOTONIC_USEC=" in next_of("RELOADING")
        next_of("READY")
        daemon.send_signal(signal.SIGSTOP)
        time.sleep(0.3)
        manager.setblocking(False)
        try:
            while True:
                manager.recv(4096)
        except BlockingIOError:
            pass
        time.sleep(0.5)
        try:
            sys.exit(f"a stopped daemon said {manager.recv(4096)}")
        except BlockingIOError:
            pass
        manager.settimeout(20)
        daemon.send_signal(signal.SIGCONT)
        next_of("WATCHDOG")
        daemon.send_signal(signal.SIGTERM)
        next_of("STOPPING")
        assert daemon.wait(20) == 0
    finally:
        daemon.kill()
        daemon.wait()
END
