// SPDX-License-Identifier: Apache-2.0
// A mount table as the kernel prints it, with bind mounts, an odd name and a broken line.
#pragma once

namespace sluice::test {

inline constexpr char const* table =
    "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
    "23 27 0:22 / /sys rw shared:7 - sysfs sysfs rw\n"
    "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
    "40 27 0:50 / /scratch rw - lustre mds@tcp:/fs rw\n"
    "41 27 0:50 /project/a /home/a/work rw master:3 - lustre mds@tcp:/fs rw\n"
    "42 27 0:50 /project/ab /mnt/ab rw - lustre mds@tcp:/fs rw\n"
    "43 27 254:1 / /with\\040blank rw - xfs /dev/vdb rw\n"
    "broken line\n"
    "44 27 x:1 / /bad rw - xfs /dev/vdc rw\n"
    "45 27 0:23 / /dev/shm rw - tmpfs tmpfs rw";

}  // namespace sluice::test
