// SPDX-License-Identifier: Apache-2.0
// Asking a daemon for pictures, again and again, and printing them where there is no screen.
#pragma once

#include <nlohmann/json.hpp>

#include "cli/daemon.h"
#include "cli/options.h"
#include "cli/top_view.h"

namespace sluice::cli {

/// The daemon's answer to `top`, all pages.
nlohmann::json ask_top(daemon_at const& daemon, int timeout_ms);

std::string clock_text();
std::string daemon_words(daemon_at const& daemon);
top_choice choice_of(top_options const& options);

/// Prints `options.count` pictures (0: until killed) as tables or, with --json, one per line. A
/// daemon that goes away after the first one is waited for. The exit status.
int print_pictures(global_options const& global, top_options const& options,
                   daemon_at const& daemon);

}  // namespace sluice::cli
