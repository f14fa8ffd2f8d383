/* SPDX-License-Identifier: Apache-2.0
 * For programs that know what their threads do: one line says it to sluice, and limits and reports
 * by role know it. The symbol is weak: without sluice, or in a job whose policy has no such role,
 * nothing happens. Nothing to link.
 */
#ifndef SLUICE_ROLE_H
#define SLUICE_ROLE_H

#ifdef __cplusplus
extern "C" {
#endif

void sluice_role_begin(char const* role) __attribute__((weak));

/* What the calling thread does from now on: a role of the policy, "flush" or "rocksdb.flush".
 * Null: what the policy itself finds out. */
static inline void sluice_role(char const* role) {
  if (sluice_role_begin) sluice_role_begin(role);
}

#ifdef __cplusplus
}
#endif

#endif
