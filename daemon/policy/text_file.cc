// SPDX-License-Identifier: Apache-2.0
#include "policy/text_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "base/descriptor.h"
#include "base/error.h"
#include "policy/json_tree.h"

namespace sluice::policy {

std::string read_text(std::string const& file) {
  auto const refuse = [&](std::string const& why) { return usage_error(file + ": " + why); };
  // Not blocking: a FIFO that nobody writes to would hold us for ever.
  descriptor const fd(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  struct stat st = {};
  if (!fd || fstat(fd.get(), &st) != 0) throw refuse(std::strerror(errno));
  if (S_ISDIR(st.st_mode)) throw refuse("it is a directory; name a file in it");
  fcntl(fd.get(), F_SETFL, 0);
  std::string text;
  ssize_t got = 0;
  for (char part[4096]; text.size() <= most_text && (got = read(fd.get(), part, sizeof part)) > 0;)
    text.append(part, static_cast<std::size_t>(got));
  if (got < 0) throw refuse(std::strerror(errno));
  if (text.find_first_not_of(" \t\r\n") == text.npos)
    throw refuse(S_ISFIFO(st.st_mode) ? "it is a FIFO to which nobody wrote" : "it is empty");
  return text;
}

}  // namespace sluice::policy
