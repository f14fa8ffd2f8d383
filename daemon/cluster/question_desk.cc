// SPDX-License-Identifier: Apache-2.0
#include "cluster/question_desk.h"

#include <fmt/format.h>

#include <algorithm>

#include "local/local.h"

namespace sluice::cluster {

namespace {

constexpr unsigned most_per_turn = 2;
constexpr std::int64_t forgotten_ns = 10'000'000'000;
constexpr char busy[] = "the controller has much to do: try again";
constexpr char unheard[] = "the controller of the cluster does not answer";

}  // namespace

void question_desk::refuse(std::uint32_t child, std::uint64_t id, std::string const& why) {
  send_(child, wire::answer{id, local::refusal_text(why, exit_sluice)});
}

/// A node's root can ask in the name of any user, so only those that serve users may: whoever
/// passes a question on has looked.
std::optional<wire::question> question_desk::take(wire::parent_socket::incoming const& from,
                                                  wire::question& q, bool is_relay, bool is_heard,
                                                  std::int64_t now) {
  if (!from.may_ask) {
    refuse(from.child, q.id,
           fmt::format("{} may not ask for its users: `sluiced keys allow --role login` lets it",
                       *from.name));
    return std::nullopt;
  }
  if (is_relay) {
    auto const his = std::count_if(passed_on_.begin(), passed_on_.end(),
                                   [&](passed const& p) { return p.uid == q.uid; });
    bool const has_place = of_a_relay.has_one(passed_on_.size(), static_cast<std::size_t>(his));
    if (!is_heard || !has_place) {
      refuse(from.child, q.id, is_heard ? busy : unheard);
      return std::nullopt;
    }
    // An answer to a question of an earlier life of ours is none to one of this.
    last_id_ = std::max(last_id_ + 1, static_cast<std::uint64_t>(now));
    passed_on_.push_back({last_id_, q.id, from.child, q.uid, now});
    q.id = last_id_;
    return std::move(q);
  }
  if (!has_place(from.child, q.uid))
    refuse(from.child, q.id, busy);
  else
    asked_.push_back({from.child, *from.name, std::move(q)});
  return std::nullopt;
}

bool question_desk::has_place(std::uint32_t child, std::uint32_t uid) const {
  std::size_t of_child = 0, his = 0;
  auto const count = [&](std::uint32_t its_child, std::uint32_t its_uid) {
    if (its_child != child) return;
    ++of_child;
    his += its_uid == uid ? 1 : 0;
  };
  for (asked const& a : asked_) count(a.child, a.q.uid);
  for (later const& l : later_) count(l.child, l.uid);
  return asked_.size() + later_.size() < most_kept && of_a_child.has_one(of_child, his);
}

void question_desk::take_back(std::uint64_t id) {
  auto const at = std::find_if(passed_on_.begin(), passed_on_.end(),
                               [&](passed const& p) { return p.ours == id; });
  if (at == passed_on_.end()) return;
  refuse(at->child, at->theirs, busy);
  passed_on_.erase(at);
}

void question_desk::hear(wire::answer& a) {
  auto const at = std::find_if(passed_on_.begin(), passed_on_.end(),
                               [&](passed const& p) { return p.ours == a.id; });
  if (at == passed_on_.end()) return;
  a.id = at->theirs;
  send_(at->child, a);
  passed_on_.erase(at);
}

void question_desk::forget_old(std::int64_t now) {
  auto const is_old = [&](auto const& p) { return now - p.asked_at >= forgotten_ns; };
  std::erase_if(passed_on_, is_old);
  std::erase_if(later_, is_old);
}

void question_desk::answer_some(server const& serve, std::int64_t now) {
  for (unsigned i = 0; i < most_per_turn && !asked_.empty(); ++i) {
    asked const a = std::move(asked_.front());
    asked_.pop_front();
    local::peer const who = {a.q.uid, static_cast<gid_t>(-1), 0, -1, {}, ++last_ticket_, true};
    std::string const text = serve(who, a.q.text, a.through);
    if (text.empty())
      later_.push_back({who.ticket, a.q.id, a.child, a.q.uid, now});
    else
      send_(a.child, wire::answer{a.q.id, text});
  }
}

bool question_desk::is_waiting(std::uint64_t ticket) const {
  return std::any_of(later_.begin(), later_.end(),
                     [&](later const& l) { return l.ticket == ticket; });
}

void question_desk::reply(std::uint64_t ticket, std::string const& text) {
  auto const at = std::find_if(later_.begin(), later_.end(),
                               [&](later const& l) { return l.ticket == ticket; });
  if (at == later_.end()) return;
  send_(at->child, wire::answer{at->id, text});
  later_.erase(at);
}

}  // namespace sluice::cluster
