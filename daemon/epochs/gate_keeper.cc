// SPDX-License-Identifier: Apache-2.0
#include "epochs/gate_keeper.h"

#include "base/clock.h"
#include "base/error.h"

namespace sluice::epochs {

namespace {

constexpr time_ns retry_ns = 1'000'000'000;

}  // namespace

/// A book that is not there, or cannot be read, is begun anew under another number: jobs that the
/// old one knew are told that they cannot be sure.
gate_keeper::gate_keeper(std::string path, bool is_relay, std::uint64_t incarnation,
                         runtime::logger& log)
    : path_(std::move(path)),
      log_(log),
      book_(is_relay, incarnation, boot_ns()),
      disk_(path_, is_relay) {
  try {
    disk_.recall(book_);
  } catch (error const& e) {
    log_.error("book of epochs lost: jobs that run will be refused", {{"why", e.what()}});
  }
}

void gate_keeper::hear(wire::parent_socket::incoming const& m, time_ns now) {
  book_.heard(m.child, *m.name, m.who, m.head.incarnation, now);
  if (auto const* join = std::get_if<wire::gate_join>(&m.body))
    book_.join(m.child, *join);
  else if (auto const* ask = std::get_if<wire::gate_ask>(&m.body))
    book_.ask(m.child, *ask, now);
  else if (auto const* done = std::get_if<wire::gate_done>(&m.body))
    book_.done(m.child, *done, now);
  else if (std::holds_alternative<wire::bye>(m.body))
    book_.gone(m.child);
}

void gate_keeper::hear_above(wire::message const& m, time_ns now) {
  if (auto const* known = std::get_if<wire::gate_known>(&m))
    book_.above_known(*known);
  else if (auto const* sync = std::get_if<wire::gate_sync>(&m))
    book_.above_sync(*sync, now);
  else if (auto const* open = std::get_if<wire::gate_open>(&m))
    book_.above_open(*open);
}

void gate_keeper::keep(time_ns now) {
  if (!book_.is_dirty() || now - tried_at_ < retry_ns_) return;
  bool const is_kept = disk_.keep(book_);
  if (is_kept) book_.kept();
  if (!is_kept && retry_ns_ == 0)
    log_.error("book of epochs cannot be kept: jobs that need it wait", {{"path", path_}});
  tried_at_ = now;
  retry_ns_ = is_kept ? 0 : retry_ns;
}

void gate_keeper::settle(time_ns now, post const& out) {
  book_.tick(now);
  keep(now);
  for (auto const& l : book_.take()) {
    if (l.to != gate_book::above)
      out.to_child(l.to, l.m);
    else if (out.to_parent && !out.to_parent(l.m))
      book_.above_anew();  // it must not miss one: what is known there is said anew
  }
  for (std::string const& why : book_.take_failures())
    log_.warning("a gate stays closed", {{"why", why}});
  for (std::string const& child : book_.take_refused())
    log_.warning("a child asks for more jobs with epochs than it may have", {{"child", child}});
}

}  // namespace sluice::epochs
