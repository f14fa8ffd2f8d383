#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One number out of the report of `sluice run --report FILE`.

report.py FILE channel NAME FIELD    of the channel (FIELD: calls amount delayed waited_ns …)
report.py FILE call NAME FIELD       of one intercepted call, 0 when it was never made
report.py FILE op NAME FIELD         the sum over the calls of an op (open, read, stat …)
report.py FILE passthrough REASON calls
report.py FILE processes FIELD       attached or running
"""
import json
import sys


def main():
    path, kind, *rest = sys.argv[1:]
    with open(path) as f:
        report = json.load(f)
    if kind == "processes":
        return report["processes"][rest[0]]
    name, field = rest
    if kind == "channel":
        found = [c[field] for c in report["channels"] if c["name"] == name]
        if not found:
            sys.exit(f"no channel {name} among {[c['name'] for c in report['channels']]}")
    elif kind == "passthrough":
        found = [r["calls"] for r in report.get("passthrough", []) if r["reason"] == name]
    else:
        found = [c[field] for c in report["calls"] if c[kind] == name]
    return sum(found)


print(main())
