// SPDX-License-Identifier: Apache-2.0
#include "epochs/gate_keeper.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/whole_file.h"

namespace sluice::epochs {

namespace {

constexpr time_ns retry_ns = 1'000'000'000;

gate_book::age age_of(wire::parent_socket::incoming const& m) {
  if (m.head.minor >= wire::minor_of_gates) return gate_book::age::able;
  return m.who == wire::role::relay ? gate_book::age::old_relay : gate_book::age::old_node;
}

}  // namespace

/// A book that is not there, or cannot be read, is begun anew under another number: jobs that the
/// old one knew are told that they cannot be sure.
gate_keeper::gate_keeper(std::string path, bool is_relay, std::uint64_t incarnation,
                         runtime::logger& log)
    : path_(std::move(path)),
      incarnation_(incarnation),
      log_(log),
      book_(is_relay, incarnation, boot_ns()) {
  try {
    if (auto const text = read_file(path_)) book_.from_text(*text);
  } catch (error const& e) {
    log_.error("book of epochs lost: jobs that run will be refused", {{"why", e.what()}});
  }
}

void gate_keeper::hear(wire::parent_socket::incoming const& m, time_ns now) {
  book_.heard(m.child, *m.name, m.head.incarnation, now, age_of(m));
  if (auto const* join = std::get_if<wire::gate_join>(&m.body))
    book_.join(m.child, *join);
  else if (auto const* ask = std::get_if<wire::gate_ask>(&m.body))
    book_.ask(m.child, *ask, now);
  else if (auto const* done = std::get_if<wire::gate_done>(&m.body))
    book_.done(m.child, *done, now);
  else if (std::holds_alternative<wire::bye>(m.body))
    book_.gone(m.child);
  if (book_.is_old(m.child)) hear_old(m.child, m.body, now);
}

/// It knows nothing of gates, but says which jobs it has: what it reports after a grant is what it
/// had when that grant was made, or later.
void gate_keeper::hear_old(std::uint32_t child, wire::message const& m, time_ns now) {
  if (auto const* list = std::get_if<wire::job_list>(&m))
    for (wire::job_entry const& j : list->jobs) book_.old_has(child, j.job, now);
  auto const* const report = std::get_if<wire::report>(&m);
  if (report == nullptr) return;
  for (wire::stream_report const& s : report->streams) book_.old_has(child, s.job, now);
  lease::echo const& heard = report->lease.heard;
  if (heard.incarnation == incarnation_) book_.old_has_told(child, heard.t_parent);
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
  bool const is_kept = replace_file(path_, book_.to_text(), {.is_durable = true});
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
}

}  // namespace sluice::epochs
