// SPDX-License-Identifier: Apache-2.0
// The areas beside a job's segment (order, after, paths) with any bytes over them, as daemons and
// commands read them. They are the job's own files: nothing crashes or hangs, and what is shown
// stays within bounds. The input: one byte that chooses the area, then pieces of {offset, length,
// bytes} that are written over a good one.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "abi/after_area.h"
#include "abi/order_area.h"
#include "abi/path_area.h"
#include "base/error.h"
#include "commands/cli/epoch_look.h"
#include "commands/cli/paths.h"
#include "journal/area.h"
#include "segment/order_look.h"

namespace {

using namespace sluice;

void must(bool holds) {
  if (!holds) std::abort();
}

/// A folder of its own with the three files, and one of them in memory.
class job_folder {
 public:
  job_folder() {
    char name[] = "/dev/shm/sluice-fuzz.XXXXXX";
    must(mkdtemp(name) != nullptr);
    path_ = name;
  }
  ~job_folder() {
    for (char const* file : {"/order", "/after", "/paths"}) unlink((path_ + file).c_str());
    rmdir(path_.c_str());
  }
  job_folder(job_folder const&) = delete;
  job_folder& operator=(job_folder const&) = delete;

  std::string file(char const* name) const { return path_ + "/" + name; }

  void* make(char const* name, std::size_t bytes) const {
    int const fd = open(file(name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    must(fd >= 0 && ftruncate(fd, static_cast<off_t>(bytes)) == 0);
    void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    must(at != MAP_FAILED);
    close(fd);
    return at;
  }

 private:
  std::string path_;
};

job_folder const& folder() {
  static job_folder const it;
  return it;
}

template <class Area>
Area& area_at(char const* name) {
  static Area& area = *new (folder().make(name, sizeof(Area))) Area;
  return area;
}

/// Where bytes matter: the head, and some of the records.
constexpr std::size_t reach = 65536;

class scribble {
 public:
  scribble(void* at, std::size_t bytes) : at_(static_cast<unsigned char*>(at)), bytes_(bytes) {}
  ~scribble() {
    for (auto const& [from, length] : dirty_) std::memset(at_ + from, 0, length);
  }
  scribble(scribble const&) = delete;
  scribble& operator=(scribble const&) = delete;

  /// One piece; false: there is none left.
  bool next(std::span<unsigned char const>& in) {
    if (in.size() < 3) return false;
    std::size_t const from = (in[0] | in[1] << 8) % std::min(bytes_, reach);
    std::size_t const length = std::min({std::size_t{in[2]}, in.size() - 3, bytes_ - from});
    std::memcpy(at_ + from, in.data() + 3, length);
    dirty_.emplace_back(from, length);
    in = in.subspan(3 + length);
    return true;
  }

 private:
  unsigned char* at_;
  std::size_t bytes_;
  std::vector<std::pair<std::size_t, std::size_t>> dirty_;
};

void lay_out(abi::order_area& a) {
  a.head.magic_word = abi::order_magic;
  a.head.layout = abi::order_layout_version;
  a.head.total_bytes = sizeof a;
  a.head.set_bytes = sizeof(abi::order_set);
  a.head.slot_bytes = sizeof(abi::order_slot);
}

void serve(journal::area& area) {
  std::vector<journal::request> asked;
  area.take_posted(asked, true);
  must(asked.size() <= abi::order_slots);
  for (auto const& r : asked) {
    must(r.slot < abi::order_slots);
    std::uint64_t const key = area.key_of(r.device, r.inode);
    area.flags(key);
    journal::noted seen;
    area.take(key, seen);
    area.neighbours(key);
    area.answer(r, 0);
  }
  area.is_voided();
  area.reclaim(1'000'000'000);
}

void try_order(std::span<unsigned char const> in) {
  auto& memory = area_at<abi::order_area>("order");
  lay_out(memory);
  scribble pieces(&memory, sizeof memory);
  std::string const path = folder().file("order");
  for (;;) {
    bool const goes_on = pieces.next(in);
    try {
      journal::area area(path);
      serve(area);
      if (auto const seen = segment::look_at_order(path))
        must(seen->requests <= abi::order_slots &&
             seen->files.size() <= abi::order_sets * abi::order_ways);
    } catch (error const&) {  // it is no area of ours
    }
    if (!goes_on) break;
  }
  std::memset(static_cast<void*>(&memory.head), 0, sizeof memory.head);
}

void try_after(std::span<unsigned char const> in) {
  auto& a = area_at<abi::after_area>("after");
  a.head.magic_word = abi::after_magic;
  a.head.layout = abi::after_layout_version;
  a.head.rules = 1;
  a.head.total_bytes = sizeof a;
  a.head.rule_bytes = sizeof(abi::after_rule);
  a.head.slot_bytes = sizeof(abi::after_slot);
  scribble pieces(&a, sizeof a);
  while (pieces.next(in)) {
    auto const seen = sluice::cli::look_at(folder().file("after"));
    if (seen) must(seen->waits.size() <= abi::after_slots);
  }
}

void try_paths(std::span<unsigned char const> in) {
  auto& a = area_at<abi::path_area>("paths");
  a.head.magic_word = abi::paths_magic;
  a.head.layout = abi::paths_layout_version;
  a.head.parts = 2;
  a.head.total_bytes = sizeof a;
  a.head.slots = abi::path_slots;
  a.head.row_bytes = sizeof(core::sketch_row);
  scribble pieces(&a, sizeof a);
  while (pieces.next(in)) {
    nlohmann::ordered_json report;
    cli::put_paths(report, folder().file("segment"), 20);
    cli::paths_table(report);
    if (report.contains("paths")) must(report["paths"].size() <= 20);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) {
  if (size < 1) return 0;
  std::span const rest(data + 1, size - 1);
  switch (data[0] % 3) {
    case 0:
      try_order(rest);
      break;
    case 1:
      try_after(rest);
      break;
    default:
      try_paths(rest);
  }
  return 0;
}
