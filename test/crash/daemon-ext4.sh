#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# disks
# On ext4, with the daemon of the log: what it acknowledged survives any power cut, also while it is
# killed and comes back, and while it is stopped and programs go without it, by fsync or by sync.
# timeout: 900
. test/crash/common.bash
cuts durable ext4
cuts killed ext4
cuts stopped ext4
cuts synced ext4
