// SPDX-License-Identifier: Apache-2.0
#include "policy/site.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/suggest.h"

namespace sluice::policy {

std::vector<channel_spec> channels_of(site const& site, std::string const& qos_class_name) {
  std::vector<channel_spec> out = site.channels;
  if (qos_class_name.empty()) return out;
  qos_class const* chosen = nullptr;
  std::vector<std::string> known;
  for (auto const& c : site.classes) {
    known.push_back(c.name);
    if (c.name == qos_class_name) chosen = &c;
  }
  if (chosen == nullptr)
    throw usage_error(fmt::format("--class {}: the policy has no such class{}{}", qos_class_name,
                                  did_you_mean(qos_class_name, known), it_has(known)));
  for (auto const& [target, resources] : chosen->shares)
    for (auto const& [resource, share] : resources) {
      if (!share.limit) continue;
      channel_spec c;
      c.name = resource + "@" + target;
      c.origin = share.origin;
      c.ops = core::ops_of_selector(resource);
      c.amount = *share.limit;
      c.target = target;
      out.push_back(std::move(c));
    }
  return out;
}

namespace {

/// What the shares of a class have of one kind.
template <typename T>
std::vector<T> of_shares(site const& s, std::string const& qos_class,
                         std::optional<T> share::*member) {
  std::vector<T> out;
  for (auto const& c : s.classes)
    for (auto const& [target, resources] : c.shares)
      for (auto const& [resource, share] : resources)
        if (c.name == qos_class && share.*member) out.push_back(*(share.*member));
  return out;
}

}  // namespace

std::vector<background_terms> backgrounds_of(site const& s, std::string const& qos_class) {
  return of_shares(s, qos_class, &share::background);
}

std::vector<request_terms> promises_of(site const& s, std::string const& qos_class) {
  return of_shares(s, qos_class, &share::requests);
}

}  // namespace sluice::policy
