// SPDX-License-Identifier: Apache-2.0
// HOST:PORT and tcp://HOST:PORT in the daemon's settings.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace sluice::runtime {

/// `127.0.0.1:9100`, `[::1]:9100`. Throws a usage error that begins with `where`.
std::pair<std::string, std::uint16_t> host_and_port(std::string_view text,
                                                    std::string const& where);

/// tcp://HOST:PORT, or tcp://HOST:* where `may_choose`.
void check_endpoint(std::string_view text, bool may_choose, std::string const& where);

/// True for 127.0.0.0/8, ::1, localhost; without tcp:// too.
bool is_loopback(std::string_view address);

}  // namespace sluice::runtime
