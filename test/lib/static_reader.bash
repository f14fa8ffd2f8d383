# SPDX-License-Identifier: Apache-2.0
# static_reader FILE: makes a static program that reads 4 MiB and then waits for its input. No
# library is ever loaded into it, so its reads escape.
static_reader() {
  need gcc
  cat >"$SCRATCH/busy.c" <<'END'
#include <fcntl.h>
#include <unistd.h>
int main(void) {
  static char room[1 << 16];
  int const fd = open("/dev/zero", O_RDONLY);
  for (int i = 0; i < 64; ++i)
    if (read(fd, room, sizeof room) < 0) return 1;
  return read(0, room, 1) < 0;
}
END
  gcc -static "$SCRATCH/busy.c" -o "$1" || skip 'needs a static libc'
}
