// SPDX-License-Identifier: Apache-2.0
#include "base/foreign_file.h"

#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sluice {

descriptor open_here(std::string const& path, int flags) {
  auto const slash = path.rfind('/');
  std::string const above = slash == path.npos ? "." : path.substr(0, slash + 1);
  std::string const name = slash == path.npos ? path : path.substr(slash + 1);
  descriptor const in(open(above.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!in) return {};
  open_how how = {};
  how.flags = static_cast<std::uint64_t>(flags);
  how.resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS;
  long const fd = syscall(SYS_openat2, in.get(), name.c_str(), &how, sizeof how);
  // Before Linux 5.6, or below a container's filter that does not know the call.
  if (fd < 0 && (errno == ENOSYS || errno == EPERM)) return descriptor(open(path.c_str(), flags));
  return descriptor(static_cast<int>(fd));
}

}  // namespace sluice
