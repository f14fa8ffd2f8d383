#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# disks
# Files written in every way below the real stage and daemon, also on a disk without a cache, while
# programs or the daemon are killed, others write to the same file, inode numbers come back, and the
# disk is full; while the daemon stands aside and comes back; and on two file systems of one log.
# timeout: 900
. test/crash/common.bash
cuts files ext4 80
cuts through ext4 20
cuts app-killed ext4 40
cuts half-said ext4 20
cuts weighed ext4 60
cuts weighed xfs 20
cuts weighed btrfs 20
cuts weighed-killed ext4 30
cuts each ext4 40
cuts each xfs 20
cuts each-gone ext4 60
cuts each-gone xfs 30
cuts whole ext4 30
cuts weighed-delete ext4 30
cuts again ext4 60
cuts log-killed ext4 30
cuts foreign ext4 30
cuts reuse ext4 50
cuts full ext4 40
cuts homes ext4 40
cuts homes-sqlite ext4 30
cuts files xfs 20
cuts files btrfs 20
