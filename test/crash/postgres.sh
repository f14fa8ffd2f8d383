#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# disks
# PostgreSQL below sluice: after a power cut it recovers, its index and page checksums are right,
# and every insert that was acknowledged is there.
# timeout: 900
. test/crash/common.bash
cuts postgres ext4 12
