// SPDX-License-Identifier: Apache-2.0
// Reading a request and keeping an answer within a packet. Anybody who may connect writes requests,
// so every field is fetched through these functions.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "local/local.h"

namespace sluice::local {

using nlohmann::json;

/// The bytes of a packet as a request: an object with a "verb", nested at most 8 deep.
json parse_request(char const* data, std::size_t size);

/// Fields of a request; null counts as absent. Throw a usage error when absent or of another type.
std::string text_of(json const& request, char const* key);
std::optional<std::string> text_if(json const& request, char const* key);
std::optional<std::int64_t> whole_if(json const& request, char const* key, std::int64_t least,
                                     std::int64_t most);
bool flag_of(json const& request, char const* key, bool otherwise);

/// Rows of an answer: from request "from" on, at most request "most" of them and as many as fit a
/// packet. answer["next"] says where to go on, or null.
class page {
 public:
  /// What stands in `answer` already counts.
  page(json& answer, json const& request);

  /// The next row of all, for the list answer[key]. `make` is called when it is of this page.
  /// False: the page is full.
  template <class Make>
  bool put(char const* key, Make const& make) {
    return at_++ < from_ || add(key, make());
  }

 private:
  bool add(char const* key, json row);

  json& answer_;
  std::size_t from_, most_, at_ = 0, taken_ = 0, bytes_;
};

}  // namespace sluice::local
