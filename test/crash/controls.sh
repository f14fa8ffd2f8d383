#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# disks
# What loses data must be seen to: no sync at all, the log as a barrier beside a home that is
# written at once, an acknowledgement without a flush, and a log that nobody recovers.
# timeout: 900
. test/crash/common.bash
cuts none ext4
cuts ack ext4
cuts jordhome ext4
cuts norecover ext4
