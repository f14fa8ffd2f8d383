/* SPDX-License-Identifier: Apache-2.0
 * Sleeps on an eventfd until its barriers are durable, as a program with an event loop does:
 * notify DIR COUNT. C, and all that sluice_order.h needs. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>

#include "sluice_order.h"

enum { files = 4, longest_ms = 20000 };

static void must(int good, char const* what) {
  if (good) return;
  perror(what);
  exit(1);
}

int main(int argc, char** argv) {
  int const count = argc > 2 ? atoi(argv[2]) : 20;
  int fd[files], over = eventfd(0, EFD_NONBLOCK);
  sluice_token const nothing = {0, 0, 0, 0};
  struct pollfd waits = {over, POLLIN, 0};
  uint64_t seen = 0;
  must(over >= 0, "eventfd");
  for (int i = 0; i < files; ++i) {
    char path[4096];
    snprintf(path, sizeof path, "%s/notified%d", argc > 1 ? argv[1] : ".", i);
    fd[i] = open(path, O_RDWR | O_CREAT, 0600);
    must(fd[i] >= 0, path);
  }
  must(sluice_notify(nothing, over) == 0 && read(over, &seen, sizeof seen) == 8 && seen == 1,
       "nothing to wait for");
  for (int i = 0; i < count; ++i) {
    sluice_token tokens[files];
    uint64_t told = 0;
    while (read(over, &seen, sizeof seen) == (ssize_t)sizeof seen) {
    }
    for (int f = 0; f < files; ++f) {
      must(pwrite(fd[f], &i, sizeof i, 4096L * i) == (ssize_t)sizeof i, "pwrite");
      must(sluice_barrier(fd[f], &tokens[f]) == 0, "barrier");
    }
    for (int f = 0; f < files; ++f) must(sluice_notify(tokens[f], over) == 0, "notify");
    while (told < files) {
      must(poll(&waits, 1, longest_ms) == 1, "nobody told");
      if (read(over, &seen, sizeof seen) == (ssize_t)sizeof seen) told += seen;
    }
    for (int f = 0; f < files; ++f) must(sluice_wait(tokens[f]) == 0, "wait");
  }
  must(sluice_notify(nothing, -1) == -1, "no eventfd");
  return 0;
}
