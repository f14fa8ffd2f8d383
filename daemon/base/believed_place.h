// SPDX-License-Identifier: Apache-2.0
// Problem: root believes what a file system says of owners, and a user may have chosen what is
// mounted there (base/user_mounts.h). He may also stop its server, and who asks it waits for ever.
// Idea: a path is walked part by part with O_PATH, which asks no file system. The kernel says of
// each part on which mount it is, and only then the next is looked for in it.
// What stays true: no file on a user's mount is asked. Where we are not root, all is believed, for
// nothing is done that our user could not do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/mounts.h"

namespace sluice {

/// A sentence: why root believes no owner of what is there or on the way there; nothing: it does.
/// What is not there is believed. `path`: relative ones begin at the working directory.
std::optional<std::string> why_not_believed(std::string const& path);

/// The same of an open file, whatever has come to have its name since.
std::optional<std::string> why_not_believed(int fd);

/// Those of which root alone chose what is mounted there. `rows`: all of read_mounts().
std::vector<mount_row> chosen_by_root(std::vector<mount_row> const& rows);
/// Whether root alone mounted that file system here: device_number(). Where it is mounted for other
/// processes only, nobody knows.
bool is_chosen_by_root(std::uint64_t device);

/// This process doubts as root does also when it is root no more: it has the rights of a user whom
/// an owner of a file named, and another may have lied.
void keep_doubting();

}  // namespace sluice
