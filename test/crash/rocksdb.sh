#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# disks
# db_bench --sync=1 below sluice: after a power cut every write that it counted is in the database.
# timeout: 900
. test/crash/common.bash
cuts rocksdb ext4 80
