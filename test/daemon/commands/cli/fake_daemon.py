#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fake_daemon.py RUN ANSWERS: a daemon that says what it is told.

It serves RUN/sluiced.sock. ANSWERS is a JSON file, read anew for each request: by verb an answer,
a list of answers (one per page, chosen by "from") or "silence". Requests are appended to
RUN/requests, one per line. It says `ready` once it listens.
"""
import json
import os
import socket
import sys

run, answers = sys.argv[1:3]
path = os.path.join(run, "sluiced.sock")
if os.path.exists(path):
    os.unlink(path)
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind(path)
os.chmod(path, 0o666)
listener.listen(64)
print("ready", flush=True)
silent = []
while True:
    peer, _ = listener.accept()
    packet = peer.recv(65536)
    if not packet:
        peer.close()
        continue
    request = json.loads(packet)
    with open(os.path.join(run, "requests"), "a", encoding="utf-8") as log:
        log.write(json.dumps(request) + "\n")
    with open(answers, encoding="utf-8") as f:
        known = json.load(f)
    answer = known.get(request["verb"], {"error": "no such verb", "status": 2})
    if isinstance(answer, list):
        answer = answer[request.get("from", 0)]
    if answer == "silence":
        silent.append(peer)
        continue
    try:
        peer.send(json.dumps(answer).encode())
    except OSError:
        pass  # whoever asked has gone
    peer.close()
