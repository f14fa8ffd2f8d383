// SPDX-License-Identifier: Apache-2.0
// The requests of an application, such as GET and PUT: which of its calls they are, and which roles
// do work because of them. A class may promise its jobs so many of them a second; the node turns
// that into VOPs by what they cost (policies/request_profile.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "policy/limit.h"
#include "policy/reading.h"

namespace sluice::policy {

struct cost_file;
struct role_spec;

/// One kind of request. Work of no role is counted for two kinds.
struct request_spec {
  std::string name, origin;
  std::string call;  // selectors, for people
  std::uint64_t ops = 0;
  std::string role;                 // empty: any
  std::string size;                 // as it was written: so many bytes are one request
  std::uint64_t size_bytes = 0;     // 0: each call is one
  std::vector<std::string> causes;  // roles
};

/// The section "requests" of a policy. Throws usage errors with file, line and column.
std::vector<request_spec> read_requests(reading const& r, node const& n,
                                        std::vector<role_spec> const& roles);

struct promised_request {
  request_spec what;
  double per_s = 0;
  double first_vops = 0;  // of one, while none has been seen: alone, and causing nothing
};

/// What jobs of a class are promised on a supply of VOPs.
struct request_terms {
  std::string supply;  // vops@scratch
  std::string origin;
  std::vector<promised_request> promised;
  bool has_most = false;  // the reservation beside it is the most that they may come to
};

/// The value of "requests" in a share: rates by name of a request.
request_terms read_promises(reading const& r, node const& n, std::string const& supply,
                            std::vector<request_spec> const& known, cost_file const& costs,
                            std::string const& path);

/// What they come to while nothing is known of them.
rate first_of(request_terms const& t);

/// The channels that count one kind of request on a supply; they limit nothing.
struct request_channels {
  std::string own;                  // VOPs and calls
  std::string bytes;                // empty: each call is a request
  std::vector<std::string> caused;  // VOPs by role
};
request_channels channels_of(request_terms const& t, request_spec const& what);
/// By its name.
bool is_request_channel(std::string const& name);
void add_request_channels(std::vector<request_terms> const& of,
                          std::vector<channel_spec>& channels);

/// `500 get/s`, `800 put/s`.
std::vector<std::string> requests_in_words(request_terms const& t);
/// `request put: each 1KiB of write of role log, and causes flush`.
std::string request_in_words(request_spec const& s);

}  // namespace sluice::policy
