// SPDX-License-Identifier: Apache-2.0
// sluice doctor: will this program be limited? Can syncs below this directory go through a journal?
// Status 0 yes, 1 no.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "base/descriptor.h"
#include "base/fs_journal.h"
#include "base/printable.h"
#include "commands/cli/options.h"
#include "commands/cli/program.h"
#include "commands/cli/report.h"

namespace sluice::cli {

namespace {

bool is_directory(std::string const& file) {
  struct stat st = {};
  return file.find('/') != file.npos && stat(file.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}

int look_at_directory(global_options const& global, std::string const& path) {
  descriptor const fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  std::string const name = one_line(path);
  bool const is_durable = fd && fs_journal_of(fd.get()) != fs_journal::none;
  if (global.json)
    fmt::print("{}", dump({{"directory", path}, {"journal", is_durable}}));
  else if (!fd)
    fmt::print("{}\n  it cannot be opened, so nobody knows\n", name);
  else if (is_durable)
    fmt::print("{}\n  ext4 or xfs: fsync of durable targets can go through a journal\n", name);
  else
    fmt::print(
        "{}\n  neither xfs nor ext4 with a journal: fsync of durable targets is the kernel's own\n",
        name);
  return is_durable ? 0 : 1;
}

}  // namespace

int doctor_verb(global_options const& global, std::string const& file) {
  if (is_directory(file)) return look_at_directory(global, file);
  program_facts const f = inspect_program(find_program(file));
  if (global.json) {
    fmt::print("{}", dump({{"file", f.path},
                           {"through", f.through},
                           {"kind", f.kind},
                           {"interpreter", f.interpreter},
                           {"limited", f.limited},
                           {"why", f.why},
                           {"advice", f.advice}}));
    return f.limited ? 0 : 1;
  }
  fmt::print("{}\n", one_line(f.path));
  for (auto const& interpreter : f.through) fmt::print("  is run by {}\n", one_line(interpreter));
  fmt::print("  {}: {}\n", f.kind, one_line(f.why));
  if (!f.limited) fmt::print("  will NOT be limited");
  if (f.limited) fmt::print("  will be limited");
  fmt::print("{}\n", f.advice.empty() ? "" : "; " + one_line(f.advice));
  return f.limited ? 0 : 1;
}

}  // namespace sluice::cli
