// SPDX-License-Identifier: Apache-2.0
#include "node/held_lease.h"

#include "base/duration.h"
#include "base/error.h"

namespace sluice::node {

held_lease::held_lease(runtime::config const& c, std::uint64_t incarnation, runtime::logger& log)
    : child(lease::timers_of(c.cycle_ns, second_ns, 0), incarnation),
      has_parent_(!c.parents.empty()),
      log_(log) {
  open(c.state_dir + "/lease");
}

void held_lease::open(std::string const& path) try { file_.emplace(path); } catch (error const& e) {
  if (has_parent_) throw;
  log_.warning("lease cannot be kept: a node without a parent does without", {{"why", e.what()}});
}

void held_lease::set_own(site_state const& site) {
  for (auto const& r : site.renewed()) child.renew(r.supply);
  std::vector<lease::child::own> own;
  for (auto const& slot : site.supplies())
    own.push_back({slot.floor, slot.escrow, site.is_listed() ? 1u : 0u});
  child.set_own(own);
}

std::vector<rate> held_lease::recall(site_state const& site, moment at) {
  // Until the parent says otherwise: what was lent before was lent by the kept policy's times.
  if (site.is_set()) {
    auto const& control = site.site().control;
    child.set_timers(lease::timers_of(control.cycle_ns, control.lease_ns, 0));
  }
  auto const kept = file_ ? file_->read() : std::nullopt;
  if (!kept) {
    child.booted(at.boot_ns);
    return {};
  }
  lease::child_memory const m = runtime::memory_of(*kept, site.keys());
  child.remember(m, at.boot_ns);
  std::vector<rate> last;
  for (auto const& e : m.supply) last.push_back(e.value);
  return last;
}

void held_lease::keep(site_state const& site) {
  if (!has_parent_) return;
  bool const is_written = file_->write(runtime::kept_of(child.memory(), site.keys()));
  if (is_written != is_kept_)
    log_.error(is_written ? "lease can be kept again" : "lease cannot be kept");
  is_kept_ = is_written;
}

}  // namespace sluice::node
