#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# disks
# On ext4, with barriers instead of waits: no power cut leaves a later change of a stream without
# what a barrier stands before, and what was waited for is there; also while the daemon is killed
# and comes back and while it is stopped, and its programs make good what it did not. Nor of two
# processes that write in turn, where the stream is the job.
# timeout: 900
. test/crash/common.bash
cuts ordered ext4
cuts okilled ext4
cuts ostopped ext4
cuts stage ext4 400
cuts relay ext4 60
