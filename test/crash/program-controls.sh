#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# disks
# Real programs whose log nobody recovers, whose daemon has one rule less, and one that takes an
# error for a success: each loss is seen.
# timeout: 900
. test/crash/common.bash
for mode in app-norecover mail-norecover eio-ignored app-noflush app-notrim app-norevoke \
  app-noremove foreign-unseen half-unseen reuse-unseen again-undated; do
  cuts $mode ext4 200
done
