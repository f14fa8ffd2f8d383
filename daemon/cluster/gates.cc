// SPDX-License-Identifier: Apache-2.0
// Cluster epochs of a running controller: the book on disk and its letters on the wire. What is to
// be decided is in gate_book.h.
#include "cluster/clock.h"
#include "cluster/controller.h"
#include "policy/error.h"

namespace sluice::cluster {

/// A book that is not there, or cannot be read, is begun anew under another number: jobs that the
/// old one knew are told that they cannot be sure.
void controller::read_gates() {
  gates_ = std::make_unique<gate_book>(is_relay(), services_.incarnation, boot_ns());
  try {
    if (auto const text = store_.read_gates()) gates_->from_text(*text);
  } catch (error const& e) {
    services_.log.error("book of epochs lost: jobs that run will be refused", {{"why", e.what()}});
  }
}

void controller::hear_gates(std::uint32_t child, wire::message const& m, std::int64_t now) {
  if (auto const* join = std::get_if<wire::gate_join>(&m))
    gates_->join(child, *join);
  else if (auto const* ask = std::get_if<wire::gate_ask>(&m))
    gates_->ask(child, *ask, now);
  else if (auto const* done = std::get_if<wire::gate_done>(&m))
    gates_->done(child, *done, now);
  else if (std::holds_alternative<wire::bye>(m))
    gates_->gone(child);
  if (gates_->is_old(child)) hear_old(child, m, now);
}

/// It knows nothing of gates, but says which jobs it has: what it reports behind a grant is what it
/// had when that grant was made, or later.
void controller::hear_old(std::uint32_t child, wire::message const& m, std::int64_t now) {
  if (auto const* list = std::get_if<wire::job_list>(&m))
    for (wire::job_entry const& j : list->jobs) gates_->old_has(child, j.job, now);
  auto const* const report = std::get_if<wire::report>(&m);
  if (report == nullptr) return;
  for (wire::stream_report const& s : report->streams) gates_->old_has(child, s.job, now);
  lease::echo const& heard = report->lease.heard;
  if (heard.incarnation == services_.incarnation) gates_->old_has_told(child, heard.t_parent);
}

void controller::hear_gates_above(wire::message const& m, std::int64_t now) {
  if (auto const* known = std::get_if<wire::gate_known>(&m))
    gates_->above_known(*known);
  else if (auto const* sync = std::get_if<wire::gate_sync>(&m))
    gates_->above_sync(*sync, now);
  else if (auto const* open = std::get_if<wire::gate_open>(&m))
    gates_->above_open(*open);
}

/// Nobody is told that he is in the book before the disk has it.
void controller::settle_gates(std::int64_t now) {
  gates_->tick(now);
  if (gates_->is_dirty() && now - gates_tried_at_ >= gates_retry_ns_) {
    bool const is_kept = store_.keep_gates(gates_->to_text());
    if (is_kept) gates_->kept();
    if (!is_kept && gates_retry_ns_ == 0)
      services_.log.error("book of epochs cannot be kept: jobs that need it wait",
                          {{"dir", config_.state_dir}});
    gates_tried_at_ = now;
    gates_retry_ns_ = is_kept ? 0 : 1'000'000'000;
  }
  for (auto const& l : gates_->take()) {
    if (l.to != gate_book::above)
      send(l.to, l.m);
    else if (is_welcome_ && parent_minor_ >= wire::minor_of_gates &&
             !above_->send(l.m, brain_->cycle()))
      gates_->above_anew();  // it must not miss one: what is known there is said anew
  }
  for (std::string const& why : gates_->take_failures())
    services_.log.warning("a gate stays closed", {{"why", why}});
}

}  // namespace sluice::cluster
