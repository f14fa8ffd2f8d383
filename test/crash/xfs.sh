#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# disks
# On xfs: what was acknowledged survives any power cut, in order, with fsync and through the log,
# and recovering twice, or being cut off while recovering, changes nothing.
# timeout: 900
. test/crash/common.bash
cuts fsync xfs
cuts jdurhome xfs
