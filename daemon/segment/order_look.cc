// SPDX-License-Identifier: Apache-2.0
#include "segment/order_look.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <memory>

#include "abi/order_slot.h"
#include "abi/order_status.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/foreign_file.h"
#include "core/page_ranges.h"
#include "segment/run_dir.h"

namespace sluice::segment {

namespace {

constexpr std::uint64_t alive_ns = 1'000'000'000;
constexpr std::uint64_t page_bytes = std::uint64_t{1} << core::page_shift;

/// All of a structure out of a file; null where there is none to read.
template <class Words>
std::unique_ptr<Words> read_all(std::string const& path, uid_t& owner) {
  foreign_file const file = open_foreign(path, O_RDONLY, any_owner);
  if (!file) return nullptr;
  descriptor const& fd = file.fd;
  struct stat const& st = file.st;
  auto words = std::make_unique<Words>();
  auto* const to = reinterpret_cast<char*>(words.get());
  std::size_t had = 0;
  while (had < sizeof(Words)) {
    ssize_t const got = pread(fd.get(), to + had, sizeof(Words) - had, static_cast<off_t>(had));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    had += static_cast<std::size_t>(got);
  }
  if (char const* const wrong = refuse_reason(*words, had))
    throw sluice_error(fmt::format("{}: {}", path, wrong));
  owner = st.st_uid;
  return words;
}

bool beats(std::uint64_t heart_ns) {
  auto const now_ns = static_cast<std::uint64_t>(steady_ns());
  return heart_ns <= now_ns && now_ns - heart_ns < alive_ns;
}

int errno_of(std::uint64_t word) { return word < 4096 ? static_cast<int>(word) : EIO; }

using file_map = std::map<std::pair<std::uint64_t, std::uint64_t>, order_file>;

order_file& file_in(file_map& files, std::uint64_t device, std::uint64_t inode) {
  order_file& f = files[{device, inode}];
  f.device = device;
  f.inode = inode;
  return f;
}

/// What all places of an inode say together.
void add_noted(order_file& f, abi::order_inode const& i, bool is_native) {
  std::uint64_t const state = i.state.load();
  for (auto const& range : i.written.range)
    f.noted_bytes += core::unpack(range.load()).pages * page_bytes;
  f.is_all_noted |= (state & abi::order_whole) != 0;
  f.is_noted |= f.noted_bytes != 0 || f.is_all_noted || i.cut.load() != 0 || i.created.load() != 0;
  f.is_logged |= (state & abi::order_logged) != 0;
  f.is_native |= is_native || (state & (abi::order_native | abi::order_bypass)) != 0;
}

void add_files(abi::order_area const& a, file_map& files) {
  for (auto const& set : a.set) {
    bool const is_native = set.overflow.load() != 0 || a.head.blind.load() != 0;
    for (unsigned w = 0; w < abi::order_ways; ++w) {
      std::uint64_t const key = set.key[w].load(), index = (key >> 56) - 1;
      if (key == abi::no_key || key == abi::busy_key || index >= abi::order_devices) continue;
      std::uint64_t const inode = key & ((std::uint64_t{1} << 56) - 1);
      add_noted(file_in(files, a.head.device[index].load(), inode), set.way[w], is_native);
    }
  }
}

void add_requests(abi::order_area const& a, file_map& files, order_job& to) {
  for (auto const& slot : a.slot) {
    std::uint32_t const word = slot.word.load();
    if (!abi::is_open(word) || abi::state_in(word) == abi::order_slot_state::held) continue;
    ++to.requests;
    std::uint64_t const since_ns = slot.since_ns.load();
    if (to.asked_since_ns == 0 || since_ns < to.asked_since_ns) to.asked_since_ns = since_ns;
    auto const kind = static_cast<abi::order_request>(slot.kind.load());
    if (kind == abi::order_request::fsync || kind == abi::order_request::fdatasync)
      file_in(files, slot.device.load(), slot.inode.load()).is_asked = true;
  }
}

unsigned stream_kind(std::uint32_t stream) {
  if (stream >= abi::stream_thread) return 2;
  return stream == abi::stream_process ? 0 : stream == abi::stream_job ? 1 : 3;
}

void add_streams(abi::order_area const& a, order_job& to) {
  abi::order_header const& h = a.head;
  std::uint32_t const others = h.job_streams | h.thread_streams | h.path_streams;
  to.has_stream = {(h.durable_targets & ~others) != 0, h.job_streams != 0, h.thread_streams != 0,
                   h.path_streams != 0};
  for (auto const& slot : a.slot) {
    if (abi::is_open(slot.word.load()) && abi::is_barrier(slot.kind.load()))
      ++to.barriers[stream_kind(slot.stream.load())];
  }
}

}  // namespace

std::optional<order_job> look_at_order(std::string const& area_path) {
  order_job out;
  auto const a = read_all<abi::order_area>(area_path, out.uid);
  if (!a) return std::nullopt;
  abi::order_header const& h = a->head;
  bool const was_served = h.incarnation.load() != 0;
  out.is_served = was_served && beats(h.heart_ns.load());
  out.generation = h.generation.load();
  out.is_blind = h.blind.load() != 0;
  out.is_void = (h.voided.load() & abi::order_void) != 0;
  out.refused = errno_of(h.refused.load());
  for (std::size_t i = 0; i < out.counts.size(); ++i) out.counts[i] = h.count[i].load();
  out.logged = h.said.logged.load();
  out.synced = h.said.synced.load();
  file_map files;
  add_files(*a, files);
  add_requests(*a, files, out);
  add_streams(*a, out);
  // Of who is served by nobody, and was told so, nothing is in a journal.
  bool const may_be_logged = was_served && h.said.is_in_journal.load() != 0;
  for (auto& [key, f] : files) {
    f.is_logged &= may_be_logged;  // the flag says "perhaps" and outlasts a sync
    if (f.is_noted || f.is_asked || f.is_logged || f.is_native) out.files.push_back(f);
  }
  return out;
}

std::optional<journal_status> look_at_journal(std::string const& status_path) {
  uid_t owner = 0;
  auto const s = read_all<abi::order_status>(status_path, owner);
  if (!s) return std::nullopt;
  journal_status out;
  out.path = std::string(s->log_path, strnlen(s->log_path, sizeof s->log_path));
  out.pid = s->pid;
  out.heart_ns = s->heart_ns.load();
  out.generation = s->generation.load();
  out.is_alive = beats(out.heart_ns);
  out.only_syncs = s->only_syncs.load() == 1;
  out.is_refused = s->refused.load() == 1;
  out.kept_logs = s->kept_logs.load();
  out.room_bytes = s->room_bytes.load();
  out.used_bytes = s->used_bytes.load();
  out.batches = s->batches.load();
  out.batch_bytes = s->batch_bytes.load();
  out.batch_ns = s->batch_ns.load();
  out.asked = s->asked.load();
  out.logged = s->logged.load();
  out.synced = s->synced.load();
  out.files_live = s->files_live.load();
  out.checkpoints = s->checkpoints.load();
  out.voids = s->voids.load();
  out.areas = s->areas.load();
  out.log_error = errno_of(s->log_error.load());
  out.home_error = errno_of(s->home_error.load());
  return out;
}

std::string journal_status_path(std::string const& folder) { return folder + "/order-status"; }

std::string journal_status_path(std::string const& run_dir, uid_t user) {
  return fmt::format("{}/{}", journals_dir(run_dir), user);
}

}  // namespace sluice::segment
