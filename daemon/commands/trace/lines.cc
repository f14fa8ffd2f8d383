// SPDX-License-Identifier: Apache-2.0
#include "commands/trace/lines.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <iostream>

#include "base/error.h"
#include "commands/trace/trace.h"

namespace sluice::trace {

namespace {

constexpr std::size_t chunk_bytes = 1u << 16;
constexpr std::size_t most_shown = 40;

bool is_binary(char c) {
  auto const u = static_cast<unsigned char>(c);
  return u < 0x20 && c != '\t' && c != '\r' && c != '\f' && c != '\033';
}

}  // namespace

bool lines::fill() {
  if (!from_) return false;
  buffer_.erase(0, at_);
  at_ = 0;
  std::size_t const had = buffer_.size();
  buffer_.resize(had + chunk_bytes);
  from_.read(buffer_.data() + had, chunk_bytes);
  buffer_.resize(had + static_cast<std::size_t>(from_.gcount()));
  if (from_.bad()) fail("cannot be read any further");
  return buffer_.size() != had;
}

bool lines::next(std::string_view& line) {
  std::size_t searched = at_;
  auto end = buffer_.find('\n', searched);
  while (end == buffer_.npos) {
    searched = buffer_.size() - at_;
    bool const more = fill();
    if (!more) break;
    end = buffer_.find('\n', searched);
    if (std::min(end, buffer_.size()) - at_ > most_line_bytes) {
      ++number_;
      fail("the line is longer than 1 MiB: this is no such text file");
    }
  }
  if (end == buffer_.npos && at_ == buffer_.size()) return false;
  ++number_;
  whole_ = end != buffer_.npos;
  std::size_t const stop = whole_ ? end : buffer_.size();
  line = std::string_view(buffer_).substr(at_, stop - at_);
  at_ = whole_ ? stop + 1 : stop;
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  if (auto const bad = std::find_if(line.begin(), line.end(), is_binary); bad != line.end())
    fail(fmt::format("byte {:#04x} in column {}: this is no text; is it the right file?",
                     static_cast<unsigned char>(*bad), bad - line.begin() + 1));
  return true;
}

void lines::fail(std::string const& what) const {
  throw usage_error(fmt::format("{}:{}: {}", name_, number_ == 0 ? 1 : number_, what));
}

input::input(std::string const& path) : name_(path == "-" ? "standard input" : path) {
  if (path == "-") {
    from_ = &std::cin;
    return;
  }
  struct stat st = {};
  if (stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode))
    throw usage_error(fmt::format("{}: is a directory; give a file", path));
  file_.open(path, std::ios::binary);
  if (!file_) throw usage_error(fmt::format("{}: {}", path, std::strerror(errno)));
  from_ = &file_;
}

std::string_view trimmed(std::string_view text) {
  auto const blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> words_of(std::string_view text, std::size_t most) {
  std::vector<std::string_view> words;
  for (text = trimmed(text); !text.empty() && words.size() < most; text = trimmed(text)) {
    auto const end = std::min(text.find_first_of(" \t"), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return words;
}

std::string shown(std::string_view text) {
  std::string out = "\"";
  for (char c : text.substr(0, most_shown)) {
    auto const u = static_cast<unsigned char>(c);
    if (u < 0x20 || u == 0x7f)
      out += fmt::format("\\x{:02x}", u);
    else
      out += c;
  }
  return out + (text.size() > most_shown ? "…\"" : "\"");
}

bool split_cells(std::string_view line, std::vector<std::string_view>& cells) {
  cells.clear();
  for (;;) {
    line = line.substr(std::min(line.find_first_not_of(" \t"), line.size()));
    std::size_t end = 0;
    if (line.starts_with('"')) {
      auto const close = line.find('"', 1);
      if (close == line.npos) return false;
      cells.push_back(line.substr(1, close - 1));
      end = line.find(',', close);
      if (!trimmed(line.substr(close + 1, end == line.npos ? end : end - close - 1)).empty())
        return false;
    } else {
      end = line.find(',');
      cells.push_back(trimmed(line.substr(0, end)));
    }
    if (end == line.npos) return true;
    line.remove_prefix(end + 1);
  }
}

char const* refuse_name(std::string_view name) {
  if (name.size() > most_name_bytes) return "is longer than 63 bytes";
  for (char c : name) {
    auto const u = static_cast<unsigned char>(c);
    if (u < 0x20 || u == 0x7f || c == ',' || c == '"') return "has a comma, quote or control byte";
  }
  return nullptr;
}

}  // namespace sluice::trace
