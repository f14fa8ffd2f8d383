// SPDX-License-Identifier: Apache-2.0
#include "wire/message.h"

#include <sodium/crypto_generichash.h>

#include <array>
#include <cstring>

namespace sluice::wire {

namespace {

constexpr std::uint64_t fnv_begin = 0xcbf29ce484222325u;

constexpr std::uint64_t fnv(std::string_view text, std::uint64_t hash = fnv_begin) {
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

/// 32 of 64 bits, folded; 0 is kept for "none".
constexpr std::uint32_t fold(std::uint64_t hash) {
  auto const folded = static_cast<std::uint32_t>(hash ^ (hash >> 32));
  return folded == 0 ? 1 : folded;
}

}  // namespace

/// The uid is of a fixed length and comes first, so no two jobs give one text.
core::job_id job_key(std::uint32_t uid, std::string_view name) {
  std::string text(sizeof uid, '\0');
  std::memcpy(text.data(), &uid, sizeof uid);
  text += name;
  std::array<std::uint64_t, 2> hash;
  crypto_generichash(reinterpret_cast<unsigned char*>(hash.data()), sizeof hash,
                     reinterpret_cast<unsigned char const*>(text.data()), text.size(), nullptr, 0);
  core::job_id id;
  id.high = hash[0];
  id.low = hash[1];
  return id;
}

std::uint64_t peer_key(std::uint32_t number, std::string_view name) {
  return fnv(name, fnv(std::to_string(number) + "/"));
}

std::uint32_t supply_key(std::string_view resource, std::string_view target) {
  return fold(fnv(target, fnv("@", fnv(resource))));
}

void put_bins(report& to, std::uint32_t stream, policies::demand_bins const& bins) {
  stream_report& s = to.streams[stream];
  s.has_bins = true;
  s.blocked = bins.blocked;
  s.blocked_weight = bins.blocked_weight;
  for (std::uint16_t b = 0; b < policies::demand_bins::count; ++b)
    if (bins.nodes[b] != 0 || bins.demand[b] != 0)
      to.bins.push_back({stream, b, bins.nodes[b], bins.demand[b]});
}

policies::demand_bins histogram(std::uint32_t blocked, std::uint64_t blocked_weight,
                                std::span<demand_bin const> bins) {
  policies::demand_bins out;
  out.blocked = blocked;
  out.blocked_weight = blocked_weight;
  for (demand_bin const& b : bins) {
    out.nodes[b.bin] = b.nodes;
    out.demand[b.bin] = b.demand;
  }
  return out;
}

std::uint32_t class_key(std::string_view name) { return fold(fnv(name)); }

}  // namespace sluice::wire
