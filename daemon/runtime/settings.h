// SPDX-License-Identifier: Apache-2.0
// The settings of sluiced: one row each in settings.def, given as flag or as key of the
// configuration file. Both become texts that one function per setting checks.
#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/config.h"

namespace sluice::runtime {

struct setting {
  std::string_view key;   // in the file: with '-'
  std::string_view type;  // of the value, for help; FLAG: takes none; LIST: several
  std::string_view help;
  void (*apply)(config& c, std::string const& value, std::string const& where);

  bool is_flag() const { return type == "FLAG"; }
  bool is_list() const { return type == "LIST"; }
};

std::span<setting const> settings();

/// A key that has another name now.
struct renamed_setting {
  std::string_view was;
  std::string_view is;
};

std::span<renamed_setting const> renamed_settings();

/// `local_cycle` is --local-cycle.
std::string flag_of(setting const& s);
/// The flag that it had before; empty: it had none.
std::string old_flag_of(setting const& s);

/// One text and where it was written: for messages.
struct given {
  std::size_t setting = 0;  // index into settings()
  std::string value;
  std::string where;
  std::string was = {};  // its old name, if that was written
};

/// What a configuration file says. Unknown keys, wrong kinds: usage errors with file:line:column.
std::vector<given> parse_config(std::string_view text, std::string const& file);

/// Defaults, then the file, then flags: a list in the flags replaces that of the file.
config make_config(std::vector<given> const& file, std::vector<given> const& flags);

/// What no single setting can see: a role without what it needs, two that exclude each other.
void check(config const& c);

}  // namespace sluice::runtime
