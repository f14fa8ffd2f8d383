/* SPDX-License-Identifier: Apache-2.0
 * For programs that know about storage order: an fsync that does not wait, and a wait for it later.
 * All symbols are weak: without sluice, or outside of its targets, a barrier is an fsync and there
 * is nothing to wait for (but see sluice_epoch_wait). Nothing to link. A barrier stands before
 * every later write, truncation, creation, rename, removal and change of attributes that the
 * process makes in an ordered or durable target: none of that can survive a power cut without it.
 * Stores into mappings, io_uring and Linux AIO do not wait for barriers.
 */
#ifndef SLUICE_ORDER_H
#define SLUICE_ORDER_H

#include <errno.h>
#include <stdint.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Plain data. May be given to another process of the same job on the same node. All zero: there is
 * nothing to wait for. */
typedef struct sluice_token {
  unsigned slot, user, unsure, failed;
} sluice_token;

int sluice_order_barrier(int fd, sluice_token* token) __attribute__((weak));
int sluice_order_wait(sluice_token const* token) __attribute__((weak));
int sluice_order_after(sluice_token const* token) __attribute__((weak));
int sluice_order_notify(sluice_token const* token, int eventfd) __attribute__((weak));
int sluice_order_epoch(int fd) __attribute__((weak));

/* What was written to fd, a file or a directory, comes before what this process changes from now
 * on. 0, or -1 with errno as fsync: an error of an earlier barrier of that file, too. */
static inline int sluice_barrier(int fd, sluice_token* token) {
  sluice_token const nothing = {0, 0, 0, 0};
  *token = nothing;
  return sluice_order_barrier ? sluice_order_barrier(fd, token) : fsync(fd);
}

/* Returns when it is durable: 0; or -1 with errno, when it cannot be. */
static inline int sluice_wait(sluice_token token) {
  return sluice_order_wait ? sluice_order_wait(&token) : 0;
}

/* The next change of this process waits for the barrier of another one, who sent the token. 0; or
 * -1 with errno, when it failed already. */
static inline int sluice_after(sluice_token token) {
  return sluice_order_after ? sluice_order_after(&token) : 0;
}

/* Adds 1 to the eventfd when sluice_wait has nothing to wait for any more: 0; or -1 with errno. Now
 * and then it comes early, when nobody will tell later, and sluice_wait syncs the file itself;
 * late, when the log daemon was killed or stands still: so give poll a limit, and call sluice_wait
 * then, which notices. The eventfd may be closed meanwhile. */
static inline int sluice_notify(sluice_token token, int eventfd) {
  uint64_t const one = 1;
  if (sluice_order_notify) return sluice_order_notify(&token, eventfd);
  return write(eventfd, &one, sizeof one) == sizeof one ? 0 : -1;
}

/* Returns when all is durable that the job changed before, on all its nodes, in the target that fd,
 * a file or a directory, lies in: 0. Or -1 with errno: EIO, something of it is not, or may not be;
 * ETIMEDOUT, nobody has answered within the target's "patience"; ENOTSUP, without sluice or where
 * the target has no "after": then nobody speaks for the other nodes, so sync as if there were no
 * sluice. */
static inline int sluice_epoch_wait(int fd) {
  if (sluice_order_epoch) return sluice_order_epoch(fd);
  errno = ENOTSUP;
  return -1;
}

#ifdef __cplusplus
}
#endif

#endif
