// SPDX-License-Identifier: Apache-2.0
// Announcing a job to the daemon of a node: a file in RUN/scheduler, which works although the
// daemon may be dead, and a message that it has changed.
#pragma once

#include <stddef.h>
#include <sys/types.h>

struct sluice_job {
  unsigned id;
  uid_t uid;
  unsigned nodes;
  char const* qos_class;  // NULL: none was named
  char const* limits;     // "open=100/s,metadata=1k/s" or NULL
  char const* account;    // or NULL
  char const* label;      // or NULL
};

// 0 when the file is there. -1: errno says why.
int sluice_announce(char const* run_dir, struct sluice_job const* job);
// 0 when the file is not there.
int sluice_withdraw(char const* run_dir, unsigned job_id);

// The library of a job's folder when the daemon said before that it is to be loaded, for when it
// says nothing now. -1: there is none.
int sluice_library_of(char const* run_dir, uid_t uid, unsigned job_id, char* path, size_t size);
