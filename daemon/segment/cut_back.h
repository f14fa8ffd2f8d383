// SPDX-License-Identifier: Apache-2.0
// Cuts the files of a job back to their size. They belong to its user and lie in RUN, which is
// memory that the whole machine shares: the user could let them grow until it is full.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace sluice::segment {

/// What the file of an area is called once its job is over (remains.h).
inline std::string file_name_over(std::string const& name) { return name + ".over"; }

/// How large a daemon made the files of a job whose sizes differ between versions. It writes them
/// into job.json, for what the files say of themselves their user may change.
struct made_sizes {
  std::uint64_t segment = 0, order = 0;  // 0: not known
  static made_sizes of_this_version();
};

/// Of the job.json in the folder; what is not said there is 0.
made_sizes sizes_in(std::string const& job_dir);

/// An area beside the segment, and the size that its file was made with; 0: not known.
struct area_file {
  char const* name;
  std::uint64_t bytes;
};
inline constexpr std::size_t most_areas = 5;
std::array<area_file, most_areas> areas_beside(made_sizes const& sizes);

struct cut {
  bool had_grown = false;  // and is as it was made again
  bool is_leased = false;  // one has grown, and a lease of its owner keeps us from it: later
};

/// What shows of the files in the folder of a job without a look into them.
struct file_look {
  bool has_grown = false;
  std::int64_t changed_ns = 0;  // CLOCK_REALTIME: when attributes, owner, mode or size last were
};

/// Waits for nobody.
file_look look_at_files(std::string const& job_dir, made_sizes const& sizes);

/// Cuts the files in the folder of a job back to these sizes, and takes the attributes that their
/// user gave them. May wait for him (tidy.h).
cut cut_back(std::string const& job_dir, made_sizes const& sizes);

}  // namespace sluice::segment
