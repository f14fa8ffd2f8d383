// SPDX-License-Identifier: Apache-2.0
// The plugin that makes `--io-class=NAME` an option of srun, sbatch and salloc. What stays true: no
// job fails and no node is drained because of it (every callback returns 0 but the check of a name
// the user typed), and no step waits more than 50 ms for a daemon that hangs: `ask_ms` at its begin
// and `end_ms` at its end. What is missing is said in Slurm's log, and the job runs without limits.
// See README.md for the order in which Slurm calls this.
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <slurm/slurm.h>
#include <slurm/spank.h>

#include "announce.h"
#include "ask_daemon.h"

SPANK_PLUGIN(sluice, 1)

enum { ask_ms = 30, end_ms = 15, submit_ms = 1000, most_name = 64, most_limits = 512 };

static char const control_class[] = "SLUICE_CLASS", control_limit[] = "SLUICE_LIMIT";

static char chosen_class[most_name], chosen_limit[most_limits];
static char preload[600], told[1024];  // told: for the user, when the step has its output
static int step_has_ended;

// ---- arguments of the plugin ----

struct settings {
  char run_dir[256];              // run_dir=DIR: the daemon's, /run/sluice
  char submit[256];               // submit=DIR: of the daemon that is asked at submission
  char default_class[most_name];  // default=CLASS for jobs that name none
  int tells;                      // quiet: no line at the end of the job
};

static void take(char* to, size_t size, char const* argument, char const* key) {
  size_t const length = strlen(key);
  if (strncmp(argument, key, length) == 0) snprintf(to, size, "%s", argument + length);
}

static struct settings read_settings(int count, char* argument[]) {
  struct settings s = {"/run/sluice", "", "", 1};
  for (int i = 0; i < count; ++i) {
    take(s.run_dir, sizeof s.run_dir, argument[i], "run_dir=");
    take(s.submit, sizeof s.submit, argument[i], "submit=");
    take(s.default_class, sizeof s.default_class, argument[i], "default=");
    if (strcmp(argument[i], "quiet") == 0) s.tells = 0;
  }
  if (s.submit[0] == 0) memcpy(s.submit, s.run_dir, sizeof s.submit);
  return s;
}

// ---- the options ----

static struct settings at_submission;

// Asks the daemon of this host. Without one the name is taken: the node decides.
static int check(char const* key, char const* value) {
  char request[1200] = "{\"verb\":\"classes\"", answer[4096], why[2048];
  sluice_put_text(request, sizeof request - 2, key, value);
  strcat(request, "}");
  if (sluice_ask(at_submission.submit, request, submit_ms, answer, sizeof answer) != 0) {
    slurm_info("sluice: not checked here, no sluiced at %s: %s", at_submission.submit,
               strerror(errno));
    return 0;
  }
  if (sluice_text_at(answer, "error", why, sizeof why) != 0) return 0;
  slurm_error("--io-%s: %s", key, why);
  return -1;
}

static int is_word(char const* text, char const* more) {
  for (; *text != 0; ++text)
    if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", *text) &&
        !strchr(more, *text))
      return 0;
  return 1;
}

static int take_option(char const* key, char const* value, int is_remote, char* to, size_t size) {
  if (value == NULL || *value == 0 || strlen(value) >= size ||
      !is_word(value, strcmp(key, "limit") == 0 ? "=/,@:*" : "")) {
    if (!is_remote) slurm_error("--io-%s: not understood: \"%s\"", key, value ? value : "");
    return is_remote ? 0 : -1;
  }
  if (!is_remote && check(key, value) != 0) return -1;
  snprintf(to, size, "%s", value);
  return 0;
}

static int take_class(int number, char const* value, int is_remote) {
  (void)number;
  return take_option("class", value, is_remote, chosen_class, sizeof chosen_class);
}

static int take_limit(int number, char const* value, int is_remote) {
  (void)number;
  return take_option("limit", value, is_remote, chosen_limit, sizeof chosen_limit);
}

static struct spank_option class_option = {
    "io-class", "NAME", "QoS class of the job's file I/O (sluice)", 1, 0, take_class};
static struct spank_option limit_option = {
    "io-limit", "SPEC", "limit of the job's own, on each node: open=100/s,data=50MiB/s",
    1,          0,      take_limit};

// ---- where the user types ----

int slurm_spank_init(spank_t sp, int count, char* argument[]) {
  at_submission = read_settings(count, argument);
  // Global tables of options are seen by srun alone.
  if (spank_option_register(sp, &class_option) != ESPANK_SUCCESS ||
      spank_option_register(sp, &limit_option) != ESPANK_SUCCESS)
    slurm_error("sluice: options cannot be registered");
  return 0;
}

// ---- on the node: the job ----

static char const* environment_or_null(char const* name) {
  char const* const value = getenv(name);
  return value != NULL && *value != 0 ? value : NULL;
}

static void describe(spank_t sp, struct settings const* s, struct sluice_job* job) {
  static char option[2][most_limits];
  char* given = NULL;
  memset(job, 0, sizeof *job);
  job->nodes = 1;
  if (spank_option_getopt(sp, &class_option, &given) == ESPANK_SUCCESS && given != NULL)
    snprintf(option[0], sizeof option[0], "%s", given);
  given = NULL;
  if (spank_option_getopt(sp, &limit_option, &given) == ESPANK_SUCCESS && given != NULL)
    snprintf(option[1], sizeof option[1], "%s", given);
  if (option[0][0] == 0) snprintf(option[0], sizeof option[0], "%s", s->default_class);
  if (is_word(option[0], "") && option[0][0] != 0) job->qos_class = option[0];
  if (is_word(option[1], "=/,@:*") && option[1][0] != 0) job->limits = option[1];
  job->account = environment_or_null("SLURM_JOB_ACCOUNT");
  job->label = environment_or_null("SLURM_JOB_NAME");
  // "n[0-2]" is counted by Slurm itself, where it says.
  char const* const nodes = environment_or_null("SLURM_JOB_NUM_NODES");
  if (nodes != NULL) job->nodes = (unsigned)strtoul(nodes, NULL, 10);
}

static unsigned nodes_in(char const* list) {
  hostlist_t const hosts = list != NULL ? slurm_hostlist_create(list) : NULL;
  if (hosts == NULL) return 1;
  int const count = slurm_hostlist_count(hosts);
  slurm_hostlist_destroy(hosts);
  return count > 0 ? (unsigned)count : 1;
}

int slurm_spank_job_prolog(spank_t sp, int count, char* argument[]) {
  struct settings const s = read_settings(count, argument);  // slurm_spank_init is not called here
  struct sluice_job job;
  char request[128], answer[2048], note[1024];
  uint32_t id = 0;
  describe(sp, &s, &job);
  if (spank_get_item(sp, S_JOB_ID, &id) != ESPANK_SUCCESS ||
      spank_get_item(sp, S_JOB_UID, &job.uid) != ESPANK_SUCCESS)
    return 0;
  job.id = id;
  if (job.nodes <= 1) job.nodes = nodes_in(environment_or_null("SLURM_NODELIST"));
  if (sluice_announce(s.run_dir, &job) != 0) {
    slurm_error("sluice: job %u cannot be announced in %s: %s", id, s.run_dir, strerror(errno));
    return 0;
  }
  snprintf(request, sizeof request, "{\"verb\":\"register\",\"job\":\"%u\"}", id);
  if (sluice_ask(s.run_dir, request, ask_ms, answer, sizeof answer) != 0)
    slurm_error("sluice: job %u: sluiced has not answered (%s), it will hear of it", id,
                strerror(errno));
  else if (sluice_text_at(answer, "error", note, sizeof note) == 0 && note[0] != 0)
    slurm_error("sluice: job %u: %s", id, note);
  return 0;
}

int slurm_spank_job_epilog(spank_t sp, int count, char* argument[]) {
  struct settings const s = read_settings(count, argument);
  char request[128], answer[2048], line[1024];
  uint32_t id = 0;
  if (spank_get_item(sp, S_JOB_ID, &id) != ESPANK_SUCCESS) return 0;
  if (sluice_withdraw(s.run_dir, id) != 0)
    slurm_error("sluice: job %u cannot be withdrawn: %s", id, strerror(errno));
  snprintf(request, sizeof request, "{\"verb\":\"release\",\"job\":\"%u\"}", id);
  if (sluice_ask(s.run_dir, request, ask_ms, answer, sizeof answer) != 0)
    slurm_error("sluice: job %u: sluiced has not answered (%s), it will see it is over", id,
                strerror(errno));
  else if (sluice_text_at(answer, "line", line, sizeof line) == 0)
    slurm_info("sluice: %s", line);
  return 0;
}

// ---- on the node: the step ----

static void fall_back(spank_t sp, char const* variable, char* to, size_t size) {
  char name[80];
  if (to[0] != 0) return;
  // What the batch step of `sbatch --export=NONE` is left with.
  snprintf(name, sizeof name, "SPANK_%s", variable);
  if (spank_getenv(sp, name, to, (int)size) == ESPANK_SUCCESS && to[0] != 0) return;
  snprintf(name, sizeof name, "SLURM_SPANK_%s", variable);
  if (spank_getenv(sp, name, to, (int)size) != ESPANK_SUCCESS) to[0] = 0;
}

static void name_step(spank_t sp, char* name, size_t size) {
  uint32_t step = 0;
  if (spank_get_item(sp, S_JOB_STEPID, &step) != ESPANK_SUCCESS) step = 0;
  if (step == SLURM_BATCH_SCRIPT)
    snprintf(name, size, "batch");
  else
    snprintf(name, size, "%u", step);
}

// As root, in slurmstepd, before it becomes the user: this process is what the daemon will look for
// above the job's.
static void begin_step(spank_t sp, struct settings const* s) {
  char request[1024], answer[4096], name[32];
  uint32_t id = 0, node = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  if (spank_get_item(sp, S_JOB_ID, &id) != ESPANK_SUCCESS ||
      spank_get_item(sp, S_JOB_UID, &uid) != ESPANK_SUCCESS)
    return;
  spank_get_item(sp, S_JOB_GID, &gid);
  spank_get_item(sp, S_JOB_NODEID, &node);
  fall_back(sp, control_class, chosen_class, sizeof chosen_class);
  char const* const wish = chosen_class[0] != 0 ? chosen_class : s->default_class;
  name_step(sp, name, sizeof name);
  snprintf(request, sizeof request, "{\"verb\":\"step\",\"job\":\"%u\",\"uid\":%u,\"gid\":%u", id,
           (unsigned)uid, (unsigned)gid);
  sluice_put_text(request, sizeof request - 2, "step", name);
  if (*wish != 0 && is_word(wish, "")) sluice_put_text(request, sizeof request - 2, "class", wish);
  strcat(request, "}");
  if (sluice_ask(s->run_dir, request, ask_ms, answer, sizeof answer) == 0) {
    if (sluice_text_at(answer, "preload", preload, sizeof preload) != 0) preload[0] = 0;
    if (sluice_text_at(answer, "error", told, sizeof told) != 0 &&
        sluice_text_at(answer, "note", told, sizeof told) != 0)
      told[0] = 0;
    if (node != 0) told[0] = 0;  // once is enough
    return;
  }
  int const why = errno;
  if (sluice_library_of(s->run_dir, uid, id, preload, sizeof preload) != 0) preload[0] = 0;
  if (preload[0] != 0 || *wish != 0)
    slurm_info("sluice: job %u step %s: sluiced has not answered (%s), %s", id, name, strerror(why),
               preload[0] != 0 ? "limits stay as they are" : "the step runs without limits");
}

int slurm_spank_init_post_opt(spank_t sp, int count, char* argument[]) {
  struct settings const s = read_settings(count, argument);
  spank_context_t const context = spank_context();
  if (context == S_CTX_LOCAL || context == S_CTX_ALLOCATOR) {
    if (chosen_class[0] != 0) spank_job_control_setenv(sp, control_class, chosen_class, 1);
    if (chosen_limit[0] != 0) spank_job_control_setenv(sp, control_limit, chosen_limit, 1);
  } else if (context == S_CTX_REMOTE) {
    begin_step(sp, &s);
  }
  return 0;
}

// Ours before the user's own, and not twice: a job inside a job inherits it. A list that would be
// too long with ours stays as it is: the kernel starts no program with it.
static void put_preload(spank_t sp) {
  static char const name[] = "LD_PRELOAD";
  enum { longest_variable = 128 << 10 };  // bytes: the kernel's own limit
  size_t const length = strlen(preload), room = longest_variable - sizeof name - length - 1;
  char* const both = malloc(longest_variable);
  if (both == NULL) return;
  char* const theirs = both + length + 1;
  spank_err_t const found = spank_getenv(sp, name, theirs, (int)room);
  memcpy(both, preload, length);
  both[length] = found == ESPANK_SUCCESS && theirs[0] != 0 ? ':' : 0;
  if (found == ESPANK_NOSPACE)
    slurm_error("sluice: LD_PRELOAD is too long; the step runs without limits");
  else if (both[length] == 0 || strstr(theirs, preload) == NULL)
    spank_setenv(sp, name, both, 1);
  free(both);
}

int slurm_spank_user_init(spank_t sp, int count, char* argument[]) {
  (void)count;
  (void)argument;
  if (preload[0] == 0) return 0;
  if (access(preload, R_OK) != 0) {
    slurm_error("sluice: %s: %s; the step runs without limits", preload, strerror(errno));
    return 0;
  }
  put_preload(sp);
  return 0;
}

int slurm_spank_task_post_fork(spank_t sp, int count, char* argument[]) {
  (void)sp;
  (void)count;
  (void)argument;
  if (told[0] != 0) slurm_spank_log("sluice: %s", told);
  told[0] = 0;
  return 0;
}

int slurm_spank_exit(spank_t sp, int count, char* argument[]) {
  struct settings const s = read_settings(count, argument);
  char request[256], answer[4096], line[2048], name[32];
  uint32_t id = 0, node = 0;
  if (spank_context() != S_CTX_REMOTE || preload[0] == 0 || !s.tells || step_has_ended) return 0;
  step_has_ended = 1;
  if (spank_get_item(sp, S_JOB_ID, &id) != ESPANK_SUCCESS) return 0;
  spank_get_item(sp, S_JOB_NODEID, &node);
  if (node != 0) return 0;  // one line is enough
  name_step(sp, name, sizeof name);
  snprintf(request, sizeof request, "{\"verb\":\"step-end\",\"job\":\"%u\",\"step\":\"%s\"}", id,
           name);
  if (sluice_ask(s.run_dir, request, end_ms, answer, sizeof answer) == 0 &&
      sluice_text_at(answer, "line", line, sizeof line) == 0 && line[0] != 0)
    slurm_spank_log("sluice: %s", line);
  return 0;
}
