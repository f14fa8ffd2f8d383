// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "announce.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ask_daemon.h"

// "a=1/s,b=2/s" as a list of JSON strings.
static void put_limits(char* json, size_t size, char const* limits) {
  size_t used = strlen(json);
  if (used + 3 * strlen(limits) + 16 > size) return;  // a comma becomes three
  used += (size_t)snprintf(json + used, size - used, ",\"limits\":[\"");
  for (; *limits != 0; ++limits) {
    if (*limits == ',')
      used += (size_t)snprintf(json + used, size - used, "\",\"");
    else
      json[used++] = *limits == '"' || *limits == '\\' || *limits < 32 ? '_' : *limits;
  }
  snprintf(json + used, size - used, "\"]");
}

static void write_text(char* json, size_t size, struct sluice_job const* job) {
  snprintf(json, size, "{\"job\":\"%u\",\"uid\":%u,\"nodes\":%u", job->id, (unsigned)job->uid,
           job->nodes == 0 ? 1 : job->nodes);
  if (job->qos_class != NULL) sluice_put_text(json, size - 2, "class", job->qos_class);
  if (job->account != NULL) sluice_put_text(json, size - 2, "account", job->account);
  if (job->label != NULL) sluice_put_text(json, size - 2, "label", job->label);
  if (job->limits != NULL && *job->limits != 0) put_limits(json, size - 2, job->limits);
  strcat(json, "}\n");
}

static int write_file(char const* path, char const* text) {
  int const fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return -1;
  size_t const length = strlen(text);
  int const is_whole = write(fd, text, length) == (ssize_t)length;
  if (close(fd) != 0 || !is_whole) {
    if (errno == 0) errno = ENOSPC;
    return -1;
  }
  return 0;
}

int sluice_announce(char const* run_dir, struct sluice_job const* job) {
  char folder[512], path[600], fresh[600], text[4096];
  if ((size_t)snprintf(folder, sizeof folder, "%s/scheduler", run_dir) >= sizeof folder) {
    errno = ENAMETOOLONG;
    return -1;
  }
  if (mkdir(folder, 0700) != 0 && errno != EEXIST) return -1;
  snprintf(path, sizeof path, "%s/%u", folder, job->id);
  snprintf(fresh, sizeof fresh, "%s/.%u", folder, job->id);
  write_text(text, sizeof text, job);
  return write_file(fresh, text) == 0 && rename(fresh, path) == 0 ? 0 : -1;
}

int sluice_withdraw(char const* run_dir, unsigned job_id) {
  char path[600];
  if ((size_t)snprintf(path, sizeof path, "%s/scheduler/%u", run_dir, job_id) >= sizeof path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  return unlink(path) == 0 || errno == ENOENT ? 0 : -1;
}

int sluice_library_of(char const* run_dir, uid_t uid, unsigned job_id, char* path, size_t size) {
  char folder[600], held[700], text[128];
  int const length =
      uid == 0 ? snprintf(folder, sizeof folder, "%s/jobs/%u", run_dir, job_id)
               : snprintf(folder, sizeof folder, "%s/jobs/%u@%u", run_dir, (unsigned)uid, job_id);
  if (length < 0 || (size_t)length >= sizeof folder) return -1;
  snprintf(held, sizeof held, "%s/held", folder);
  int const fd = open(held, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return -1;
  ssize_t const got = read(fd, text, sizeof text);
  close(fd);
  if (got <= 0 || text[0] == '-') return -1;  // it has no class
  if ((size_t)snprintf(path, size, "%s/libinterpose.so", folder) >= size) return -1;
  return access(path, R_OK);
}
