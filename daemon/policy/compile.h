// SPDX-License-Identifier: Apache-2.0
// Channels and targets as people write them -> the flat ruleset of the stage and one curve per
// channel. Pure: the mount table and the finding of paths are arguments, so the same input gives
// the same ruleset.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/ruleset.h"
#include "core/token_bucket.h"
#include "policy/background.h"
#include "policy/limit.h"
#include "policy/mount_table.h"
#include "policy/roles.h"
#include "policy/target.h"

namespace sluice::policy {

struct file_system {
  std::vector<mount> mounts;
  std::function<place(std::string const& path)> find;
};

/// Why the costs are not those of the mount in which `path` lies; empty: they are, or nobody knows.
std::string why_other_costs(cost_file const& costs, std::string const& path,
                            file_system const& files);

/// The file system of this machine.
file_system this_machine();

/// The rule of a target, for those nested in it as well.
struct after_compiled {
  after_spec says;
  std::string root;           // canonical
  std::uint32_t targets = 0;  // bit t: target t
};

/// Which targets have what of small I/O. Bit t: target t, nested ones too; bit 0: files of no
/// target.
struct small_targets {
  std::uint32_t hinted_targets = 0;
  std::uint32_t gathered_targets = 0;  // "close-to-open"
  std::uint32_t buffered_targets = 0;  // "reads"
  std::uint32_t strict_targets = 0;
};

struct compiled : small_targets {
  std::unique_ptr<core::ruleset> rules;
  std::vector<core::curve_settings> curves;  // one per channel
  std::uint64_t hash = 0;                    // equal for equal limits
  std::uint32_t durable_targets = 0;         // bit t: target t, with those nested in it
  std::uint32_t ordered_targets = 0;         // those of them whose nearest order says so
  std::uint32_t job_streams = 0, thread_streams = 0, path_streams = 0;  // of the durable ones
  std::vector<after_compiled> after;
  std::unique_ptr<core::role_table> roles;    // null: none
  std::vector<background_terms> backgrounds;  // as they were given
};

struct compile_input {
  std::vector<target_spec> targets;  // those of the policy; a channel may also name a path
  std::vector<channel_spec> channels;
  bool monitor = false;  // count and measure, never delay
  std::vector<role_spec> roles = {};
  bool hints_everywhere = false;
  std::vector<background_terms> backgrounds = {};  // of channels above
  bool buffers_everywhere = false;                 // small reads
  bool strict_everywhere = false;                  // small writes
};

compiled compile(compile_input const& input, file_system const& files);

/// The settings of a channel at a rate.
core::curve_settings settings_of(core::unit_kind unit, std::uint64_t rate_q40);

}  // namespace sluice::policy
