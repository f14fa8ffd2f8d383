// SPDX-License-Identifier: Apache-2.0
// Messages with random contents, made from the table: whatever it has a rule for gets a value
// within the rule. Comparison is by the bytes they encode to.
#pragma once

#include <random>
#include <vector>

#include "wire/codec.h"
#include "wire/layout.h"

namespace sluice::test {

using bytes = std::vector<std::byte>;

struct filler {
  std::mt19937_64& random;
  unsigned most_entries = 9;

  std::uint64_t up_to(std::uint64_t most) { return random() % (most + 1); }

  std::string text(std::size_t most) {
    std::string t(up_to(most), ' ');
    for (char& c : t) c = static_cast<char>(0x20 + up_to(0x7e - 0x20));
    return t;
  }
  template <class T, class Member>
  void field(Member& m, auto rule) {
    do {  // small numbers often, so that positions meet something
      auto value = static_cast<T>(random() >> up_to(63));
      if (random() % 4 == 0) value = static_cast<T>(up_to(3));
      value = rule.fit(value);
      m = static_cast<Member>(value);
    } while (!rule.holds(static_cast<T>(m)));
  }
  template <std::size_t Bytes>
  void name(std::string& m) {
    m = text(Bytes - 1);
  }
  template <class T>
  void spare() {}
  void may_end() {}

  template <class M>
  void one(unsigned, M& m, auto fields, unsigned) {
    fields(*this, m);
  }
  template <class Access, class M>
  void many(unsigned, M& m, auto fields, unsigned) {
    for (auto n = up_to(most_entries); n > 0; --n) {
      typename Access::entry e;
      fields(*this, e);
      if constexpr (requires { Access::append(m); }) {
        if (Access::objection(m, e) == nullptr) Access::append(m) = e;
      } else {
        Access::take(m, std::move(e));  // one that does not fit the others is left out
      }
    }
  }
  void text(unsigned, std::string& m, std::size_t most, auto) { m = text(most); }
};

template <std::size_t... Is>
wire::message random_message(std::size_t which, filler& fill, std::index_sequence<Is...>) {
  wire::message m;
  (void)((Is == which &&
          (wire::layout::layout_of<std::variant_alternative_t<Is, wire::message>>::visit(
               fill, m.emplace<Is>()),
           true)) ||
         ...);
  if (auto* part = std::get_if<wire::policy_part>(&m)) {
    part->offset = static_cast<std::uint32_t>(part->offset % (1u << 19));
    part->total_bytes = part->offset + static_cast<std::uint32_t>(part->text.size());
  }
  if (auto* r = std::get_if<wire::report>(&m)) r->same_streams &= r->streams.empty();
  return m;
}

inline constexpr std::size_t message_count = std::variant_size_v<wire::message>;

inline wire::message random_message(std::size_t which, std::mt19937_64& random) {
  filler fill{random};
  return random_message(which, fill, std::make_index_sequence<message_count>{});
}

inline wire::envelope random_envelope(std::mt19937_64& random) {
  return {random(), random(), random()};
}

inline bytes encoded(wire::envelope const& e, wire::message const& m) {
  bytes out;
  wire::encode(e, m, out);
  return out;
}

}  // namespace sluice::test
