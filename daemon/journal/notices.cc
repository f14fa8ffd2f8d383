// SPDX-License-Identifier: Apache-2.0
#include "journal/notices.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>

#include "journal/held_file.h"

namespace sluice::journal {

namespace {

constexpr unsigned at_once = 1;  // each is over before the next begins

bool is_eventfd(int fd) {
  char name[64];
  ssize_t const n = readlink(fmt::format("/proc/self/fd/{}", fd).c_str(), name, sizeof name);
  return n > 0 && std::string(name, static_cast<std::size_t>(n)) == "anon_inode:[eventfd]";
}

descriptor fetch_eventfd(request const& r) {
  descriptor theirs = take_descriptor(r);
  return theirs && is_eventfd(theirs.get()) ? std::move(theirs) : descriptor();
}

}  // namespace

bell::bell() : nothing_(open("/dev/null", O_RDONLY | O_CLOEXEC)) {
  if (syscall(SYS_io_setup, at_once, &context_) != 0) context_ = 0;
}

bell::~bell() {
  if (context_ != 0) syscall(SYS_io_destroy, context_);
}

void bell::ring(int eventfd) {
  iocb reads_nothing = {};
  reads_nothing.aio_lio_opcode = IOCB_CMD_PREAD;
  reads_nothing.aio_fildes = static_cast<std::uint32_t>(nothing_.get());
  reads_nothing.aio_flags = IOCB_FLAG_RESFD;
  reads_nothing.aio_resfd = static_cast<std::uint32_t>(eventfd);
  iocb* const list[] = {&reads_nothing};
  if (syscall(SYS_io_submit, context_, 1, list) != 1) return;
  io_event over;
  syscall(SYS_io_getevents, context_, 1, 1, &over, nullptr);
}

void notices::add(request const& r) {
  descriptor to = bell_.is_there() ? fetch_eventfd(r) : descriptor();
  if (!to) return r.from->answer(r, abi::go_native);
  r.from->hold(r);
  r.from->watch(+1);
  all_.push_back({r, std::move(to)});
}

/// The slot is free before the bell rings: who wakes finds nothing under way.
void notices::tell(one const& o) {
  o.asked.from->watch(-1);
  o.asked.from->answer(o.asked, 0);
  bell_.ring(o.to.get());
}

void notices::look() {
  std::erase_if(all_, [&](one const& o) {
    bool const waits = o.asked.from->is_under_way(o.asked.device, o.asked.inode);
    if (!waits) tell(o);
    return !waits;
  });
}

void notices::drop(area const& a) {
  std::erase_if(all_, [&](one const& o) { return o.asked.from == &a; });
}

void notices::tell_all() {
  for (auto const& o : all_) tell(o);
  all_.clear();
}

}  // namespace sluice::journal
