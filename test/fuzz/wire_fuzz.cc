// SPDX-License-Identifier: Apache-2.0
// Any bytes from the network: refused, or a message that means the same after another round. The
// first byte chooses: bytes as they are; blocks behind a header that is right; or a message made
// from the table (test/daemon/wire/wire_random.h) with a few bytes changed.
#include <cstdlib>
#include <cstring>
#include <span>

#include "../daemon/wire/wire_random.h"

namespace {

using sluice::test::bytes;

void must_be_valid(bytes const& b) {
  auto const first = sluice::wire::decode(b);
  if (first.refused != nullptr) return;
  bytes const again = sluice::test::encoded(first.head, first.body);
  auto const second = sluice::wire::decode(again);
  if (second.refused != nullptr || second.body.index() != first.body.index()) std::abort();
  if (sluice::test::encoded(second.head, second.body) != again) std::abort();
}

void put_length(bytes& b) {
  auto const length = static_cast<std::uint32_t>(b.size());
  std::memcpy(b.data() + 8, &length, sizeof length);
}

bytes behind_header(std::uint8_t which, std::span<unsigned char const> data) {
  bytes b = sluice::test::encoded({}, sluice::wire::bye{});
  b[6] = static_cast<std::byte>(1 + which % sluice::test::message_count);
  b[12] = static_cast<std::byte>(which >> 7);
  for (unsigned char c : data) b.push_back(static_cast<std::byte>(c));
  put_length(b);
  return b;
}

bytes changed_message(std::uint8_t which, std::span<unsigned char const> data) {
  std::mt19937_64 random(data.empty() ? 0 : data[0]);
  bytes b = sluice::test::encoded(
      {}, sluice::test::random_message(which % sluice::test::message_count, random));
  for (std::size_t i = 1; i + 2 < data.size(); i += 3)
    b[(data[i] + std::size_t{256} * data[i + 1]) % b.size()] = static_cast<std::byte>(data[i + 2]);
  if (which >= 128) put_length(b);
  return b;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) {
  if (size < 2) return 0;
  std::span const rest(data + 2, size - 2);
  if (data[0] % 3 == 0) {
    bytes b(rest.size());
    if (!b.empty()) std::memcpy(b.data(), rest.data(), rest.size());
    must_be_valid(b);
  } else {
    must_be_valid(data[0] % 3 == 1 ? behind_header(data[1], rest) : changed_message(data[1], rest));
  }
  return 0;
}
