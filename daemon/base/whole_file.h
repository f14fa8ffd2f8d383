// SPDX-License-Identifier: Apache-2.0
// Small files that are complete, or as they were before: read in one go, replaced by a rename.
// What stays true: a reader never sees a part of a new text, and a failed one leaves nothing.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

namespace sluice {

/// All of it; none when it cannot be opened.
std::optional<std::string> read_file(std::string const& path);

/// One that must not be taken for missing: none only where there is none. Throws what else keeps
/// it from being read.
std::optional<std::string> read_kept(std::string const& path);

/// One that is there and of no use: it is kept under the name that this returns, out of the way of
/// the next one.
std::string set_aside(std::string const& path);

struct file_terms {
  mode_t mode = 0600;
  uid_t reader = static_cast<uid_t>(-1);  // may read it as well (an ACL); -1: nobody
  bool is_durable = false;                // on the disk, with its name, before this returns
  std::string writer{};                   // who else writes it must have another name
  std::function<bool()> may_replace{};    // asked when the new one is on the disk
};

/// Who may read it beside its owner; none: nobody, or it is no file of replace_file().
std::optional<uid_t> reader_of(std::string const& path);

/// Writes `text` beside `path` and renames it there. False: `errno` says why, and `path` is as it
/// was. Only for folders that nobody else may write in: the name beside can be foreseen.
bool replace_file(std::string const& path, std::string const& text, file_terms const& terms = {});

}  // namespace sluice
