# SPDX-License-Identifier: Apache-2.0
"""See dashboard.sh. KEEP=DIR keeps the pictures."""
import os
import sys
import time
from urllib.parse import urlsplit

from browser import complaints, open_browser, whole_page

URL, KEEP = os.environ["URL"], os.environ.get("KEEP", os.environ["SCRATCH"])


def check(truth, what):
    if not truth:
        sys.exit("FAILED: " + what)


def until(seconds, what, truth):
    end = time.monotonic() + seconds
    while not truth():
        check(time.monotonic() < end, what)
        time.sleep(0.1)


def css(browser, selector):
    return browser.find_elements("css selector", selector)


def texts(browser, selector):
    """At once: a drawing that is drawn anew between two questions has none of the old elements."""
    script = "return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)"
    return browser.execute_script(script, selector)


def jobs(browser):
    script = """return [...document.querySelectorAll('#jobs tbody tr')]
                .map(tr => [...tr.cells].map(td => td.textContent))"""
    return browser.execute_script(script)


def sums_without_a_key(browser):
    parts = urlsplit(URL)
    browser.get(f"{parts.scheme}://{parts.netloc}/")
    until(10, "no supply is shown", lambda: css(browser, "#supplies .card"))
    check(not browser.find_element("id", "jobs-section").is_displayed(), "jobs without a key")
    check("sluice report --dashboard" in browser.find_element("id", "hint").text, "no hint")
    check(jobs(browser) == [], "rows of jobs without a key")
    check(len(css(browser, "#classes tbody tr")) >= 2, "no classes")


def jobs_with_a_key(browser):
    browser.get("about:blank")
    browser.get(URL)
    until(10, "no jobs", lambda: len(jobs(browser)) >= 4)
    check("#" not in browser.current_url, "the key stays in the address")
    names = {row[0] for row in jobs(browser)}
    check({"hydro", "backup"} <= names, f"jobs {names}")
    until(10, "nobody waits", lambda: any(r[8] == "100 %" for r in jobs(browser)))


def sort_and_filter(browser):
    head = "#jobs th[data-key=%s] button"
    css(browser, head % "served")[0].click()
    rows = [r for r in jobs(browser) if r[3] == "metadata@scratch"]
    check(rows[0][0] == "hydro", f"by served, most first: {rows}")
    check(css(browser, "#jobs th[data-key=served]")[0].get_attribute("aria-sort") == "descending",
          "the order is not told")
    css(browser, head % "job")[0].click()
    check(jobs(browser)[0][0] == "backup", f"by name: {jobs(browser)[0]}")
    box = browser.find_element("id", "filter")
    box.send_keys("HYD metadata")
    check([r[0] for r in jobs(browser)] == ["hydro"], f"filtered: {jobs(browser)}")
    check("1 of" in browser.find_element("id", "job-count").text, "the count")
    box.clear()
    box.send_keys("\ue003x\ue003")  # a real change to nothing
    until(5, "the filter stays", lambda: len(jobs(browser)) >= 4)
    browser.find_element("id", "waiting-only").click()
    check(all(r[8] != "0 %" for r in jobs(browser)), f"only waiting: {jobs(browser)}")
    browser.find_element("id", "waiting-only").click()


def told_under(browser, drawing, readout):
    """What the page says with the pointer on a drawing; it is drawn anew now and then."""
    from selenium.common.exceptions import StaleElementReferenceException
    from selenium.webdriver import ActionChains
    try:
        ActionChains(browser).move_to_element(css(browser, drawing)[-1]).perform()
        return css(browser, readout)[0].text
    except (StaleElementReferenceException, IndexError):
        return ""


def points(browser, line):
    """How many points a drawn line has: the page may ask before the node has a third second."""
    script = "return document.querySelector(arguments[0])?.getAttribute('d') ?? ''"
    return browser.execute_script(script, "#past-charts " + line).count("L") + 1


def fetched(browser, end=""):
    names = browser.execute_script(
        "return performance.getEntriesByType('resource').map(e => e.name)")
    return [name for name in names if name.endswith(end)]


def history_of_a_click(browser):
    row = next(r for r in css(browser, "#jobs tbody tr")
               if "hydro" in r.text and "metadata" in r.text)
    row.click()
    check(browser.find_element("id", "past-title").text.startswith("hydro"), "the title")
    browser.find_element("id", "past-minutes").click()
    until(15, "no drawing of the history", lambda: len(css(browser, "#past-charts svg")) == 2)
    until(15, "the line of the grant does not grow",
          lambda: points(browser, "path.line.grant") >= 3)
    until(15, "nothing under the pointer", lambda: "served" in told_under(
        browser, "#past-charts div:first-child svg", "#past-charts .readout"))
    until(15, "no heatmap of the ops", lambda: css(browser, "#heat rect.heat"))
    names = texts(browser, "#heat text.label")
    check({"open", "close", "read", "read (bytes)"} <= set(names), f"ops of the job: {names}")
    until(15, "nothing under the pointer of the heatmap", lambda: "/s" in told_under(
        browser, "#heat rect.heat", "#past-ops .readout"))
    whole_page(browser, os.path.join(KEEP, "dashboard-ops.png"))
    card, heard = css(browser, "#supplies .card")[0], len(fetched(browser, "now.json"))
    until(10, "nothing new is asked for", lambda: len(fetched(browser, "now.json")) > heard + 1)
    card.click()  # the same element after it was drawn anew
    until(10, "no history of the supply",
          lambda: browser.find_element("id", "past-title").text.endswith("@scratch") and
          css(browser, "#past-charts path.line.capacity"))
    check(not css(browser, "#heat"), "a supply has the heatmap of a job")


def nothing_from_elsewhere(browser):
    origin = "{0.scheme}://{0.netloc}/".format(urlsplit(URL))
    names = fetched(browser)
    check(names and all(name.startswith(origin) for name in names), f"fetched {names}")
    check(complaints(browser) == [], "the console says something")


def main():
    for dark in (False, True):
        browser = open_browser(dark=dark)
        try:
            sums_without_a_key(browser)
            jobs_with_a_key(browser)
            sort_and_filter(browser)
            history_of_a_click(browser)
            nothing_from_elsewhere(browser)
            name = "dashboard-dark.png" if dark else "dashboard.png"
            whole_page(browser, os.path.join(KEEP, name))
        finally:
            browser.quit()


main()
