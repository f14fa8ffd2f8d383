// SPDX-License-Identifier: Apache-2.0
#include "policy/hostlist.h"

#include <fmt/format.h>

#include <cstdint>
#include <unordered_set>

#include "base/error.h"
#include "base/number.h"

namespace sluice::policy {

namespace {

using names = std::vector<std::string>;

constexpr std::size_t most_names = 65536;
constexpr std::size_t most_bytes = 63;  // as a message carries them

class expansion {
 public:
  expansion(std::string_view text, std::string const& where) : text_(text), where_(where) {}

  names all() const {
    names out;
    std::size_t at = 0;
    for (std::string_view item; next_item(text_, at, item);) {
      names const some = expand(item);
      if (some.size() + out.size() > most_names) too_many();
      out.insert(out.end(), some.begin(), some.end());
    }
    if (out.empty()) fail("names no node");
    check(out);
    return out;
  }

 private:
  [[noreturn]] void fail(std::string const& what) const {
    throw usage_error(fmt::format("{}: \"{}\" {}", where_, text_, what));
  }
  [[noreturn]] void too_many() const { fail(fmt::format("is more than {} names", most_names)); }

  /// The part up to the next comma that no bracket holds.
  bool next_item(std::string_view text, std::size_t& at, std::string_view& item) const {
    if (at >= text.size()) return false;
    std::size_t const from = at;
    bool inside = false;
    for (; at < text.size() && (inside || text[at] != ','); ++at) {
      if (text[at] == '[' && inside) fail("opens a bracket twice");
      if (text[at] == ']' && !inside) fail("closes a bracket that was not opened");
      if (text[at] == '[') inside = true;
      if (text[at] == ']') inside = false;
    }
    if (inside) fail("opens a bracket and does not close it");
    item = text.substr(from, at - from);
    if (item.empty()) fail("has an empty name");
    if (at < text.size() && ++at == text.size()) fail("ends with a comma");
    return true;
  }

  names expand(std::string_view item) const {
    names out = {""};
    while (!item.empty()) {
      auto const bracket = item.find('[');
      for (auto& name : out) name += item.substr(0, bracket);
      if (bracket == item.npos) break;
      auto const close = item.find(']', bracket);
      names const middle = ranges(item.substr(bracket + 1, close - bracket - 1));
      if (out.size() * middle.size() > most_names) too_many();
      names product;
      for (auto const& left : out)
        for (auto const& right : middle) product.push_back(left + right);
      out = std::move(product);
      item.remove_prefix(close + 1);
    }
    return out;
  }

  std::uint64_t number(std::string_view digits) const {
    std::uint64_t value = 0;
    if (!to_number(digits, value) || digits.size() > 15)
      fail(fmt::format("has \"{}\" where a number belongs", digits));
    return value;
  }

  names ranges(std::string_view inside) const {
    names out;
    std::size_t at = 0;
    for (std::string_view one; next_item(inside, at, one);) {
      auto const dash = one.find('-');
      std::string_view const low = one.substr(0, dash);
      std::string_view const high = dash == one.npos ? low : one.substr(dash + 1);
      std::uint64_t const from = number(low), to = number(high);
      if (to < from) fail(fmt::format("counts backwards in \"{}\"", one));
      if (to - from >= most_names) too_many();
      for (std::uint64_t i = from; i <= to; ++i)
        out.push_back(fmt::format("{:0{}}", i, low.size()));
    }
    if (out.empty()) fail("has empty brackets");
    return out;
  }

  void check(names const& all) const {
    std::unordered_set<std::string_view> seen;
    for (auto const& name : all) {
      if (name.size() > most_bytes)
        fail(fmt::format("has a name of more than {} letters", most_bytes));
      for (unsigned char c : name)
        if (std::isalnum(c) == 0 && c != '-' && c != '_' && c != '.')
          fail(fmt::format("has a name with a letter that names do not have: \"{}\"", name));
      if (!seen.insert(name).second) fail(fmt::format("names {} twice", name));
    }
  }

  std::string_view text_;
  std::string const& where_;
};

}  // namespace

std::vector<std::string> expand_hostlist(std::string_view text, std::string const& where) {
  return expansion(text, where).all();
}

std::string hosts_in_words(std::vector<std::string> const& names) {
  std::string out = fmt::format("{} node{}: ", names.size(), names.size() == 1 ? "" : "s");
  if (names.size() <= 4) return out + fmt::format("{}", fmt::join(names, ", "));
  return out + fmt::format("{}, {}, {} … {}", names[0], names[1], names[2], names.back());
}

}  // namespace sluice::policy
