#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# starves
# timeout: 300
# A metadata server and its storms (mds.bash).
set -u
. test/scripts/mds.bash
mds_experiment mds-protection '[len(d["runs"][k]) for k in "ABCD"]' '[1, 1, 1, 1]'
