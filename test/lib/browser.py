# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium for the tests of pages. Needs Debian's chromium, chromium-driver and
python3-selenium; who calls this without them is told by MISSING."""
import os
import sys
import tempfile

OWN = None if "SCRATCH" in os.environ else tempfile.TemporaryDirectory(prefix="sluice-test.")
SCRATCH = OWN.name if OWN else os.environ["SCRATCH"]
MISSING = ""
try:
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
except ImportError:
    MISSING = "python3-selenium"
DRIVER, BROWSER = "/usr/bin/chromedriver", "/usr/bin/chromium"
if not MISSING and not (os.access(DRIVER, os.X_OK) and os.access(BROWSER, os.X_OK)):
    MISSING = "chromium and chromium-driver"


def open_browser(width=1200, height=1000, dark=False):
    """Everything it writes goes below $SCRATCH; it asks nobody but who it is sent to."""
    if MISSING:
        print("needs " + MISSING)
        sys.exit(77)
    home = os.path.join(SCRATCH, "browser")
    os.makedirs(home, exist_ok=True)
    os.environ["HOME"] = home
    options = Options()
    options.binary_location = BROWSER
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                 "--no-first-run", "--disable-background-networking", "--disable-sync",
                 "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
                 "--user-data-dir=" + os.path.join(home, "profile"),
                 f"--window-size={width},{height}"):
        options.add_argument(word)
    if dark:
        options.add_argument("--blink-settings=preferredColorScheme=0")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service(DRIVER), options=options)


def complaints(browser):
    """What the console says, warnings too."""
    return [entry["level"] + ": " + entry["message"] for entry in browser.get_log("browser")]


def whole_page(browser, path):
    height = browser.execute_script("return document.documentElement.scrollHeight")
    browser.set_window_size(browser.get_window_size()["width"], min(height + 150, 8000))
    browser.save_screenshot(path)
