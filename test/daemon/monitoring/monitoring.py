#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks Prometheus for all that alerts and dashboard ask: PROMETHEUS GRAFANA_JSON METRICS_DEF."""
import itertools
import json
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

WITHIN_S = 300  # how long a condition may take on a busy machine


def get(base, path, **query):
    url = f"{base}/api/v1/{path}?{urllib.parse.urlencode(query)}"
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return json.load(answer)["data"]
    except urllib.error.HTTPError as error:
        sys.exit(f"{query or path}: {error.read().decode()}")


def wait_until(what, condition):
    end = time.monotonic() + WITHIN_S
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"not within {WITHIN_S} s: {what}")
        time.sleep(0.2)


def check_names(expr, rows):
    for name in re.findall(r"\bsluice_(\w+)", expr):
        if name not in rows and name.removesuffix("_bucket") not in rows:
            sys.exit(f"{expr}: there is no sluice_{name}")


def check_rules(base, rows):
    def rules():
        return [r for g in get(base, "rules")["groups"] for r in g["rules"]]

    wait_until("rules evaluated", lambda: all(r["health"] != "unknown" for r in rules()))
    if not rules():
        sys.exit("no rules")
    for rule in rules():
        if rule["health"] != "ok":
            sys.exit(f"{rule['name']}: {rule.get('lastError')}")
        check_names(rule["query"], rows)
        for name in re.findall(r"\bsluice_\w+", rule["query"]):
            wait_until(f"data of {name}", lambda n=name: get(base, "query", query=n)["result"])


def check_shape(board):
    """What Grafana needs of a dashboard in its classic schema."""
    assert isinstance(board["schemaVersion"], int) and board["title"] and board["uid"]
    kinds = {v["name"]: v["type"] for v in board["templating"]["list"]}
    assert kinds["datasource"] == "datasource"
    panels = board["panels"]
    assert panels and len({p["id"] for p in panels}) == len(panels), "ids are not unique"
    for p in panels:
        at = p["gridPos"]
        assert 0 <= at["x"] and at["x"] + at["w"] <= 24 and at["w"] > 0 and at["h"] > 0, p["title"]
        assert p["fieldConfig"]["defaults"]["unit"], p["title"]
        for user in (p, *p["targets"]):
            assert user["datasource"] == {"type": "prometheus", "uid": "${datasource}"}, p["title"]
        refs = [t["refId"] for t in p["targets"]]
        assert refs and len(set(refs)) == len(refs), p["title"]
    for p, q in itertools.combinations(panels, 2):
        a, b = p["gridPos"], q["gridPos"]
        apart = (a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"] or
                 a["y"] + a["h"] <= b["y"] or b["y"] + b["h"] <= a["y"])
        assert apart, f"{p['title']} lies on {q['title']}"


def check_panels(base, board, rows):
    for panel in board["panels"]:
        for target in panel["targets"]:
            expr = target["expr"].replace("$target", ".*").replace("$__rate_interval", "1m")
            check_names(expr, rows)
            get(base, "query", query=expr)
            wait_until(f"data of: {expr}", lambda q=expr: get(base, "query", query=q)["result"])


base, grafana, table = sys.argv[1:]
with open(grafana) as f:
    board = json.load(f)
with open(table) as f:
    rows = set(re.findall(r"^METRIC\((\w+),", f.read(), re.M))
check_shape(board)
check_rules(base, rows)
check_panels(base, board, rows)
wait_until("the job of the node is delayed",
           lambda: get(base, "query", query="sluice_delayed_requests_total > 0")["result"])
