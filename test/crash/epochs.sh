#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# disks
# Cluster epochs over two to four nodes with a disk each, cut at one moment: a manifest that is
# there names parts that are there, on every node, also while daemons, the controller or whole nodes
# are killed, stopped or lose their power. A gate that opens at once, and a node that only says that
# it has synced, are seen.
# timeout: 900
. test/crash/common.bash
for mode in epochs epochs-log epochs-ordered epochs-killed epochs-lost epochs-log-lost; do
  cuts $mode ext4 40
done
cuts epochs-log xfs 20
cuts epochs-log btrfs 20
cuts gate-open ext4 200
cuts gate-lies ext4 200
