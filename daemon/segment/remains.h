// SPDX-License-Identifier: Apache-2.0
// What is left of another user's job that is over. He may have its files open still, and let them
// grow where no name leads to them: RUN's memory would fill up, and nobody could say whose it is.
// So the files keep a name, out of the sight of programs, until nobody can write them any more.
// What stays true: such files are cut back to the sizes they were made with; how many jobs of a
// user have left some is known, after a restart too; no process of his can open them anew.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <map>
#include <string>

namespace sluice::segment {

/// Takes the folder of a job of `uid` out of sight. It goes now, or when look_at_remains() finds
/// that nobody holds its files.
void retire_job(std::string const& run_dir, std::string const& folder, uid_t uid);

/// How many retired jobs of each user are left. Removes those that can go.
std::map<uid_t, std::size_t> look_at_remains(std::string const& run_dir);

/// Cuts back what their users let grow. True: something had.
bool cut_back_remains(std::string const& run_dir);

}  // namespace sluice::segment
