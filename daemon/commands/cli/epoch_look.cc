// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/epoch_look.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <memory>

#include "base/foreign_file.h"

namespace sluice::cli {

namespace {

template <unsigned Words>
std::string text_of(std::atomic<std::uint64_t> const (&from)[Words]) {
  std::uint64_t words[Words] = {};
  for (unsigned i = 0; i < Words; ++i) words[i] = from[i].load();
  char text[sizeof words];
  std::memcpy(text, words, sizeof text);
  std::string out(text, strnlen(text, sizeof text));
  for (char& c : out)
    if (c < 0x20 || c >= 0x7f) c = '?';
  return out;
}

}  // namespace

std::optional<job_look> look_at(std::string const& area_path) {
  foreign_file const file = open_foreign(area_path, O_RDONLY, any_owner);
  auto const a = std::make_unique<abi::after_area>();
  if (!file ||
      pread(file.fd.get(), static_cast<void*>(a.get()), sizeof *a, 0) != ssize_t(sizeof *a) ||
      refuse_reason(*a, static_cast<std::uint64_t>(file.st.st_size)) != nullptr)
    return std::nullopt;
  job_look out;
  out.uid = file.st.st_uid;
  out.is_known = a->head.known.load() != 0;
  for (std::size_t i = 0; i < out.counts.size(); ++i) out.counts[i] = a->head.count[i].load();
  out.no_slot = a->head.no_slot.load();
  out.waited_ns = a->head.waited_ns.load();
  out.reason = text_of(a->head.reason);
  for (abi::after_slot const& s : a->slot) {
    auto const state = static_cast<abi::after_state>(s.word.load() & 7);
    if (state != abi::after_state::posted && state != abi::after_state::taken) continue;
    bool const is_taken = state == abi::after_state::taken;
    out.waits.push_back({s.pid.load(), s.since_ns.load(), is_taken ? text_of(s.waits_for) : ""});
  }
  return out;
}

}  // namespace sluice::cli
