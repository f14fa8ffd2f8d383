#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# starves
# timeout: 300
# A capacity that nobody wrote, and a load that comes and goes (mds.bash).
set -u
. test/scripts/mds.bash
mds_experiment mds-steering \
  '[r[0] for r in d["rows"]] + [len(d["moments"]), len(d["capacity"]) > 50]' \
  "['alone', 300, 'steered', 3, True]" --phase 2 --numbers 300
