// SPDX-License-Identifier: Apache-2.0
#include "segment/after_look.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <memory>

#include "policy/descriptor.h"

namespace sluice::segment {

std::optional<after_job> look_at_after(std::string const& area_path) {
  descriptor const fd(open(area_path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat st = {};
  auto const a = std::make_unique<abi::after_area>();
  if (!fd || fstat(fd.get(), &st) != 0 ||
      pread(fd.get(), static_cast<void*>(a.get()), sizeof *a, 0) != ssize_t(sizeof *a) ||
      refuse_reason(*a, static_cast<std::uint64_t>(st.st_size)) != nullptr)
    return std::nullopt;
  after_job out;
  out.uid = st.st_uid;
  out.is_known = a->head.known.load() != 0;
  for (std::size_t i = 0; i < out.counts.size(); ++i) out.counts[i] = a->head.count[i].load();
  out.waited_ns = a->head.waited_ns.load();
  std::uint64_t words[abi::after_reason_words] = {};
  for (unsigned i = 0; i < abi::after_reason_words; ++i) words[i] = a->head.reason[i].load();
  char text[sizeof words];
  std::memcpy(text, words, sizeof text);
  for (char const c : std::string(text, strnlen(text, sizeof text)))
    out.reason += c >= 0x20 && c < 0x7f ? c : '?';
  return out;
}

}  // namespace sluice::segment
