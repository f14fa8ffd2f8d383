#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# disks
# sqlite below sluice: whatever a power cut leaves, the database is whole and every transaction that
# was acknowledged is in it, with a write-ahead log and with a rollback journal.
# timeout: 900
. test/crash/common.bash
cuts sqlite-wal ext4 100
cuts sqlite-delete ext4 60
cuts sqlite-wal xfs 20
cuts sqlite-wal btrfs 20
