#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# disks
# Disks that refuse reads, writes and flushes, of home and of the log, at any time, in recovery too:
# an fsync that returned 0 is there after recovery, and an error was told.
# timeout: 900
. test/crash/common.bash
cuts eio-home ext4 80
cuts eio-log ext4 80
cuts eio-recover ext4 60
cuts eio-sqlite ext4 40
cuts eio-killed ext4 40
cuts each-eio-sqlite ext4 60
