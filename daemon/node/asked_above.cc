// SPDX-License-Identifier: Apache-2.0
#include "node/asked_above.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/shared_places.h"

namespace sluice::node {

namespace {

constexpr std::int64_t patience_ns = 3'000'000'000;  // less than a client's
constexpr char const* in_vain = "the controller of the cluster does not answer: try again later";

}  // namespace

nlohmann::json asked_above::ask(runtime::uplink& up, local::peer const& who,
                                nlohmann::json const& request, std::int64_t now_ns) {
  wire::question q;
  q.uid = who.uid;
  q.text = request.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (q.text.size() > wire::most_question_bytes) throw usage_error("the request is too large");
  if (!up.is_welcome()) throw sluice_error(in_vain);
  constexpr shared_places places = {most_open, most_of_a_user, kept_open};
  uid_t const owner = owner_by(owner_of_, who.uid);
  auto const his = std::count_if(open_.begin(), open_.end(),
                                 [&](open_question const& one) { return one.owner == owner; });
  if (!places.has_one(open_.size(), static_cast<std::size_t>(his)))
    throw sluice_error("too many questions at once: try again");
  // An answer to a question of an earlier life of ours is none to one of this.
  q.id = last_id_ = std::max(last_id_ + 1, static_cast<std::uint64_t>(now_ns));
  if (!up.send(q)) throw sluice_error(in_vain);
  open_.push_back({q.id, who.ticket, now_ns + patience_ns, owner});
  return local::later();
}

void asked_above::hear(wire::answer&& a) {
  auto const at = std::find_if(open_.begin(), open_.end(),
                               [&](open_question const& q) { return q.id == a.id; });
  if (at == open_.end()) return;
  answered_.push_back({at->ticket, std::move(a.text)});
  open_.erase(at);
}

std::vector<asked_above::told> asked_above::take(std::int64_t now_ns) {
  std::erase_if(open_, [&](open_question const& q) {
    if (now_ns < q.until_ns) return false;
    answered_.push_back({q.ticket, local::refusal_text(in_vain, exit_sluice)});
    return true;
  });
  return std::exchange(answered_, {});
}

}  // namespace sluice::node
