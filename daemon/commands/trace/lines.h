// SPDX-License-Identifier: Apache-2.0
// Reads text of others line by line: bounded, numbered, and refused with `FILE:LINE: what`.
#pragma once

#include <cstddef>
#include <fstream>
#include <istream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/number.h"

namespace sluice::trace {

class lines {
 public:
  lines(std::istream& from, std::string name) : from_(from), name_(std::move(name)) {}

  /// The next line without its end; false after the last one. Refuses lines that are too long and
  /// bytes that no text has. The view holds until the next call.
  bool next(std::string_view& line);

  std::size_t number() const { return number_; }
  std::string const& name() const { return name_; }
  /// The last line that next() gave ended with a newline.
  bool is_whole() const { return whole_; }

  /// Throws a usage error that begins with `FILE:LINE: `.
  [[noreturn]] void fail(std::string const& what) const;

 private:
  bool fill();

  std::istream& from_;
  std::string name_;
  std::string buffer_;
  std::size_t at_ = 0;
  std::size_t number_ = 0;
  bool whole_ = true;
};

/// The file, or standard input for "-". Throws when it cannot be opened.
class input {
 public:
  explicit input(std::string const& path);
  std::istream& stream() { return *from_; }
  std::string const& name() const { return name_; }

 private:
  std::string name_;
  std::ifstream file_;
  std::istream* from_ = nullptr;
};

std::string_view trimmed(std::string_view text);
/// The parts between blanks and tabs; at most `most` of them.
std::vector<std::string_view> words_of(std::string_view text, std::size_t most);

/// What a message may show of it: short, printable.
std::string shown(std::string_view text);

/// The parts between commas; a cell may stand in double quotes. False: a quote is not closed.
bool split_cells(std::string_view line, std::vector<std::string_view>& cells);

/// Why this cannot be the name of a job; null: it can.
char const* refuse_name(std::string_view name);

}  // namespace sluice::trace
