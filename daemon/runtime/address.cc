// SPDX-License-Identifier: Apache-2.0
#include "runtime/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include "base/error.h"
#include "base/number.h"

namespace sluice::runtime {

namespace {

constexpr std::string_view scheme = "tcp://";

}  // namespace

std::pair<std::string, std::uint16_t> host_and_port(std::string_view text,
                                                    std::string const& where) {
  auto const colon = text.rfind(':');
  std::string_view host = text.substr(0, colon);
  std::uint16_t port = 0;
  bool good = colon != text.npos && !host.empty();
  if (good) {
    std::string_view const digits = text.substr(colon + 1);
    good = to_number(digits, port);
  }
  bool const bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (!good || (!bracketed && host.find_first_of("[]: /") != host.npos))
    throw usage_error(fmt::format("{}: wanted HOST:PORT, like 127.0.0.1:9742", where));
  return {std::string(host), port};
}

void check_endpoint(std::string_view text, bool may_choose, std::string const& where) {
  auto const refuse = [&](char const* why) {
    return usage_error(fmt::format("{}: {}; write it like tcp://ctl.example.org:7421", where, why));
  };
  if (!text.starts_with(scheme)) throw refuse("an address begins with tcp://");
  text.remove_prefix(scheme.size());
  if (may_choose && text.ends_with(":*") && text.size() > 2) return;
  try {
    if (host_and_port(text, where).second == 0) throw refuse("the port is missing");
  } catch (error const&) {
    throw refuse("it has no host and port");
  }
}

bool is_loopback(std::string_view address) {
  if (address.starts_with(scheme)) address.remove_prefix(scheme.size());
  if (address == "::1") return true;  // bare, as a connection tells its other end
  std::string_view const host = address.substr(0, address.rfind(':'));
  in_addr v4 = {};
  if (inet_pton(AF_INET, std::string(host).c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  return host == "[::1]" || host == "localhost";
}

}  // namespace sluice::runtime
