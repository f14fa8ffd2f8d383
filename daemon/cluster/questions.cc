// SPDX-License-Identifier: Apache-2.0
// What users ask at the sockets of nodes. A cluster answers a few each turn, as if they had asked
// here, but nobody from afar is an operator; a relay passes them on under ids of its own.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "cluster/admin.h"
#include "cluster/clock.h"
#include "cluster/controller.h"
#include "policy/error.h"

namespace sluice::cluster {

namespace {

constexpr std::size_t most_kept = 256, most_of_a_child = 8;
constexpr unsigned most_per_turn = 2;
constexpr std::int64_t forgotten_ns = 10'000'000'000;

}  // namespace

void controller::refuse_question(std::uint32_t child, std::uint64_t id, char const* why) {
  send(child, wire::answer{id, local::refusal_text(why, exit_sluice)});
}

void controller::hear_question(std::uint32_t child, std::string const& name, wire::question& q,
                               std::int64_t now) {
  if (up_) return pass_on(child, q, now);
  auto const of_child =
      std::count_if(asked_.begin(), asked_.end(), [&](asked const& a) { return a.child == child; });
  if (asked_.size() >= most_kept || static_cast<std::size_t>(of_child) >= most_of_a_child)
    return refuse_question(child, q.id, "the controller has much to do: try again");
  asked_.push_back({child, name, std::move(q)});
}

void controller::answer_questions() {
  for (unsigned i = 0; i < most_per_turn && !asked_.empty(); ++i) {
    asked const a = std::move(asked_.front());
    asked_.pop_front();
    local::peer const who = {a.q.uid, static_cast<gid_t>(-1), 0, -1, {}, 0, true};
    auto const serve = [&](local::peer const& by, nlohmann::json const& request) {
      nlohmann::json answer = serve_request(*this, by, request, a.through);
      answer["answered_by"] = "cluster " + config_.name;
      return answer;
    };
    send(a.child,
         wire::answer{a.q.id, local::answer_text(serve, who, a.q.text.data(), a.q.text.size())});
  }
}

void controller::pass_on(std::uint32_t child, wire::question& q, std::int64_t now) {
  bool const is_heard = is_parent_heard() && parent_minor_ >= wire::minor_of_questions;
  if (!is_heard || passed_on_.size() >= most_kept)
    return refuse_question(child, q.id, "the controller of the cluster does not answer");
  std::uint64_t const ours = ++last_question_;
  passed_on_.push_back({ours, q.id, child, now});
  q.id = ours;
  if (above_->send(q, brain_->cycle())) return;
  refuse_question(child, passed_on_.back().theirs, "the controller has much to do: try again");
  passed_on_.pop_back();
}

void controller::hear_answer(wire::answer& a) {
  auto const at = std::find_if(passed_on_.begin(), passed_on_.end(),
                               [&](passed const& p) { return p.ours == a.id; });
  if (at == passed_on_.end()) return;
  a.id = at->theirs;
  send(at->child, a);
  passed_on_.erase(at);
}

void controller::forget_questions(std::int64_t now) {
  std::erase_if(passed_on_, [&](passed const& p) { return now - p.asked_at >= forgotten_ns; });
}

}  // namespace sluice::cluster
