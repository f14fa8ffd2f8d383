// SPDX-License-Identifier: Apache-2.0
// The one exception of the command: a sentence for the user and the exit status that goes with it.
#pragma once

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

namespace sluice {

inline constexpr int exit_usage = 2;       // the command line or a policy is wrong
inline constexpr int exit_no_journal = 3;  // there was none, and none can be made
inline constexpr int exit_busy = 4;        // another process serves it
inline constexpr int exit_full = 69;       // no room, but soon (EX_UNAVAILABLE of sysexits.h)
inline constexpr int exit_later = 75;      // not now, but soon (EX_TEMPFAIL of sysexits.h)
inline constexpr int exit_sluice = 125;    // sluice itself failed (as env, nice, timeout do)
inline constexpr int exit_cannot = 126;    // the program was found but cannot be executed
inline constexpr int exit_missing = 127;   // the program was not found

class error : public std::runtime_error {
 public:
  error(int status, std::string const& sentence) : std::runtime_error(sentence), status_(status) {}
  int status() const { return status_; }

 private:
  int status_;
};

/// Refusals of a daemon that have a status of their own; the others are exit_sluice.
constexpr bool is_for_asker(int status) {
  return status == exit_usage || status == exit_later || status == exit_full;
}

/// Something the user wrote is wrong.
inline error usage_error(std::string const& sentence) { return {exit_usage, sentence}; }

/// The machine did not let us.
inline error sluice_error(std::string const& sentence) { return {exit_sluice, sentence}; }

/// The kernel did not: `what`, and the reason that errno gives.
inline error errno_error(std::string const& what) {
  return sluice_error(what + ": " + std::strerror(errno));
}

}  // namespace sluice
