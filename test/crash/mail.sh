#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# disks
# Mail delivered to a Maildir below sluice (tmp, fsync, link, fsync of the directory), and git
# commits: what was acknowledged is there after a power cut, whole, and git fsck has nothing to say.
# timeout: 900
. test/crash/common.bash
cuts maildir ext4 80
cuts git ext4 40
