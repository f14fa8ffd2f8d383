// SPDX-License-Identifier: Apache-2.0
#include "segment/cut_back.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "abi/after_area.h"
#include "abi/order_area.h"
#include "abi/path_area.h"
#include "abi/ring_area.h"
#include "abi/role_area.h"
#include "abi/segment.h"
#include "base/foreign_file.h"
#include "base/rights.h"
#include "base/whole_file.h"
#include "segment/run_dir.h"

namespace sluice::segment {

namespace {

/// Room beyond the end counts too; some, a file system may give by itself.
bool is_grown(struct stat const& st, std::uint64_t bytes) {
  constexpr std::size_t slack = std::size_t{4} << 20;
  auto const size = static_cast<std::size_t>(st.st_size);
  return size > bytes || (size == bytes && std::size_t(st.st_blocks) * 512 > bytes + slack);
}

/// Attributes of its user, which are memory as well: tmpfs has them since Linux 6.6. Empty where
/// their names are more than the kernel lists.
std::vector<std::string> attributes_of(std::string const& path) {
  ssize_t const room = llistxattr(path.c_str(), nullptr, 0);
  if (room <= 0) return {};
  std::string names(static_cast<std::size_t>(room), 0);
  ssize_t const bytes = llistxattr(path.c_str(), names.data(), names.size());
  std::vector<std::string> out;
  for (ssize_t at = 0; at < bytes; at += static_cast<ssize_t>(out.back().size()) + 1)
    out.emplace_back(names.c_str() + at);
  std::erase_if(out, [](std::string const& name) { return !name.starts_with("user."); });
  return out;
}

void take_attributes(std::string const& path, cut& done) {
  for (auto const& name : attributes_of(path))
    with_rights([&] {
      if (lremovexattr(path.c_str(), name.c_str()) == 0) done.had_grown = true;
    });
}

void cut_back(std::string const& path, std::uint64_t bytes, cut& done) {
  struct stat st = {}, after = {};
  take_attributes(path, done);
  if (bytes == 0 || lstat(path.c_str(), &st) != 0 || !S_ISREG(st.st_mode)) return;
  if (!is_grown(st, bytes)) return;
  foreign_file const file = open_foreign(path, O_RDWR, any_owner);
  if (file.error == EWOULDBLOCK) done.is_leased = true;
  if (!file || ftruncate(file.fd.get(), static_cast<off_t>(bytes)) != 0 ||
      fstat(file.fd.get(), &after) != 0)
    return;  // it is looked at again
  if (after.st_size != st.st_size || after.st_blocks < st.st_blocks) done.had_grown = true;
}

template <class Visit>
void for_each_file(std::string const& job_dir, made_sizes const& sizes, Visit&& visit) {
  std::string const dir = own_links(job_dir);
  visit(dir + "/segment", sizes.segment);
  visit(dir + "/" + file_name_over("order"), sizes.order);
  for (auto const& area : areas_beside(sizes)) visit(dir + "/" + area.name, area.bytes);
}

}  // namespace

made_sizes made_sizes::of_this_version() { return {sizeof(abi::segment), sizeof(abi::order_area)}; }

made_sizes sizes_in(std::string const& job_dir) {
  auto const text = read_file(job_dir + "/job.json");
  auto const record = nlohmann::json::parse(text.value_or(""), nullptr, false);
  auto const number = [&](char const* key) -> std::uint64_t {
    bool const is_there = record.is_object() && record.contains(key);
    return is_there && record[key].is_number_unsigned() ? record[key].get<std::uint64_t>() : 0;
  };
  return {number("segment_bytes"), number("order_bytes")};
}

std::array<area_file, most_areas> areas_beside(made_sizes const& sizes) {
  return {{{"order", sizes.order},
           {"after", sizeof(abi::after_area)},
           {"paths", sizeof(abi::path_area)},
           {"roles", sizeof(abi::role_area)},
           {"rings", sizeof(abi::ring_area)}}};
}

file_look look_at_files(std::string const& job_dir, made_sizes const& sizes) {
  file_look seen;
  for_each_file(job_dir, sizes, [&](std::string const& path, std::uint64_t bytes) {
    struct stat st = {};
    if (lstat(path.c_str(), &st) != 0 || !S_ISREG(st.st_mode)) return;
    seen.has_grown = seen.has_grown || (bytes != 0 && is_grown(st, bytes));
    seen.changed_ns = std::max(
        seen.changed_ns, st.st_ctim.tv_sec * std::int64_t{1'000'000'000} + st.st_ctim.tv_nsec);
  });
  return seen;
}

cut cut_back(std::string const& job_dir, made_sizes const& sizes) {
  cut done;
  for_each_file(job_dir, sizes,
                [&](std::string const& path, std::uint64_t bytes) { cut_back(path, bytes, done); });
  return done;
}

}  // namespace sluice::segment
