#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A report in headless Chromium: no word on the console, no request but for the file, values under
the pointer, a list that unfolds, light, dark and on paper; and a hostile result that stays text.

KEEP=DIR keeps the pictures.
"""
import base64
import json
import math
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../lib"))
from browser import SCRATCH, complaints, open_browser, whole_page  # noqa: E402

KEEP = os.environ.get("KEEP", SCRATCH)
X = ("</script><script>document.title='owned'</script><img src=x onerror=document.title='owned'>"
     "\"'`--><svg onload=alert(1)>")


def write(name, content):
    path = os.path.join(SCRATCH, name)
    with open(path, "w", encoding="utf-8") as f:
        json.dump(content, f)
    return path


def sample():
    """Four jobs, half an hour: one of them wants more than it gets every other five minutes."""
    n, rows = 1800, []
    for k, job in enumerate(("hydro", "train", "backup", "post")):
        wave = [1000 * (k + 1) * (1 + math.sin(t / 120 + k)) for t in range(n)]
        waits = [1 if job == "train" and t // 300 % 2 else 0 for t in range(n)]
        supply = {"job": job, "supply": "metadata@scratch"}
        rows += [dict(supply, what="served", unit="ops", values=wave),
                 dict(supply, what="grant", unit="ops", values=[v * 1.1 for v in wave]),
                 dict(supply, what="demand", unit="ops",
                      values=[None if w else v for v, w in zip(wave, waits)]),
                 dict(supply, what="limit", unit="ops", values=[9000] * n),
                 dict(supply, what="blocked", unit="s", values=waits)]
        for op, part in (("open", .3), ("getattr", .7)):
            rows += [{"job": job, "op": op, "what": "done", "unit": "ops",
                      "values": [v * part for v in wave]},
                     {"job": job, "op": op, "what": "waited", "unit": "s",
                      "values": [w * part for w in waits]}]
    rows.append({"supply": "metadata@scratch", "what": "capacity", "unit": "ops",
                 "values": [20000] * n})
    return {"version": 1, "kind": "replay", "elapsed_s": n,
            "timeline": {"start_unix_s": 1.7e9, "interval_s": 1, "rows": rows},
            "rules": [{"channel": "metadata@scratch", "text": "capacity 20k/s", "file": "site.json",
                       "line": 14}],
            "paths": [{"path": f"/scratch/{i}", "calls": 100 - i} for i in range(30)]}


def hostile():
    rows = [{"job": X, "op": X, "what": w, "unit": X, "values": [1, 2]}
            for w in ("done", "waited", "lag")]
    rows += [{"job": X, "supply": X, "what": w, "unit": X, "values": [1, 2]}
             for w in ("served", "demand", "grant", "limit", "blocked", "capacity")]
    return {"version": 1, "job": X, "command": [X], "timeline": {"interval_s": 1, "rows": rows},
            "rules": [{"channel": X, "text": X, "file": X}], "facts": [[X, X]],
            "calls": [{"call": X, "op": X, "calls": 1}], "paths": [{"path": X}],
            "jobs": [{"job": X, "class": X, "user": X, "started_s": 0},
                     {"job": X + "2", "started_s": 1}]}


def render(*results):
    page = os.path.join(SCRATCH, "page.html")
    subprocess.run([os.environ["SLUICE"], "report", *results, "-o", page], check=True)
    return "file://" + page


def check(truth, what):
    if not truth:
        sys.exit("FAILED: " + what)


def requests(browser):
    """All that the page fetched beside itself."""
    return browser.execute_script(
        "return performance.getEntriesByType('resource').map(e => e.name)")


def look_at_sample(browser):
    browser.get(render(write("a.json", sample())))
    said = browser.find_element("id", "said").text
    for words in ("900 s of 1", "were spent waiting for metadata tokens of scratch",
                  "site.json line 14", "job train", "When:", "post 36 %"):
        check(words in said, f"the summary lacks {words!r}: {said}")
    charts = browser.find_elements("css selector", "svg.chart")
    check(len(charts) >= 8, f"{len(charts)} drawings")
    heat = charts[0]
    from selenium.webdriver import ActionChains
    browser.execute_script("arguments[0].scrollIntoView()", heat)
    ActionChains(browser).move_to_element(heat).perform()
    readout = browser.find_element("css selector", "svg.chart + .readout").text
    check("getattr" in readout and "/s" in readout and ":" in readout, f"pointer: {readout!r}")
    folded = browser.find_element("css selector", "details")
    rows = folded.find_elements("css selector", "tbody tr")
    shown = "return arguments[0].checkVisibility()"
    check(not browser.execute_script(shown, rows[0]), "the rest of the paths is not folded")
    folded.find_element("css selector", "summary").click()
    check(browser.execute_script(shown, rows[0]), "a click does not unfold")
    check(requests(browser) == [], f"fetched {requests(browser)}")
    check(complaints(browser) == [], "the console says something")
    whole_page(browser, os.path.join(KEEP, "report.png"))
    paper = browser.execute_cdp_cmd("Page.printToPDF", {})
    with open(os.path.join(KEEP, "report.pdf"), "wb") as f:
        f.write(base64.b64decode(paper["data"]))


def look_at_hostile(browser):
    path = write("h.json", hostile())
    for results in ((path,), (path, path)):
        browser.get(render(*results))
        check(browser.title.startswith("sluice: run of </script>"), f"title {browser.title!r}")
        check(browser.find_elements("css selector", "img, iframe, object, a") == [], "new elements")
        check(len(browser.find_elements("css selector", "script")) == 1, "another script")
        check(requests(browser) == [], f"fetched {requests(browser)}")
        check(complaints(browser) == [], "the console says something")


def main():
    for dark in (False, True):
        browser = open_browser(dark=dark)
        try:
            look_at_sample(browser)
            back = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
            check((back == "rgb(255, 255, 255)") != dark, f"dark {dark}: background {back}")
            look_at_hostile(browser)
        finally:
            browser.quit()


main()
