// SPDX-License-Identifier: Apache-2.0
#include "segment/role_look.h"

#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "abi/role_area.h"
#include "base/printable.h"
#include "segment/run_dir.h"

namespace sluice::segment {

namespace {

using json = nlohmann::ordered_json;

constexpr std::size_t most_name = 255;  // in an area that was scribbled over each could be the pool

std::unique_ptr<abi::role_area> read_area(job_files const& files) {
  file_front const front = read_front(roles_path(files.segment_path), files, region_kind::roles);
  if (front.bytes.empty()) return nullptr;
  auto area = std::make_unique<abi::role_area>();
  std::memcpy(static_cast<void*>(area.get()), front.bytes.data(), sizeof *area);
  bool const is_good = abi::refuse_reason(*area, front.file_bytes) == nullptr &&
                       core::validate(area->table) == nullptr;
  return is_good ? std::move(area) : nullptr;
}

void add(role_use& to, abi::role_counts const& from, core::role_source source) {
  constexpr auto relaxed = std::memory_order_relaxed;
  std::uint64_t const read = from.read_bytes.load(relaxed);
  std::uint64_t const written = from.written_bytes.load(relaxed);
  std::uint64_t const calls = from.calls.load(relaxed);
  to.calls += calls;
  to.read_bytes += read;
  to.written_bytes += written;
  to.delayed += from.delayed.load(relaxed);
  to.waited_ns += from.waited_ns.load(relaxed);
  auto const at = static_cast<unsigned>(source) % core::role_source_count;
  to.bytes_by_source[at] += read + written;
  to.calls_by_source[at] += calls;
}

json use_json(role_use const& use) {
  json sources = json::array();
  for (unsigned i = 0; i < core::role_source_count && !use.name.empty(); ++i)
    if (use.calls_by_source[i] != 0)
      sources.push_back({{"source", core::role_source_names[i]},
                         {"calls", use.calls_by_source[i]},
                         {"bytes", use.bytes_by_source[i]}});
  return {{"role", use.name.empty() ? json(nullptr) : json(use.name)},
          {"calls", use.calls},
          {"read_bytes", use.read_bytes},
          {"written_bytes", use.written_bytes},
          {"delayed", use.delayed},
          {"waited_ns", use.waited_ns},
          {"sources", sources}};
}

}  // namespace

role_uses look_at_roles(job_files const& files) {
  role_uses out;
  auto const area = read_area(files);
  if (area == nullptr) return out;
  core::role_table const& t = area->table;
  out.role.resize(t.role_count + 1);
  for (unsigned i = 0; i < t.role_count; ++i)
    out.role[i].name = one_line(std::string(core::view(t, t.role[i].group)) + "." +
                                std::string(view(t, t.role[i].name)))
                           .substr(0, most_name);
  for (auto const& shard : area->count) {
    for (unsigned i = 0; i < t.clause_count; ++i)
      add(out.role[t.clause[i].role], shard[i], static_cast<core::role_source>(t.clause[i].source));
    add(out.role.back(), shard[core::no_clause], core::role_source::rest);
  }
  out.unknown_told = area->head.unknown_told.load(std::memory_order_relaxed);
  out.unclassed = area->head.unclassed.load(std::memory_order_relaxed);
  return out;
}

json roles_json(job_files const& files) {
  role_uses const uses = look_at_roles(files);
  if (uses.role.empty()) return nullptr;
  json rows = json::array();
  for (auto const& use : uses.role)
    if (use.calls != 0 || !use.name.empty()) rows.push_back(use_json(use));
  return rows;
}

}  // namespace sluice::segment
