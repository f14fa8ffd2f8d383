// SPDX-License-Identifier: Apache-2.0
// What a part of the node keeps of each job by its class. A class may be changed while a job runs.
#pragma once

#include <map>
#include <set>

#include "node/enforcer.h"
#include "node/job_table.h"
#include "verbs/views/overrides.h"

namespace sluice::node {

/// Entries of new jobs are made, entries of jobs that are gone end, and those whose class has
/// changed end and are made anew. An entry has a `qos_class`, which `make` fills.
template <class Entry, class Make, class End>
void follow_classes(std::map<core::job_id, Entry>& of_job, job_table const& jobs,
                    verbs::override_book const& overrides, Make make, End end) {
  std::set<core::job_id> there;
  for (auto const& j : jobs.all()) {
    if (j->is_broken()) continue;
    there.insert(j->key);
    auto const at = of_job.find(j->key);
    if (at == of_job.end()) {
      of_job.emplace(j->key, make(*j));
    } else if (at->second.qos_class != class_in_force(*j, overrides.find(j->key))) {
      end(at->second);
      at->second = make(*j);
    }
  }
  std::erase_if(of_job, [&](auto const& row) {
    if (there.contains(row.first)) return false;
    end(row.second);
    return true;
  });
}

}  // namespace sluice::node
