// SPDX-License-Identifier: Apache-2.0
// Reading a request and keeping an answer within a packet. A request is written by anybody who may
// connect, so every field is fetched through these.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
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

/// Puts a part of `rows` into answer[key], from request "from" on, at most request "most" rows and
/// as many as fit a packet, and answer["next"]: where to go on, or null.
void put_page(json& answer, char const* key, json const& request, json rows);

}  // namespace sluice::local
