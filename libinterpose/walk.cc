// SPDX-License-Identifier: Apache-2.0
// Calls that walk a tree inside libc, and those that change what a relative path means. A walk is
// charged per entry, in the program's own callback, so that it is paced and not stopped as a whole.
#include <fts.h>

#include <atomic>
#include <type_traits>
#include <utility>

#include "meter.h"
#include "rows.h"

// As <ftw.h> has it.
struct FTW {
  int base;  // where the entry's own name begins
  int level;
};

namespace sluice {

namespace {

// fts changes the directory inside libc, unless it was told not to.
void forget_cwd_of(FTS const* walk) {
  if (stage.mine != nullptr && !self.is_vfork_child && (walk->fts_options & FTS_NOCHDIR) == 0)
    forget_cwd();
}

constexpr int ftw_chdir = 4;

// libc hands a callback nothing but the entry. So each callback of the program has one of ours that
// calls no other: a program may leave a walk with longjmp, or have several under way in one thread.
// The table is emptied when it is full and nobody walks.
constexpr unsigned most_callbacks = std::extent_v<decltype(private_map::walks), 1>;

enum class walk_kind { ftw, nftw, nftw_chdir };

template <walk_kind kind>
using callback_of = std::conditional_t<kind == walk_kind::ftw, ftw_function, nftw_function>;

std::atomic<void*>& callback_at(walk_kind kind, unsigned n) {
  return stage.mine->walks[static_cast<unsigned>(kind)][n];
}

template <walk_kind kind, class... Entry>
int call_program(unsigned n, Entry... entry) {
  void* const program = callback_at(kind, n).load(std::memory_order_relaxed);
  return reinterpret_cast<callback_of<kind>*>(program)(entry...);
}

template <unsigned n>
int visit_ftw(char const* path, struct stat const* what, int type) {
  charge(call::ftw, core::op::walk, on_path(path), 1);
  return call_program<walk_kind::ftw>(n, path, what, type);
}

template <unsigned n>
int visit_nftw(char const* path, struct stat const* what, int type, FTW* where) {
  charge(call::nftw, core::op::walk, on_path(path), 1);
  return call_program<walk_kind::nftw>(n, path, what, type, where);
}

// libc has gone to the directory of the entry.
template <unsigned n>
int visit_nftw_chdir(char const* path, struct stat const* what, int type, FTW* where) {
  forget_cwd();
  char const* const name = path + where->base;
  charge(call::nftw, core::op::walk, on_path(*name != 0 ? name : path), 1);
  return call_program<walk_kind::nftw_chdir>(n, path, what, type, where);
}

template <walk_kind kind, unsigned n>
constexpr callback_of<kind>* visit_of() {
  if constexpr (kind == walk_kind::ftw)
    return visit_ftw<n>;
  else if constexpr (kind == walk_kind::nftw)
    return visit_nftw<n>;
  else
    return visit_nftw_chdir<n>;
}

// No table of functions: the loader would write it into each program that starts.
template <walk_kind kind, unsigned... n>
callback_of<kind>* ours_at(unsigned place, std::integer_sequence<unsigned, n...>) {
  callback_of<kind>* found = nullptr;
  ((found = place == n ? visit_of<kind, n>() : found), ...);
  return found;
}

/// One of ours; null where no place is left.
template <walk_kind kind>
callback_of<kind>* find_place(callback_of<kind>* program) {
  auto* const wanted = reinterpret_cast<void*>(program);
  for (unsigned n = 0; n < most_callbacks; ++n) {
    void* there = nullptr;
    if (callback_at(kind, n).compare_exchange_strong(there, wanted) || there == wanted)
      return ours_at<kind>(n, std::make_integer_sequence<unsigned, most_callbacks>());
  }
  return nullptr;
}

/// Some programs make a callback for each walk. Who begins meanwhile goes without a place.
constexpr std::uint32_t is_emptied = std::uint32_t{1} << 31;

void empty_places() {
  std::uint32_t only_ours = 1;
  auto& now = stage.mine->walks_under_way;
  if (!now.compare_exchange_strong(only_ours, is_emptied | 1)) return;
  for (auto& kind : stage.mine->walks)
    for (auto& place : kind) place.store(nullptr);
  now.fetch_sub(is_emptied);
}

/// Walks with the callback that charges for each entry and calls `program`; with `program` itself
/// where no place is left, and then the walk is charged as one entry. A walk that is left with
/// longjmp is under way for ever.
template <walk_kind kind, class Walk>
int paced(callback_of<kind>* program, call id, char const* root, Walk&& walk) {
  if (stage.mine == nullptr || program == nullptr || self.is_vfork_child) return walk(program);
  auto& under_way = stage.mine->walks_under_way;
  callback_of<kind>* ours = nullptr;
  if ((under_way.fetch_add(1) & is_emptied) == 0) {
    ours = find_place<kind>(program);
    if (ours == nullptr) {
      empty_places();
      ours = find_place<kind>(program);
    }
  }
  if (ours == nullptr) charge(id, core::op::walk, on_path(root), 1);
  int const r = walk(ours == nullptr ? program : ours);
  under_way.fetch_sub(1);
  return r;
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
  return paced<walk_kind::ftw>(
      visit, call::ftw, path, [=](ftw_function* called) { return real::ftw(path, called, depth); });
}

int nftw(char const* path, nftw_function* visit, int depth, int flags) {
  auto const walk = [=](nftw_function* called) { return real::nftw(path, called, depth, flags); };
  if ((flags & ftw_chdir) == 0) return paced<walk_kind::nftw>(visit, call::nftw, path, walk);
  int const r = paced<walk_kind::nftw_chdir>(visit, call::nftw, path, walk);
  if (!self.is_vfork_child) forget_cwd();
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
