#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# disks
# On btrfs, with barriers instead of waits: no power cut leaves a later change of a stream without
# what a barrier stands before, and what was waited for is there; also while the daemon is killed
# and comes back, and its programs make good what it did not.
# timeout: 900
. test/crash/common.bash
cuts ordered btrfs
cuts okilled btrfs
cuts stage btrfs
