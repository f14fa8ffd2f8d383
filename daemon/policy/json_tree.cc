// SPDX-License-Identifier: Apache-2.0
// nlohmann's parser reads through an iterator that counts, so at each callback we know how far it
// has come; the token it speaks of ends there, and its beginning is found by going back over it.
#include "policy/json_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "policy/counting_iterator.h"

namespace sluice::policy {

namespace {

constexpr std::size_t max_depth = 16;

class tree_builder {
 public:
  using json = nlohmann::json;

  tree_builder(std::string_view text, std::string const& name, std::size_t most_values)
      : text_(text), name_(name), most_values_(most_values), furthest_(text.data()) {}

  node build() {
    counting_iterator const begin(text_.data(), &furthest_),
        end(text_.data() + text_.size(), &furthest_);
    json::sax_parse(begin, end, this);
    return std::move(root_);
  }

  bool null() {
    put(node::null, word_start());
    return true;
  }
  bool boolean(bool truth) {
    put(node::boolean, word_start()).truth = truth;
    return true;
  }
  bool number_integer(json::number_integer_t v) { return number(static_cast<double>(v)); }
  bool number_unsigned(json::number_unsigned_t v) { return number(static_cast<double>(v)); }
  bool number_float(json::number_float_t v, json::string_t const&) { return number(v); }
  bool string(json::string_t& text) {
    put(node::string, string_start()).text = std::move(text);
    return true;
  }
  bool binary(json::binary_t&) { return false; }
  bool start_object(std::size_t) { return open(node::object); }
  bool start_array(std::size_t) { return open(node::array); }
  bool end_object() { return shut(); }
  bool end_array() { return shut(); }

  bool key(json::string_t& key) {
    std::size_t const at = string_start();
    if (!keys_.back().insert(key).second) fail(at, fmt::format("\"{}\" stands here twice", key));
    open_.back()->members.push_back({key, place(at), {}});
    return true;
  }

  bool parse_error(std::size_t, std::string const&, nlohmann::detail::exception const& e) {
    // "[json.exception…] parse error at line 1, column 2: what": we have a better place.
    std::string_view what = e.what();
    auto const colon = what.find("column ");
    if (auto const end = what.find(": ", colon);
        colon != std::string_view::npos && end != what.npos)
      what.remove_prefix(end + 2);
    fail(consumed() == 0 ? 0 : consumed() - 1, fmt::format("not JSON: {}", what));
  }

 private:
  /// A leaf or an object, put where the parser is. The pointer of a parent stays valid while its
  /// child is open, because only the innermost open node grows.
  node& put(node::kind_t kind, std::size_t at) {
    if (++count_ > most_values_) fail(at, "too many values");
    node* slot = &root_;
    if (!open_.empty() && open_.back()->kind == node::object)
      slot = &open_.back()->members.back().value;
    if (!open_.empty() && open_.back()->kind == node::array)
      slot = &open_.back()->items.emplace_back();
    slot->kind = kind;
    slot->at = place(at);
    return *slot;
  }

  bool number(double value) {
    put(node::number, word_start()).value = value;
    return true;
  }

  bool open(node::kind_t kind) {
    std::size_t const at = consumed() - 1;
    if (open_.size() == max_depth) fail(at, fmt::format("nested deeper than {}", max_depth));
    open_.push_back(&put(kind, at));
    keys_.emplace_back();
    return true;
  }

  bool shut() {
    open_.pop_back();
    keys_.pop_back();
    return true;
  }

  std::size_t consumed() const { return static_cast<std::size_t>(furthest_ - text_.data()); }

  /// Where the string began whose closing quote was read last.
  std::size_t string_start() const {
    std::size_t at = consumed() < 2 ? 0 : consumed() - 2;
    auto const escaped = [&](std::size_t quote) {
      std::size_t slashes = 0;
      while (slashes < quote && text_[quote - slashes - 1] == '\\') ++slashes;
      return slashes % 2 == 1;
    };
    while (at > 0 && (text_[at] != '"' || escaped(at))) --at;
    return at;
  }

  /// Where the number or word began; a number is known to have ended only one character later.
  std::size_t word_start() const {
    auto const in_word = [&](std::size_t i) {
      return std::isalnum(static_cast<unsigned char>(text_[i])) != 0 ||
             std::strchr("+-.", text_[i]) != nullptr;
    };
    std::size_t at = consumed();
    while (at > 0 && !in_word(at - 1)) --at;
    while (at > 0 && in_word(at - 1)) --at;
    return at;
  }

  /// Called with growing offsets, nearly: counts lines from the last place.
  position place(std::size_t at) {
    if (at < counted_) counted_ = 0, lines_ = position{};
    for (; counted_ < at && counted_ < text_.size(); ++counted_) {
      ++lines_.column;
      if (text_[counted_] == '\n') lines_ = {lines_.line + 1, 1};
    }
    return lines_;
  }

  [[noreturn]] void fail(std::size_t at, std::string const& what) {
    position const p = place(at);
    throw usage_error(fmt::format("{}:{}:{}: {}", name_, p.line, p.column, what));
  }

  std::string_view text_;
  std::string const& name_;
  std::size_t const most_values_;
  char const* furthest_;
  node root_;
  std::vector<node*> open_;
  std::vector<std::set<std::string>> keys_;  // of each of these
  std::size_t count_ = 0;
  std::size_t counted_ = 0;
  position lines_;
};

}  // namespace

node const* node::find(std::string_view key) const {
  for (auto const& m : members)
    if (m.key == key) return &m.value;
  return nullptr;
}

char const* kind_name(node const& n) {
  static constexpr char const* names[] = {"null",     "true or false", "a number",
                                          "a string", "an object",     "an array"};
  return names[n.kind];
}

node parse_json(std::string_view text, std::string const& name, std::size_t most_values) {
  if (text.size() > most_text) throw usage_error(name + ": larger than 1 MiB");
  return tree_builder(text, name, most_values).build();
}

}  // namespace sluice::policy
