// SPDX-License-Identifier: Apache-2.0
// Calls that walk a tree inside libc, and those that change what a relative path means. A walk is
// charged per entry, in the program's own callback, so that it is paced and not stopped as a whole.
#include <fts.h>

#include "meter.h"
#include "rows.h"

namespace sluice {

namespace {

// The program's callback while nftw runs in this thread. Restored afterwards, so walks may nest; a
// callback that longjmps out leaves a stale pointer that the next walk overwrites.
thread_local constinit void* visitor __attribute__((tls_model("initial-exec"))) = nullptr;
thread_local constinit char const* walk_root __attribute__((tls_model("initial-exec"))) = nullptr;

thread_local constinit bool walk_changes_directory __attribute__((tls_model("initial-exec"))) =
    false;

constexpr int ftw_chdir = 4;

// fts changes the directory inside libc, unless it was told not to.
void forget_cwd_of(FTS const* walk) {
  if (stage.mine != nullptr && !self.is_vfork_child && (walk->fts_options & FTS_NOCHDIR) == 0)
    forget_cwd();
}

int visit_ftw(char const* path, struct stat const* what, int type) {
  auto* const program = reinterpret_cast<ftw_function*>(visitor);
  charge(call::ftw, core::op::walk, on_path(path), 1);
  return program(path, what, type);
}

int visit_nftw(char const* path, struct stat const* what, int type, FTW* where) {
  auto* const program = reinterpret_cast<nftw_function*>(visitor);
  // With FTW_CHDIR libc has changed the directory, and the path is relative to where the walk
  // began; the root's target is near enough then.
  if (walk_changes_directory) forget_cwd();
  charge(call::nftw, core::op::walk, on_path(walk_root != nullptr ? walk_root : path), 1);
  return program(path, what, type, where);
}

template <class Real>
int change_directory(call id, place const& where, Real&& real_call) {
  visit v{id, core::op::chdir, when::before, false, 0, 0, 0};
  bool const ours = enter_place(v, where);
  int const r = real_call();
  if (r == 0 && !self.is_vfork_child) forget_cwd();
  if (ours) leave(v, r != 0, 0);
  return r;
}

}  // namespace

namespace slow {

int ftw(char const* path, ftw_function* visit, int depth) {
  if (self.is_vfork_child) return real::ftw(path, visit, depth);
  void* const outer = visitor;
  visitor = reinterpret_cast<void*>(visit);
  int const r = real::ftw(path, visit_ftw, depth);
  visitor = outer;
  return r;
}

int nftw(char const* path, nftw_function* visit, int depth, int flags) {
  if (self.is_vfork_child) return real::nftw(path, visit, depth, flags);
  void* const outer = visitor;
  char const* const outer_root = walk_root;
  bool const outer_changes = walk_changes_directory;
  visitor = reinterpret_cast<void*>(visit);
  walk_changes_directory = (flags & ftw_chdir) != 0;
  walk_root = walk_changes_directory && path != nullptr && path[0] == '/' ? path : nullptr;
  int const r = real::nftw(path, visit_nftw, depth, flags);
  visitor = outer;
  walk_root = outer_root;
  if (walk_changes_directory) forget_cwd();
  walk_changes_directory = outer_changes;
  return r;
}

void* fts_read(void* walk) {
  void* const entry = real::fts_read(walk);
  if (walk != nullptr) forget_cwd_of(static_cast<FTS*>(walk));
  if (entry != nullptr)
    charge(call::fts_read, core::op::walk, on_path(static_cast<FTSENT*>(entry)->fts_path), 1);
  return entry;
}

int fts_close(void* walk) {
  FTS const as_it_was = walk != nullptr ? *static_cast<FTS*>(walk) : FTS{};
  int const r = real::fts_close(walk);
  if (walk != nullptr) forget_cwd_of(&as_it_was);
  return r;
}

int chdir(char const* path) {
  return change_directory(call::chdir, on_path(path), [&] { return real::chdir(path); });
}

int fchdir(int fd) {
  return change_directory(call::fchdir, on_fd(fd), [&] { return real::fchdir(fd); });
}

int chroot(char const* path) {
  int const r = real::chroot(path);
  if (r == 0 && !self.is_vfork_child) {
    forget_cwd();
    forget_names();
  }
  return r;
}

}  // namespace slow
}  // namespace sluice
