// SPDX-License-Identifier: Apache-2.0
// messages.def as C++: layout_of<M>::visit shows every block and field of a message to a visitor
// (codec.cc writes and reads with it, the tests fill and compare), `rows` is the same as a table. A
// rule says which values of a field are valid, and makes a value fit: an encoded message is always
// accepted. An access says where the entries of a block live in the message, and refuses an entry
// that contradicts what was read before it.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/most_supplies.h"
#include "wire/message.h"

namespace sluice::wire::layout {

using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;

inline constexpr u32 magic_word = 0x43554c53;  // "SLUC"
inline constexpr unsigned header_bytes = 48;
inline constexpr unsigned block_bytes = 8;  // kind u16, bytes of an entry u16, count u32

struct header {
  u32 magic = magic_word;
  u16 major = major_version;
  u16 type = 0;
  u32 length = 0;
  envelope env;
};

namespace rule {

template <auto Least, auto Most>
struct between {
  static constexpr bool holds(auto v) {
    return std::cmp_greater_equal(v, Least) && std::cmp_less_equal(v, Most);
  }
  template <class T>
  static constexpr T fit(T v) {
    if (std::cmp_less(v, Least)) return static_cast<T>(Least);
    return std::cmp_greater(v, Most) ? static_cast<T>(Most) : v;
  }
};

struct any {
  static constexpr bool holds(auto const&) { return true; }
  static constexpr auto fit(auto v) { return v; }
};
struct magic : between<magic_word, magic_word> {};
struct role : between<1, 4> {};
struct fault : between<1, 5> {};
struct boolean : between<0, 1> {};
struct errno_word : between<0, 4095> {};
struct ppm : between<0, 1000000> {};
struct bin : between<0, static_cast<int>(policies::demand_bins::count) - 1> {};
struct level : between<0, 16> {};
struct supply_key : between<1, 0xffffffffu> {};
struct rate : between<0, most_rate> {};
struct policy_bytes : between<0, 1 << 20> {};
struct span : between<0, 3'600'000'000'000> {};
struct period : between<1'000'000, 3'600'000'000'000> {};
/// Names and texts end up in logs and terminals.
struct printable {
  static constexpr bool holds(char c) { return c >= 0x20 && c < 0x7f; }
  static constexpr char fit(char c) { return holds(c) ? c : '?'; }
};

}  // namespace rule

// ---- where the entries of a block live ----
// count, each: to write. reserve, then append and objection, or take, per entry: to read.

template <class Message, class Entry, std::vector<Entry> Message::*Member>
struct in_vector {
  using entry = Entry;
  static std::size_t count(Message const& m) { return (m.*Member).size(); }
  static void each(Message const& m, auto&& f) {
    for (Entry const& e : m.*Member) f(e);
  }
  static void reserve(Message& m, std::size_t n) { (m.*Member).reserve(n); }
  /// Room for one more, to be read where it stays: an entry may be half a kilobyte.
  static Entry& append(Message& m) { return (m.*Member).emplace_back(); }
  static char const* objection(Message const&, Entry const&) { return nullptr; }
};

struct in_jobs : in_vector<job_list, job_entry, &job_list::jobs> {};
struct in_memberships : in_vector<gate_join, gate_member, &gate_join::jobs> {};
struct in_written : in_vector<gate_known, gate_row, &gate_known::jobs> {};

/// A stream, a share or a speed names its supply by position.
template <class Message, class Entry, std::vector<Entry> Message::*Member>
struct in_positions : in_vector<Message, Entry, Member> {
  static char const* objection(Message const& m, Entry const& e) {
    return e.supply < m.supplies.size() ? nullptr
                                        : "a stream of a supply that is not in the message";
  }
};
struct in_streams : in_positions<report, stream_report, &report::streams> {};
struct in_speeds : in_positions<report, speed_entry, &report::speeds> {};
struct in_shares : in_positions<grant, stream_grant, &grant::streams> {};

/// Supplies: the key and what the lease protocol says of it lie in two vectors of equal length.
template <class Message, class Is>
struct in_supplies {
  struct entry {
    u32 key = 0;
    Is is;
  };
  static std::size_t count(Message const& m) {
    assert(m.supplies.size() == m.lease.supply.size());
    return m.supplies.size();
  }
  static void each(Message const& m, auto&& f) {
    for (std::size_t i = 0; i < m.supplies.size(); ++i) f(entry{m.supplies[i], m.lease.supply[i]});
  }
  static void reserve(Message& m, std::size_t n) {
    m.supplies.reserve(std::min<std::size_t>(n, most_supplies));
    m.lease.supply.reserve(std::min<std::size_t>(n, most_supplies));
  }
  static char const* take(Message& m, entry&& e) {
    if (m.supplies.size() >= most_supplies) return "too many supplies";
    if (std::find(m.supplies.begin(), m.supplies.end(), e.key) != m.supplies.end())
      return "a supply twice";
    m.supplies.push_back(e.key);
    m.lease.supply.push_back(e.is);
    return nullptr;
  }
};
struct in_holdings : in_supplies<report, lease::holding> {};
struct in_given : in_supplies<grant, lease::given> {};

/// Histograms are sparse: a `blocked` entry says that a stream has one, a `bin` entry is one bin
/// of it that is not empty.
struct in_blocked {
  struct entry {
    u32 stream = 0;
    u32 blocked = 0;
    u64 weight = 0;
  };
  static void each(report const& m, auto&& f) {
    for (std::size_t i = 0; i < m.streams.size(); ++i)
      if (m.streams[i].has_bins)
        f(entry{static_cast<u32>(i), m.streams[i].blocked, m.streams[i].blocked_weight});
  }
  static std::size_t count(report const& m) {
    std::size_t n = 0;
    for (auto const& s : m.streams) n += s.has_bins;
    return n;
  }
  static void reserve(report&, std::size_t) {}
  static char const* take(report& m, entry&& e) {
    if (e.stream >= m.streams.size()) return "a histogram of no stream";
    stream_report& s = m.streams[e.stream];
    if (s.has_bins) return "a histogram twice";
    s.has_bins = true;
    s.blocked = e.blocked;
    s.blocked_weight = e.weight;
    return nullptr;
  }
};

struct in_bins : in_vector<report, demand_bin, &report::bins> {
  static char const* objection(report const& m, demand_bin const& e) {
    if (e.stream >= m.streams.size() || !m.streams[e.stream].has_bins)
      return "a bin of no histogram";
    if (e.nodes == 0 && e.demand == 0) return "an empty bin";
    std::size_t before = m.bins.size();
    if (before > 0 && &m.bins.back() == &e) --before;
    if (before == 0) return nullptr;
    demand_bin const& last = m.bins[before - 1];
    bool const follows = last.stream < e.stream || (last.stream == e.stream && last.bin < e.bin);
    return follows ? nullptr : "bins that are not in order";
  }
};

/// What several fields say together.
constexpr char const* contradiction(auto const&) { return nullptr; }
inline char const* contradiction(policy_part const& m) {
  return m.offset + m.text.size() > m.total_bytes ? "a part beyond the end of the policy" : nullptr;
}
inline char const* contradiction(report const& m) {
  return m.same_streams && !m.streams.empty() ? "streams that are said not to be there" : nullptr;
}

// ---- the table, as visitors ----

enum class sender : std::uint8_t { child = 1, parent = 2, either = 3 };

template <class M>
struct layout_of;

// clang-format off
#define HEADER template <> struct layout_of<header> { static void visit(auto& f, auto& e) {
#define HEADER_END(bytes) } };
#define MESSAGE(number, name, from) \
  template <> struct layout_of<wire::name> { \
    static constexpr u16 type = number; \
    static constexpr sender who = sender::from; \
    static void visit(auto& v, auto& m) { (void)v; (void)m;
#define ONE(kind, block) v.one(kind, m, [](auto& f, auto& e) {
#define MANY(kind, block, access) v.template many<access>(kind, m, [](auto& f, auto& e) {
#define FIELD(type, member, allowed) f.template field<type>(e.member, rule::allowed{});
#define NAME(bytes, member) f.template name<bytes>(e.member);
#define SPARE(type) f.template spare<type>();
#define END(bytes) }, bytes);
#define TEXT(kind, member, most, allowed) v.text(kind, m.member, most, rule::allowed{});
#define DONE } };
#include "wire/messages.def"

/// Who may send the alternatives of `message`, by index.
template <class... M>
consteval auto sender_table(std::variant<M...> const*) {
  return std::array{layout_of<M>::who...};
}
inline constexpr auto senders = sender_table(static_cast<message const*>(nullptr));

// ---- the table, as rows ----

struct row {
  enum what { header, message, one, many, text, field, label, spare, end, done };
  what is;
  unsigned number = 0;    // type of a message, kind of a block
  std::string_view name;  // of a message, block or member
  unsigned bytes = 0;     // of a field, a name, an entry; at most, of a text
  std::string_view rule;  // of a field or text; access of a block, sender of a message
  std::string_view type = "";  // of a field
};

inline constexpr row rows[] = {
#define HEADER {row::header, 0, "header", 0, ""},
#define HEADER_END(bytes) {row::end, 0, "", bytes, ""},
#define MESSAGE(number, name, from) {row::message, number, #name, 0, #from},
#define ONE(kind, block) {row::one, kind, #block, 0, ""},
#define MANY(kind, block, access) {row::many, kind, #block, 0, #access},
#define FIELD(type, member, allowed) {row::field, 0, #member, sizeof(type), #allowed, #type},
#define NAME(bytes, member) {row::label, 0, #member, bytes, "printable"},
#define SPARE(type) {row::spare, 0, "", sizeof(type), ""},
#define END(bytes) {row::end, 0, "", bytes, ""},
#define TEXT(kind, member, most, allowed) {row::text, kind, #member, most, #allowed},
#define DONE {row::done, 0, "", 0, ""},
#include "wire/messages.def"
};
// clang-format on

/// Natural alignment, sizes as written; types ascend, kinds do within a message, and each is used
/// once.
constexpr bool is_sound() {
  unsigned at = 0, kind = 0, kinds = 0, type = 0;
  u64 used = 0;
  for (row const& r : rows) {
    bool const is_block = r.is == row::one || r.is == row::many || r.is == row::text;
    if (is_block || r.is == row::header) at = 0;
    if (r.is == row::message) {
      if (r.number != ++type) return false;
      kind = 0;
    }
    if (is_block) {
      if (r.number <= kind || r.number > 63 || (used >> r.number & 1) != 0) return false;
      kind = r.number;
      used |= u64{1} << kind;
      ++kinds;
    }
    if (r.is == row::field || r.is == row::spare || r.is == row::label) {
      if (at % (r.is == row::label ? 8 : r.bytes) != 0) return false;
      at += r.bytes;
    }
    if (r.is == row::end && (at != r.bytes || at % 8 != 0)) return false;
  }
  return used == (u64{2} << kinds) - 2;
}
static_assert(is_sound());

/// Of a block that has entries, by its name.
consteval unsigned entry_bytes(std::string_view block) {
  bool is_found = false;
  for (row const& r : rows) {
    if (r.is == row::one || r.is == row::many) is_found = r.name == block;
    if (r.is == row::end && is_found) return r.bytes;
  }
  return 0;
}

}  // namespace sluice::wire::layout
