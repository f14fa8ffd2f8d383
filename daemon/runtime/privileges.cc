// SPDX-License-Identifier: Apache-2.0
#include "runtime/privileges.h"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <future>
#include <memory>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/rights.h"

namespace sluice::runtime {

namespace {

using capabilities = std::unique_ptr<_cap_struct, int (*)(void*)>;

struct wanted {
  cap_value_t value;
  char const* name;
};

constexpr wanted of_a_node[] = {{CAP_CHOWN, "cap_chown"}, {CAP_DAC_OVERRIDE, "cap_dac_override"}};

constexpr wanted of_a_watcher[] = {{CAP_DAC_READ_SEARCH, "cap_dac_read_search"},
                                   {CAP_SYS_PTRACE, "cap_sys_ptrace"}};

constexpr wanted of_a_log[] = {{CAP_CHOWN, "cap_chown"},
                               {CAP_DAC_OVERRIDE, "cap_dac_override"},
                               {CAP_DAC_READ_SEARCH, "cap_dac_read_search"},
                               {CAP_FOWNER, "cap_fowner"},
                               {CAP_FSETID, "cap_fsetid"},
                               {CAP_KILL, "cap_kill"},
                               {CAP_LEASE, "cap_lease"},
                               {CAP_SETGID, "cap_setgid"},
                               {CAP_SETUID, "cap_setuid"},
                               {CAP_SYS_ADMIN, "cap_sys_admin"},
                               {CAP_SYS_PTRACE, "cap_sys_ptrace"}};

[[noreturn]] void fail(char const* what) {
  throw sluice_error(fmt::format("{}: {}", what, std::strerror(errno)));
}

bool is_permitted(cap_t have, cap_value_t value) {
  cap_flag_value_t is_set = CAP_CLEAR;
  return cap_get_flag(have, value, CAP_PERMITTED, &is_set) == 0 && is_set == CAP_SET;
}

void append(std::string& list, char const* name) {
  list += list.empty() ? "" : ",";
  list += name;
}

/// Needs CAP_SETPCAP; without it nothing is lost, as no_new_privs keeps a set from growing.
void empty_bounding_set(std::vector<cap_value_t> const& keep) {
  for (cap_value_t c = 0; c <= cap_max_bits() - 1; ++c) {
    bool is_kept = false;
    for (cap_value_t k : keep) is_kept = is_kept || k == c;
    if (!is_kept && cap_get_bound(c) == 1) cap_drop_bound(c);
  }
}

kept_capabilities drop_to(std::span<wanted const> all) {
  capabilities const have(cap_get_proc(), cap_free), next(cap_init(), cap_free);
  if (!have || !next) fail("capabilities");
  kept_capabilities out;
  std::vector<cap_value_t> keep;
  for (auto const& w : all) {
    if (geteuid() != 0) break;
    bool const is_ours = is_permitted(have.get(), w.value);
    append(is_ours ? out.kept : out.missing, w.name);
    if (is_ours) keep.push_back(w.value);
  }
  auto const count = static_cast<int>(keep.size());
  for (cap_flag_t set : {CAP_PERMITTED, CAP_EFFECTIVE})
    if (count != 0 && cap_set_flag(next.get(), set, count, keep.data(), CAP_SET) != 0)
      fail("capabilities");
  empty_bounding_set(keep);
  cap_reset_ambient();
  if (cap_set_proc(next.get()) != 0) fail("cannot drop capabilities");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail("no_new_privs");
  if (out.kept.empty()) out.kept = "none";
  return out;
}

}  // namespace

kept_capabilities drop_capabilities(role_kind role) {
  kept_capabilities kept;
  if (role == role_kind::node)
    keep_rights([&] {
      kept = drop_to(of_a_node);
      return kept.kept != "none";
    });
  auto const own = drop_to({});
  return role == role_kind::node ? kept : own;
}

void drop_to_tidier() { drop_to(of_a_node); }

void drop_all() { drop_to({}); }

kept_capabilities drop_to_journal() { return drop_to(of_a_log); }

void without_capabilities(std::function<void()> const& make) {
  std::async(std::launch::async, [&] {
    drop_to({});
    make();
  }).get();
}

kept_capabilities as_watcher(std::function<void()> const& make) {
  return std::async(std::launch::async,
                    [&] {
                      auto const kept = drop_to(of_a_watcher);
                      make();
                      return kept;
                    })
      .get();
}

void become(std::string const& user) {
  passwd const* const row = getpwnam(user.c_str());
  if (row == nullptr) throw usage_error(fmt::format("--user {}: there is no such user", user));
  if (row->pw_uid == geteuid()) return;
  empty_bounding_set({});  // as another user we may not
  if (initgroups(row->pw_name, row->pw_gid) != 0 ||
      setresgid(row->pw_gid, row->pw_gid, row->pw_gid) ||
      setresuid(row->pw_uid, row->pw_uid, row->pw_uid) != 0)
    fail(fmt::format("cannot become {}", user).c_str());
}

}  // namespace sluice::runtime
