// SPDX-License-Identifier: Apache-2.0
#include "commands/report/place.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "policy/counting_iterator.h"

namespace sluice::report {

namespace {

using nlohmann::json;
using policy::counting_iterator;

/// Follows a path through the events of the parser and stops where it ends.
class finder {
 public:
  /// `path` null: to the end of the text.
  finder(json_path const* path, char const* const& furthest) : path_(path), furthest_(furthest) {}

  bool null() { return value(); }
  bool boolean(bool) { return value(); }
  bool number_integer(json::number_integer_t) { return value(); }
  bool number_unsigned(json::number_unsigned_t) { return value(); }
  bool number_float(json::number_float_t, json::string_t const&) { return value(); }
  bool string(json::string_t&) { return value(); }
  bool binary(json::binary_t&) { return value(); }
  bool start_object(std::size_t) { return open(false); }
  bool start_array(std::size_t) { return open(true); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(json::string_t& k) {
    here_.back().key = k;
    return true;
  }
  bool parse_error(std::size_t position, std::string const& token, json::exception const& e) {
    error_at = position;
    what = e.what();
    last = token;
    return false;
  }

  char const* found = nullptr;
  std::size_t error_at = 0;  // 1: the first byte
  std::string what, last;

 private:
  struct level {
    bool is_array = false;
    std::size_t index = 0;
    std::string key = {};
  };

  bool is_there() const {
    if (path_ == nullptr || here_.size() != path_->size()) return false;
    for (std::size_t i = 0; i < path_->size(); ++i) {
      auto const* const index = std::get_if<std::size_t>(&(*path_)[i]);
      level const& l = here_[i];
      if ((index != nullptr) != l.is_array) return false;
      if (index != nullptr ? *index != l.index : std::get<std::string>((*path_)[i]) != l.key)
        return false;
    }
    return true;
  }
  void next() {
    if (!here_.empty()) ++here_.back().index;
  }
  bool value() {
    if (is_there()) {
      found = furthest_;
      return false;
    }
    next();
    return true;
  }
  bool open(bool is_array) {
    if (is_there()) {
      found = furthest_;
      return false;
    }
    here_.push_back({is_array});
    return true;
  }
  bool close() {
    here_.pop_back();
    next();
    return true;
  }

  json_path const* path_;
  char const* const& furthest_;
  std::vector<level> here_;
};

void go_through(std::string_view text, finder& f, char const*& furthest) {
  char const* const end = text.data() + text.size();
  json::sax_parse(counting_iterator(text.data(), &furthest), counting_iterator(end, &furthest), &f);
}

std::size_t line_at(std::string_view text, std::size_t offset) {
  auto const begin = text.begin();
  auto const end = begin + static_cast<std::ptrdiff_t>(std::min(offset, text.size()));
  return 1 + static_cast<std::size_t>(std::count(begin, end, '\n'));
}

/// What the library says after its own words about places and numbers of errors.
std::string bare(std::string const& what) {
  auto const at = what.find("; last read: ");
  std::string out = what.substr(0, at);
  for (char const* mark : {"syntax error while parsing ", "] "})
    if (auto const from = out.rfind(mark); from != out.npos) {
      out = out.substr(from + std::string_view(mark).size());
      break;
    }
  return out;
}

}  // namespace

std::string path_text(json_path const& path) {
  std::string out;
  for (auto const& step : path)
    if (auto const* index = std::get_if<std::size_t>(&step))
      out += fmt::format("[{}]", *index);
    else
      out += (out.empty() ? "" : ".") + std::get<std::string>(step);
  return out;
}

std::size_t line_of(std::string_view text, json_path const& path) {
  char const* furthest = text.data();
  finder f(&path, furthest);
  go_through(text, f, furthest);
  if (f.found == nullptr) return 0;
  // A number ends where the character after it was read.
  auto const read = static_cast<std::size_t>(f.found - text.data());
  return line_at(text, read == 0 ? 0 : read - 1);
}

syntax_error find_syntax_error(std::string_view text) {
  char const* furthest = text.data();
  finder f(nullptr, furthest);
  go_through(text, f, furthest);
  if (f.what.empty()) return {};
  std::size_t const read =
      f.error_at != 0 ? f.error_at - 1 : static_cast<std::size_t>(furthest - text.data());
  std::size_t const offset = std::min(read, text.size());
  std::size_t const begin = text.substr(0, offset).rfind('\n') + 1;  // npos + 1 is 0
  return {line_at(text, offset), offset - begin + 1, bare(f.what)};
}

}  // namespace sluice::report
