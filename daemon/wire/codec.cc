// SPDX-License-Identifier: Apache-2.0
// Two visitors of layout.h: writer and reader. The reader walks the blocks of a message in the
// order of the table; the first thing that is wrong ends it, and the message is refused whole.
#include "wire/codec.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <utility>

#include "wire/layout.h"

namespace sluice::wire {

namespace {

using namespace layout;

template <class T>
void store(std::byte* to, T value) {
  static_assert(std::endian::native == std::endian::little);
  std::memcpy(to, &value, sizeof value);
}

template <class T>
T load(std::byte const* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

constexpr std::size_t padded(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

// ---- writing ----

/// One entry; its bytes are there already, and 0.
struct entry_writer {
  std::byte* at;

  template <class T, class Member>
  void field(Member const& m, auto rule) {
    if constexpr (std::is_enum_v<Member> || std::is_same_v<Member, bool>)
      store(at, static_cast<T>(m));
    else
      store(at, static_cast<T>(rule.fit(m)));
    at += sizeof(T);
  }
  template <std::size_t Bytes>
  void name(std::string const& text) {
    std::size_t const n = std::min(text.size(), Bytes - 1);
    std::transform(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(n),
                   reinterpret_cast<char*>(at), rule::printable::fit);
    at += Bytes;
  }
  template <class T>
  void spare() {
    at += sizeof(T);
  }
};

struct writer {
  std::vector<std::byte>& out;

  std::byte* block(unsigned kind, std::size_t entry_bytes, std::size_t count) {
    std::size_t const begin = out.size();
    out.resize(begin + block_bytes + padded(entry_bytes * count));
    std::byte* const at = out.data() + begin;
    store(at, static_cast<u16>(kind));
    store(at + 2, static_cast<u16>(entry_bytes));
    store(at + 4, static_cast<u32>(count));
    return at + block_bytes;
  }
  template <class M>
  void one(unsigned kind, M const& m, auto fields, unsigned bytes) {
    entry_writer entry{block(kind, bytes, 1)};
    fields(entry, m);
  }
  template <class Access, class M>
  void many(unsigned kind, M const& m, auto fields, unsigned bytes) {
    std::size_t const count = Access::count(m);
    if (count == 0) return;
    entry_writer entry{block(kind, bytes, count)};
    Access::each(m, [&](auto const& e) { fields(entry, e); });
  }
  void text(unsigned kind, std::string const& text, std::size_t most, auto rule) {
    std::size_t const n = std::min(text.size(), most);
    if (n == 0) return;
    std::transform(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(n),
                   reinterpret_cast<char*>(block(kind, 1, n)), [&](char c) { return rule.fit(c); });
  }
};

// ---- reading ----

/// One entry of `have` bytes.
struct entry_reader {
  std::byte const* at;
  std::size_t have;
  bool is_foreign;  // the sender's major version is another
  char const* why = nullptr;

  bool take(std::size_t bytes) {
    if (have >= bytes) {
      have -= bytes;
      at += bytes;
      return true;
    }
    have = 0;
    why = "an entry too short";
    return false;
  }
  template <class T, class Member>
  void field(Member& m, auto rule) {
    if (!take(sizeof(T))) return;
    T const value = load<T>(at - sizeof(T));
    if (rule.holds(value))
      m = static_cast<Member>(value);
    else
      why = "a value out of range";
  }
  template <std::size_t Bytes>
  void name(std::string& text) {
    if (!take(Bytes)) return;
    auto const* const begin = reinterpret_cast<char const*>(at - Bytes);
    auto const* const end = std::find(begin, begin + Bytes, '\0');
    if (end == begin + Bytes || !std::all_of(begin, end, rule::printable::holds) ||
        std::any_of(end, begin + Bytes, [](char c) { return c != 0; }))
      why = "a name that is not one";
    else
      text.assign(begin, end);
  }
  /// What a peer of another version puts here is not ours to judge.
  template <class T>
  void spare() {
    if (take(sizeof(T)) && load<T>(at - sizeof(T)) != 0 && !is_foreign) why = "spare bytes are set";
  }
};

struct reader {
  std::span<std::byte const> rest;  // blocks not read yet
  bool is_foreign;
  char const* why = nullptr;

  struct block {
    unsigned kind = 0;
    std::size_t entry_bytes = 0, count = 0;
    std::byte const* entries = nullptr;
  };

  /// The block that comes next, without taking it; kind 0: none.
  block next() {
    block b;
    if (why != nullptr || rest.empty()) return b;
    if (rest.size() < block_bytes) {
      why = "it ends within a block";
      return b;
    }
    b = {load<u16>(rest.data()), load<u16>(rest.data() + 2), load<u32>(rest.data() + 4),
         rest.data() + block_bytes};
    if (b.kind == 0 || b.entry_bytes == 0 || b.count == 0 ||
        (b.entry_bytes != 1 && b.entry_bytes % 8 != 0))
      why = "a block that is not one";
    else if (b.count > (rest.size() - block_bytes) / b.entry_bytes ||
             padded(b.count * b.entry_bytes) > rest.size() - block_bytes)
      why = "it ends within a block";
    if (why != nullptr) b.kind = 0;
    return b;
  }
  void take(block const& b) { rest = rest.subspan(block_bytes + padded(b.count * b.entry_bytes)); }

  template <class E>
  void entry(block const& b, std::size_t i, E& e, auto fields) {
    entry_reader from{b.entries + i * b.entry_bytes, b.entry_bytes, is_foreign};
    fields(from, e);
    if (from.why != nullptr) why = from.why;
  }
  bool is_too_long(block const& b, unsigned bytes) {
    if (b.entry_bytes > bytes && !is_foreign) why = "an entry too long for its version";
    return why != nullptr;
  }
  template <class M>
  void one(unsigned kind, M& m, auto fields, unsigned bytes) {
    block const b = next();
    if (why == nullptr && (b.kind != kind || b.count != 1)) why = "it lacks its first block";
    if (why != nullptr || is_too_long(b, bytes)) return;
    entry(b, 0, m, fields);
    take(b);
  }
  template <class Access, class M>
  void many(unsigned kind, M& m, auto fields, unsigned bytes) {
    block const b = next();
    if (b.kind != kind || is_too_long(b, bytes)) return;
    Access::reserve(m, b.count);  // no more than the bytes that are there
    for (std::size_t i = 0; i < b.count && why == nullptr; ++i) {
      if constexpr (requires { Access::append(m); }) {
        auto& e = Access::append(m);
        entry(b, i, e, fields);
        if (why == nullptr) why = Access::objection(m, e);
      } else {
        typename Access::entry e;
        entry(b, i, e, fields);
        if (why == nullptr) why = Access::take(m, std::move(e));
      }
    }
    take(b);
  }
  void text(unsigned kind, std::string& text, std::size_t most, auto rule) {
    block const b = next();
    if (b.kind != kind) return;
    auto const* const begin = reinterpret_cast<char const*>(b.entries);
    auto const* const end = begin + b.count;
    if (b.entry_bytes != 1 || b.count > most ||
        !std::all_of(begin, end, [&](char c) { return rule.holds(c); }) ||
        std::any_of(end, begin + padded(b.count), [](char c) { return c != 0; }))
      why = "a text that is not one";
    else
      text.assign(begin, end);
    take(b);
  }
  /// What a peer of another version appended is stepped over.
  void finish() {
    while (why == nullptr && !rest.empty()) {
      block const b = next();
      if (why == nullptr && !is_foreign) why = "a block that does not belong here";
      if (why == nullptr) take(b);
    }
  }
};

template <class M>
char const* read(std::span<std::byte const> blocks, bool is_foreign, message& into) {
  reader r{blocks, is_foreign};
  M& m = into.emplace<M>();
  layout_of<M>::visit(r, m);
  r.finish();
  return r.why != nullptr ? r.why : contradiction(std::as_const(m));
}

using read_function = char const* (*)(std::span<std::byte const>, bool, message&);

template <class... M>
consteval auto reader_table(std::variant<M...> const*) {
  std::array<read_function, sizeof...(M) + 1> table{};
  ((table[layout_of<M>::type] = read<M>), ...);
  return table;
}
constexpr auto readers = reader_table(static_cast<message const*>(nullptr));

/// Checks everything but the blocks.
char const* read_header(std::span<std::byte const> bytes, header& h, decoded& d) {
  if (bytes.size() < header_bytes) return "shorter than a header";
  if (bytes.size() > most_bytes) return "too long";
  d.other_major = load<u16>(bytes.data() + 4) != major_version;
  entry_reader from{bytes.data(), header_bytes, d.other_major};
  layout_of<header>::visit(from, h);
  d.head = h.env;
  if (from.why != nullptr) {
    d.other_major = false;
    return "not of this protocol";
  }
  if (h.length != bytes.size()) return "its length is not the one it says";
  bool const is_error = h.type == layout_of<error>::type;
  if (d.other_major && !is_error) return "of another major version";
  if (h.type == 0 || h.type >= readers.size()) return "of a type that is not known";
  return nullptr;
}

}  // namespace

std::size_t bytes_of(report_size const& r) {
  constexpr std::size_t of_supply = entry_bytes("holding") + entry_bytes("speed");
  constexpr std::size_t blocks = 6 * block_bytes;
  return header_bytes + blocks + entry_bytes("report") + of_supply * r.supplies +
         entry_bytes("stream") * r.streams + entry_bytes("blocked") * r.histograms +
         entry_bytes("bin") * r.bins;
}

bool is_at_work(stream_report const& s) {
  return s.served != 0 || s.waiting != 0 || s.waiters != 0 || s.blocked_ppm != 0;
}

bool has_room_left(report const& r, role sender) {
  if (sender == role::node) return r.streams.size() < most_streams(r.supplies.size());
  auto const histograms = std::ranges::count_if(r.streams, &stream_report::has_bins);
  report_size const with_one_more = {r.supplies.size(), r.streams.size() + 1,
                                     static_cast<std::size_t>(histograms) + 1,
                                     r.bins.size() + policies::demand_bins::count};
  return bytes_of(with_one_more) <= most_bytes;
}

std::size_t most_streams(std::size_t supplies) {
  constexpr std::size_t most = 1000;
  std::size_t const others = std::min(bytes_of({.supplies = supplies}), most_bytes_node);
  return std::min(most, (most_bytes_node - others) / entry_bytes("stream"));
}

void encode(envelope const& e, message const& m, std::vector<std::byte>& out) {
  out.clear();
  out.resize(header_bytes);
  header h;
  h.env = e;
  std::visit(
      [&]<class M>(M const& body) {
        h.type = layout_of<M>::type;
        writer w{out};
        layout_of<M>::visit(w, body);
      },
      m);
  h.length = static_cast<u32>(out.size());
  entry_writer head{out.data()};
  layout_of<header>::visit(head, h);
}

decoded decode(std::span<std::byte const> bytes) {
  decoded d;
  header h;
  d.refused = read_header(bytes, h, d);
  if (d.refused == nullptr)
    d.refused = readers[h.type](bytes.subspan(header_bytes), d.other_major, d.body);
  if (d.refused != nullptr) d.body = bye{};
  return d;
}

}  // namespace sluice::wire
