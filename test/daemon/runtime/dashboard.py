# SPDX-License-Identifier: Apache-2.0
"""See dashboard.sh. KEEP=DIR keeps the pictures."""
import math
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


def drawing(browser, place, asked):
    """What a drawing says of itself; None while there is none. `asked` is of `chart`."""
    script = ("const canvas = document.querySelector(arguments[0] + ' canvas');"
              "const chart = Chart.getChart(canvas ?? ''); return chart ? " + asked + " : null")
    return browser.execute_script(script, place)


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
    until(20, "no trend of a supply", lambda: drawing(
        browser, "#supplies .card .trend", "chart.data.datasets[0].data.length"))
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
    box.send_keys("HYD metadata@scr")
    check([r[0] for r in jobs(browser)] == ["hydro"], f"filtered: {jobs(browser)}")
    check("1 of" in browser.find_element("id", "job-count").text, "the count")
    box.clear()
    box.send_keys("\ue003x\ue003")  # a real change to nothing
    until(5, "the filter stays", lambda: len(jobs(browser)) >= 4)
    browser.find_element("id", "waiting-only").click()
    check(all(r[8] != "0 %" for r in jobs(browser)), f"only waiting: {jobs(browser)}")
    browser.find_element("id", "waiting-only").click()


def told_under(browser, place):
    """What is said with the pointer in the middle of a drawing."""
    from selenium.webdriver import ActionChains
    ActionChains(browser).move_to_element(css(browser, place + " canvas")[0]).perform()
    said = drawing(browser, place, "chart.tooltip.body?.flatMap(b => b.lines) ?? []")
    return " ".join(said or [])


def points(browser, line):
    """How many points a line has: the page may ask before the node has a third second."""
    asked = f"chart.data.datasets.find(d => d.label === '{line}')?.data.length ?? 0"
    return drawing(browser, "#rates", asked) or 0


def moments_line_up(browser):
    """A moment stands at the same place in all drawings, ticks are round and have a unit."""
    edges = [drawing(browser, place, "[chart.chartArea.left, chart.chartArea.right, "
                     "chart.scales.x.max, chart.scales.x.min]")
             for place in ("#heat", "#rates", "#waiting")]
    check(edges[0] == edges[1] == edges[2], f"the drawings do not line up: {edges}")
    ticks = drawing(browser, "#rates", "chart.scales.y.ticks.map(t => [t.value, t.label])")
    check(len(ticks) >= 3 and all(label.endswith("/s") for _, label in ticks), f"ticks {ticks}")
    step = ticks[1][0] - ticks[0][0]
    check(step / 10 ** math.floor(math.log10(step)) in (1, 2, 5), f"ticks are not round: {ticks}")
    words = drawing(browser, "#rates", "chart.legend.legendItems.map(i => i.text)")
    check({"served", "grant", "demand"} <= set(words), f"the key: {words}")
    labels = drawing(browser, "#waiting", "chart.scales.y.ticks.map(t => t.label)")
    check(all(t.endswith(" calls") for t in labels), f"ticks without a unit: {labels}")


def unknown_is_not_more(browser):
    """Only a demand without a bound is more than the grant; what is not known is a dash."""
    words = [drawing(browser, "#rates", "chart.options.plugins.tooltip.callbacks.label("
                     f"{{dataset: {{label: '{line}'}}, raw: {{y: null}}}})")
             for line in ("served", "grant", "demand")]
    check(words == ["served -", "grant -", "demand more"], f"of nothing: {words}")


def fetched(browser, end=""):
    names = browser.execute_script(
        "return performance.getEntriesByType('resource').map(e => e.name)")
    return [name for name in names if name.endswith(end)]


def card_of(browser, supply):
    return next(c for c in css(browser, "#supplies .card") if supply in c.text.split("\n"))


def history_of_a_click(browser):
    row = next(r for r in css(browser, "#jobs tbody tr")
               if "hydro" in r.text and "metadata@scratch" in r.text)
    row.click()
    check(browser.find_element("id", "past-title").text.startswith("hydro"), "the title")
    browser.find_element("id", "past-minutes").click()
    until(15, "the line of the grant does not grow", lambda: points(browser, "grant") >= 4)
    until(15, "nothing under the pointer", lambda: "served" in told_under(browser, "#rates"))
    until(15, "no heat map of the ops", lambda: drawing(browser, "#heat", "chart.data.labels"))
    names = drawing(browser, "#heat", "chart.data.labels")
    check({"open", "close", "read", "read (bytes)", "open (time)"} <= set(names),
          f"ops of the job: {names}")
    until(15, "nothing under the pointer of the heat map",
          lambda: "/s" in told_under(browser, "#heat"))
    moments_line_up(browser)
    unknown_is_not_more(browser)
    whole_page(browser, os.path.join(KEEP, "dashboard-ops.png"))
    card, heard = card_of(browser, "metadata@scratch"), len(fetched(browser, "now.json"))
    until(10, "nothing new is asked for", lambda: len(fetched(browser, "now.json")) > heard + 1)
    card.click()  # the same element after it was drawn anew
    until(10, "no history of the supply",
          lambda: browser.find_element("id", "past-title").text.endswith("@scratch") and
          points(browser, "capacity"))
    check(not css(browser, "#heat canvas"), "a supply has the heat map of a job")


def little_use_shows(browser):
    """What uses a small part of a capacity is no flat line, and nothing is said to be nothing."""
    def says(supply):
        return card_of(browser, supply).find_element("css selector", ".past").text
    until(20, "a quiet supply", lambda: says("metadata@quiet") == "no calls in the last hour")
    until(20, "a supply of little use", lambda: "at most" in css(
        browser, "#supplies .card[data-id^='data@scratch'] .past")[0].text)
    place = "#supplies .card[data-id^='data@scratch'] .trend"
    top = drawing(browser, place, "chart.scales.y.max")
    check(0 < top < 2 ** 20, f"its trend goes up to {top} B/s")
    css(browser, "#supplies .card[data-id^='data@scratch']")[0].click()
    def key():  # until then it is that of the supply before
        return drawing(browser, "#rates", "chart.legend.legendItems.map(i => i.text)")
    until(15, "no history of little use", lambda: "capacity (above, 1 GiB/s)" in key())
    check(points(browser, "capacity"), "no capacity")
    top = drawing(browser, "#rates", "chart.scales.y.max")
    check(top < 2 ** 20, f"its history goes up to {top} B/s")
    card_of(browser, "metadata@quiet").click()
    until(15, "nothing is not said", lambda: browser.find_element(
        "id", "past-none").text == "no calls in this time")


def fits_a_telephone(browser):
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True})
    history_of_a_click(browser)
    wide = browser.execute_script("return document.documentElement.scrollWidth")
    check(wide <= 390, f"the page is {wide} wide")
    cut = browser.execute_script("""
        return [...document.querySelectorAll('td.left, th.left, .card *')].filter(
            e => e.offsetParent && e.scrollWidth > e.clientWidth + 1 && e.clientWidth)
          .map(e => e.textContent)""")
    check(cut == [], f"text is cut: {cut}")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


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
            little_use_shows(browser)
            fits_a_telephone(browser)
            nothing_from_elsewhere(browser)
            name = "dashboard-dark.png" if dark else "dashboard.png"
            whole_page(browser, os.path.join(KEEP, name))
        finally:
            browser.quit()


main()
