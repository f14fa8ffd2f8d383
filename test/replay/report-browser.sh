#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A report in headless Chromium: no word on the console, no request but for the file, values under
# the pointer, a list that unfolds, light, dark and on paper; and a hostile result that stays text.
set -u
. "$(dirname "$0")/../lib.sh"
[ -x /usr/bin/python3 ] || skip "needs /usr/bin/python3"
PYTHONPATH=$(dirname "$0")/.. exec /usr/bin/python3 "$(dirname "$0")/report-browser.py"
