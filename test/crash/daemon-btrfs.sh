#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# disks
# On btrfs, with the daemon of the log: what it acknowledged survives any power cut, also
# while it is killed and comes back, and while it is stopped and programs go without it.
# timeout: 900
. test/crash/common.bash
cuts durable btrfs
cuts killed btrfs
cuts stopped btrfs
