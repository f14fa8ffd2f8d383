// SPDX-License-Identifier: Apache-2.0
#include "epochs/gate_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "base/error.h"
#include "base/number.h"
#include "base/whole_file.h"

namespace sluice::epochs {

namespace {

namespace fs = std::filesystem;

std::string log_name(std::string const& path, std::uint64_t number) {
  return fmt::format("{}-{}", path, number);
}

/// Numbers of the logs that lie beside it.
std::set<std::uint64_t> logs_of(std::string const& path) {
  std::set<std::uint64_t> out;
  std::string const prefix = fs::path(path).filename().string() + "-";
  std::error_code failed;
  for (fs::directory_iterator at(fs::path(path).parent_path(), failed);
       !failed && at != fs::directory_iterator(); at.increment(failed)) {
    std::string const name = at->path().filename();
    std::uint64_t number = 0;
    if (name.starts_with(prefix) && to_number(name.substr(prefix.size()), number))
      out.insert(number);
  }
  return out;
}

/// Logs from `first` to before `end`, which is the last one of all or is not.
void replay_logs(gate_book& book, std::string const& path, std::uint64_t first, std::uint64_t end,
                 bool has_last) {
  for (std::uint64_t i = first; i < end; ++i) {
    auto const lines = read_file(log_name(path, i));
    if (!lines) throw sluice_error(fmt::format("{} is not there", log_name(path, i)));
    book.replay(*lines, has_last && i + 1 == end);
  }
}

void remove_logs(std::string const& path, std::uint64_t first, std::uint64_t end) {
  for (std::uint64_t i = first; i < end; ++i) unlink(log_name(path, i).c_str());
}

/// From what lies there alone, in a thread. 0: it cannot be, and all stays as it is.
std::size_t fold(std::string const& path, bool is_relay, std::uint64_t end) try {
  gate_book book(is_relay, 0, 0);
  auto const text = read_file(path);
  if (!text) return 0;
  std::uint64_t const first = book.from_text(*text);
  replay_logs(book, path, first, end, false);
  std::string const whole = book.to_text(end);
  if (!replace_file(path, whole, {.is_durable = true})) return 0;
  remove_logs(path, first, end);
  return whole.size();
} catch (std::exception const&) {
  return 0;
}

bool append(int fd, std::string const& line) {
  auto const bytes = static_cast<ssize_t>(line.size());
  return write(fd, line.data(), line.size()) == bytes && fdatasync(fd) == 0;
}

}  // namespace

std::string gate_log::log_path(std::uint64_t number) const { return log_name(path_, number); }

void gate_log::recall(gate_book& book) {
  auto const logs = logs_of(path_);
  if (!logs.empty()) number_ = *logs.rbegin();
  first_ = logs.empty() ? 1 : *logs.begin();
  auto const text = read_kept(path_);
  if (!text) return;
  gate_book fresh = book;
  std::uint64_t const first = fresh.from_text(*text);
  number_ = std::max(number_, first);
  bool const has_logs = !logs.empty() && *logs.rbegin() >= first;
  if (first != 0 && has_logs) replay_logs(fresh, path_, first, number_ + 1, true);
  book = std::move(fresh);
}

bool gate_log::open_log(std::uint64_t number) {
  if (!replace_file(log_path(number), {}, {.is_durable = true})) return false;
  log_ = descriptor(open(log_path(number).c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW));
  log_bytes_ = 0;
  return static_cast<bool>(log_);
}

/// The file first: it names a log that is not there yet, and the lines of others end here.
bool gate_log::begin_anew(gate_book const& book) {
  finish_fold();
  std::string const whole = book.to_text(number_ + 1);
  if (!replace_file(path_, whole, {.is_durable = true})) return false;
  ++number_;
  remove_logs(path_, first_, number_);
  first_ = number_;
  whole_bytes_ = whole.size();
  return open_log(number_);
}

bool gate_log::keep(gate_book const& book) {
  if (!log_) return begin_anew(book);
  std::string const line = book.changes();
  if (!append(log_.get(), line)) {
    log_ = descriptor();  // a part of the line may be there: nothing may follow it
    return false;
  }
  log_bytes_ += line.size();
  if (log_bytes_ >= std::max(least_bytes_, whole_bytes_)) begin_fold();
  return true;
}

void gate_log::begin_fold() {
  if (fold_.valid() && fold_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return;
  finish_fold();
  if (!open_log(number_ + 1)) return;  // without a log all is written next
  ++number_;
  try {
    fold_ = std::async(std::launch::async, fold, path_, is_relay_, number_);
  } catch (std::system_error const&) {
    // There is no thread to be had: the next one folds both.
  }
}

void gate_log::finish_fold() {
  if (!fold_.valid()) return;
  if (std::size_t const bytes = fold_.get(); bytes != 0) whole_bytes_ = bytes;
}

}  // namespace sluice::epochs
