// SPDX-License-Identifier: Apache-2.0
// Problem: a program that writes a few bytes at a time pays a system call for each, and a request
// to a server where the file system has no cache for writes.
// Idea: where the policy of a target says "close-to-open", small writes that follow one another are
// gathered in memory, and one write brings them to the kernel. That is charged to the job, and not
// each of the small ones. A descriptor is *held* while that is done for it.
// What stays true: the process itself sees no difference. Every other call that may tell (its row
// in calls.def says on which file it works) lets the descriptor go first, or has its bytes written.
// Others see them at close, fsync, lock and exit, when a mebibyte is full, at the next call of that
// kind, and at the first write after a second. A process that is killed loses what it has gathered,
// as it loses the buffers of stdio. No descriptor is held that another process may share. No thread
// waits for one that copies: it writes what is gathered and goes on without. Only who writes it out
// is waited for, as the kernel lets writers of one file wait; signals are blocked meanwhile, so
// that one comes back.
#pragma once

#include "place.h"

namespace sluice::gather {

/// Maps the state of this process, and the rings of the job if it has some. False: nothing will
/// ever be held.
bool begin(char* segment_path);

/// gathered: it is answered, be it a write that waits or a read from memory.
enum class answer : std::uint8_t { not_held, gathered, begin_anew };
/// A write of this descriptor. begin_anew: it was held, and is no more; the call is to be metered.
answer take(int fd, void const* from, std::size_t size);
/// A write of `n` bytes was made on a descriptor that is not held.
void note_written(int fd, void const* from, ssize_t n);
/// A read of this descriptor. gathered: it was answered, with `n` bytes.
answer take_read(int fd, void* to, std::size_t size, std::size_t& n);
/// A read of `n` bytes was made on a descriptor that is not held.
void note_read(int fd, ssize_t n);
/// It was opened by its name, in this process; `opening`: what before_open() gave then.
std::uint64_t before_open();
void note_opened(int fd, std::uint64_t opening);
/// Others use it from now on, or may: neither it nor a copy of it is ever held again.
void note_shared(int fd);
/// Its pages are memory from now on, which is to see each write.
void note_mapped(int fd);
void note_closed(unsigned first, unsigned last);
/// It has another number as well, of this process alone if the first one was. A call on one of them
/// finds what is gathered for the other.
void note_copied(int fd, int to);
/// Others may see what is written as it is written (a mapping, a watch): nothing is held from now
/// on, by children of fork neither.
void end_for_good();

/// Before a call that works on this place. True: the descriptor was held, and is no more; the call
/// begins anew, for it is to be metered. `only_asks`: it neither reads, writes nor moves.
bool mind(place const& where, bool only_asks = false);
/// Before libc works on a stream; null: on all. What stdio does inside libc nobody sees, so its
/// descriptors are never held. But another one of the same file may be.
void mind_stream(FILE* f);
/// A keeper has a write lease for it, or may have.
bool has_write_lease(int fd);
/// Before a call that may be about any file: they stay held. A strict one whose file system takes
/// nothing is waited for some seconds; without an end where `where` is known to be that file.
void write_all_out(place const& where = {});
/// Before a call that is about all of them.
void write_all_out_at_last();
/// Before a call about which nothing is known. True: some were held.
bool let_all_go();
/// Before a call that gives descriptors to another process: none that is open now is held again.
void share_all();
/// What the table had of it before it was held; entry_unknown: it is not.
unsigned held_entry(int fd);
/// Of a descriptor that is not held: whether its file may ever be.
bool may_be_gathered(int fd);

/// The error of a flush that nobody has been told of, or 0. It is told once, by write, fsync or
/// close, as a network file system does.
int take_error(int fd);

/// Nothing is held until resume().
void stand_back();
void resume();
/// Around a call that starts a process or leaves this image: what other threads open meanwhile is
/// not held, and goes to the child as well.
void before_start();
void after_start();

inline constexpr std::uint16_t gather_pages = 16;  // of the state of a process

}  // namespace sluice::gather
