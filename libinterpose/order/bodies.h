// SPDX-License-Identifier: Apache-2.0
// Shared by order/calls.cc, order/names.cc and order/stdio.cc.
#pragma once

#include <errno.h>
#include <fcntl.h>

#include <cstddef>
#include <type_traits>

#include "order/notes.h"

namespace sluice::order {

/// stdio's rows, by order/stdio.cc.
void stand_between_streams();
/// What changes names and attributes, and what ends, starts or closes something: order/names.cc.
void stand_between_names();
/// The same for system calls through syscall(2), by number.
bool changes_names(long number);

struct name_at {
  int dir;
  char const* path;
};
/// Of a system call that removes a name: which; a null path when it does not.
name_at name_given_up_by(long number, long a, long b);

/// Before a system call that gives a file to another owner: the journal lets go of it.
void before_giving_away_by(long number, long a, long b);

/// A call that is not made for the error of a barrier, told as the call tells errors: no pointer,
/// no objects of fwrite, else -1, EOF, WEOF.
template <class Result>
Result refused(int error) {
  errno = error;
  if constexpr (std::is_pointer_v<Result> || std::is_same_v<Result, std::size_t>)
    return Result{};
  else
    return static_cast<Result>(-1);
}

/// A call that takes the name `path` away.
template <class Real>
auto giving_up(int dir, char const* path, Real&& real_call) {
  bool const is_noted = note_given_up(dir, path);
  auto const r = real_call();
  if (!is_noted) was_given_up(path);
  return r;
}

/// It is a regular file of a durable target, and what the kernel says of it.
bool look_at_ours(int fd, file_now& f);

/// What an open did to its file: made it, or cut it.
struct opening {
  bool creates;  // and the name was not there before
  bool cuts;
  int dir;
  char const* path;  // may be null
};
/// An open with other flags changes no file and no name.
constexpr bool may_change(int open_flags) { return (open_flags & (O_CREAT | O_TRUNC)) != 0; }
opening before_open(int dir, char const* path, int flags);
void after_open(opening const& o, int fd);

}  // namespace sluice::order
