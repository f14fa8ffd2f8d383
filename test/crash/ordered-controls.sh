#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# disks
# Barriers that no change waits for, or none of another process: home is ahead of the log, and that
# must be seen.
# timeout: 900
. test/crash/common.bash
cuts nogate ext4
cuts nogate xfs
cuts relay-apart ext4 1500
