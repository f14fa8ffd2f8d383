#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# disks
# A daemon that does not flush, revoke, or tell of removed files, a program that does not mark what
# it synced alone, and a log that nobody replays: each loss must be seen.
# timeout: 900
. test/crash/common.bash
for mode in noreplay noflush norevoke noremove nomark novoid; do
  cuts $mode ext4
done
