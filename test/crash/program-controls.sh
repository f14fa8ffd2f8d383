#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# beside
# Real programs whose log nobody recovers, and one that takes an error for a success: each loss is
# seen.
# timeout: 900
. test/crash/common.bash
for mode in app-norecover mail-norecover eio-ignored; do
  cuts $mode ext4 200
done
