// SPDX-License-Identifier: Apache-2.0
// What a recovery leaves on files that it made: a trusted attribute, which users can neither read
// nor set.
#pragma once

#include <string>

namespace sluice::journal {

/// O_PATH is enough for `fd`.
bool has_recovery_mark(int fd, std::string const& mark);

/// Empty: the mark goes. 0 or an errno. May wait for the lock of the file (hands.h).
int set_recovery_mark(int fd, std::string const& mark);

}  // namespace sluice::journal
