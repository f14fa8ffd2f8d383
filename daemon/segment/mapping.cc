// SPDX-License-Identifier: Apache-2.0
#include "segment/mapping.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/foreign_file.h"
#include "base/printable.h"
#include "core/path_text.h"

namespace sluice::segment {

namespace {

abi::segment* map(int fd, std::string const& path) {
  void* at = mmap(nullptr, sizeof(abi::segment), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED)
    throw sluice_error(fmt::format("cannot map {}: {}", path, std::strerror(errno)));
  return static_cast<abi::segment*>(at);
}

/// A name may have a path in it, and no path is longer.
void cut_texts(core::ruleset& rules) {
  auto const cut = [](core::text& t) { t.length = std::min(t.length, core::max_path); };
  for (core::target_row& t : rules.target) cut(t.path), cut(t.name);
  for (core::rule_row& r : rules.rule) cut(r.path_glob), cut(r.thread_glob), cut(r.role);
  for (core::channel_row& c : rules.channel) cut(c.name), cut(c.origin);
}

}  // namespace

mapping mapping::open(std::string const& path) { return open(path, geteuid()); }

descriptor open_segment(std::string const& path, uid_t owner) {
  foreign_file file = open_foreign(path, O_RDWR, owner);
  if (file.error == EPERM) throw sluice_error(path + ": not a file of ours");
  if (file.error == EWOULDBLOCK) throw sluice_error(path + ": its owner holds a lease on it");
  if (!file) throw sluice_error(fmt::format("{}: {}", path, std::strerror(file.error)));
  if (file.st.st_size != sizeof(abi::segment))
    throw sluice_error(path + ": made by another version of sluice");
  return std::move(file.fd);
}

void check_segment(foreign<abi::segment> const& s, std::string const& path) {
  if (char const* why = abi::refuse_head(as_shared(s), sizeof(abi::segment)))
    throw sluice_error(fmt::format("{}: {}", path, why));
  try {
    rules_of(s);  // a copy: the owner may write it at this moment
  } catch (error const& e) {
    throw sluice_error(fmt::format("{}: {}", path, e.what()));
  }
}

mapping mapping::open(std::string const& path, uid_t owner) {
  mapping m(map(open_segment(path, owner).get(), path));
  if (!m.guard_->is_held()) throw sluice_error(path + ": too much memory of jobs is mapped");
  check_segment(*m, path);
  return m;
}

mapping::~mapping() {
  guard_.reset();
  if (at_ != nullptr) munmap(at_, sizeof *at_);
}

std::unique_ptr<core::ruleset> rules_of(foreign<abi::segment> const& s) {
  auto copy = copy_of(s.rules);
  if (char const* wrong = core::validate(*copy)) throw sluice_error(wrong);
  return copy;
}

std::unique_ptr<core::ruleset> shown_rules_of(foreign<abi::segment> const& s) {
  auto rules = rules_of(s);
  make_one_line(rules->strings, sizeof rules->strings);
  cut_texts(*rules);
  return rules;
}

std::vector<std::string> channel_names(foreign<abi::segment> const& s) {
  auto const rules = rules_of(s);
  std::vector<std::string> names;
  for (unsigned i = 0; i < rules->channel_count; ++i)
    names.emplace_back(core::view(*rules, rules->channel[i].name));
  return names;
}

std::string job_name(foreign<abi::segment> const& s) { return one_line(text_of(s.head.job)); }

}  // namespace sluice::segment
