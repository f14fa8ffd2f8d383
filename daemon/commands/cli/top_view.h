// SPDX-License-Identifier: Apache-2.0
// A picture of the daemon as lines of text: what `sluice top` shows on a screen and prints in
// batches. Pure: the same picture, choices and width give the same lines, so that tests can read
// them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "commands/cli/picture.h"

namespace sluice::cli {

enum class line_style : std::uint8_t { plain, title, supply, heading, waiting, alarm, faint };

struct line {
  std::string text;
  line_style style = line_style::plain;
  std::string job = {};     // its job_id; of rows of jobs
  std::string supply = {};  // of these
  bool is_paused = false;
  bool is_own = false;  // it runs without a daemon
};

/// What the user chose to see.
struct top_choice {
  bool nodes = false;  // rows are nodes instead of jobs
  char sort = 'w';     // the key of an order, see top_keys
  bool reversed = false;
  bool active_only = false;
  std::string filter;  // text anywhere in a row, or job= user= class= supply= node=
};

/// Who is asked and when.
struct top_source {
  std::string daemon;  // `cluster ctl`
  std::string clock;   // `14:03:22`
  std::string note;    // `no answer for 3 s`; empty: all is well
};

struct top_frame {
  std::vector<line> head;  // title, supplies
  line columns;
  std::vector<line> rows;
};

/// Columns: 0 as wide as it takes.
top_frame draw(picture const& p, top_choice const& choice, top_source const& source,
               unsigned columns);

constexpr std::size_t most_lately = 12;  // figures of a trend

/// `most_lately` characters: denser is more, of the row's own most.
std::string trend(std::vector<double> const& lately);

/// One row per key of the screen; orders can be chosen with --sort too.
struct top_key {
  char key;
  char const* order;  // its name for --sort; null: not an order
  char const* what;
};
std::vector<top_key> const& top_keys();

/// The order's key; throws a usage error with a suggestion.
char sort_key(std::string const& order);

}  // namespace sluice::cli
