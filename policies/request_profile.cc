// SPDX-License-Identifier: Apache-2.0
#include "policies/request_profile.h"

#include <algorithm>
#include <cmath>

namespace sluice::policies {

namespace {

__extension__ using u128 = unsigned __int128;

constexpr double own_s = 1, caused_s = 120;
constexpr double most_cost = 1e6;      // VOPs of one request, as of a cost file
constexpr double few_requests = 0.01;  // left of what was seen: too few to divide by

double divided(double vops, double requests) { return std::min(vops / requests, most_cost); }

}  // namespace

request_profile::request_profile(std::vector<promised_requests> promised)
    : promised_(std::move(promised)), kinds_(promised_.size()), costs_(promised_.size()) {
  for (std::size_t i = 0; i < promised_.size(); ++i)
    costs_[i].own = kinds_[i].own_cost = promised_[i].first_vops;
}

void request_profile::look(std::span<request_look const> seen, double all_vops, double span_s) {
  double const own_stays = std::exp(-span_s / own_s), caused_stays = std::exp(-span_s / caused_s);
  served_vops_ = served_vops_ * caused_stays + all_vops;
  counted_vops_ *= caused_stays;
  for (auto const& l : seen) counted_vops_ += l.own_vops + l.caused_vops;
  double const believed = counted_vops_ > served_vops_ ? served_vops_ / counted_vops_ : 1;
  for (std::size_t i = 0; i < kinds_.size() && i < seen.size(); ++i) {
    kind& k = kinds_[i];
    request_look const& l = seen[i];
    k.own = k.own * own_stays + l.own_vops;
    k.own_requests = k.own_requests * own_stays + l.requests;
    if (k.own_requests > few_requests) k.own_cost = divided(k.own, k.own_requests);
    if (l.requests > 0) {
      k.caused *= caused_stays;
      k.caused_requests *= caused_stays;
    }
    k.caused += l.caused_vops;
    k.caused_requests += l.requests;
    costs_[i].own = k.own_cost * believed;
    costs_[i].caused =
        k.caused_requests > few_requests ? divided(k.caused, k.caused_requests) * believed : 0;
  }
}

rate request_profile::need() const {
  double vops = 0;
  for (std::size_t i = 0; i < promised_.size(); ++i) vops += promised_[i].per_s * costs_[i].all();
  return static_cast<rate>(std::clamp(vops * 1000, 0.0, 1e18));
}

void fit(std::span<followed_need> needs, rate room) {
  u128 least = 0, above = 0;
  for (auto& n : needs) {
    n.given = std::clamp(n.need, n.least, std::max(n.least, n.most));
    least += n.least;
    above += n.given - n.least;
  }
  u128 const left = room > least ? room - least : 0;
  if (above <= left) return;
  for (auto& n : needs)
    n.given = n.least + static_cast<rate>(u128(n.given - n.least) * left / above);
}

}  // namespace sluice::policies
