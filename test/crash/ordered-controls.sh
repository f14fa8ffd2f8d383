#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# disks
# Barriers that no change waits for: home is ahead of the log, and that must be seen.
# timeout: 900
. test/crash/common.bash
cuts nogate ext4
cuts nogate xfs
