// SPDX-License-Identifier: Apache-2.0
// What the journal asks of a disk. One is a file (file_disk.h), another is the simulated disk of
// the tests, which loses what was not flushed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <vector>

namespace sluice::journal {

/// Memory that direct I/O takes. It is what it was where no value is given: whoever grows a buffer
/// writes or reads all of it.
template <class T>
struct block_allocator {
  using value_type = T;
  static constexpr std::align_val_t align{4096};
  block_allocator() = default;
  template <class U>
  block_allocator(block_allocator<U> const&) {}
  T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), align)); }
  template <class U>
  void construct(U* p) noexcept {
    ::new (static_cast<void*>(p)) U;
  }
  void deallocate(T* p, std::size_t) { ::operator delete(p, align); }
  bool operator==(block_allocator const&) const { return true; }
};

using block_buffer = std::vector<std::byte, block_allocator<std::byte>>;

/// Offsets, lengths and memory are whole blocks. All return 0 or an errno.
class disk {
 public:
  virtual ~disk() = default;
  virtual std::uint64_t bytes() const = 0;
  virtual int read(std::uint64_t offset, std::span<std::byte> to) = 0;
  /// May stay in a volatile cache, and may reach the medium in parts and in any order.
  virtual int write(std::uint64_t offset, std::span<std::byte const> from) = 0;
  /// Everything written before the call is on the medium when it returns 0.
  virtual int flush() = 0;
  /// It can be found again after a crash.
  virtual bool has_name() const { return true; }
  /// A write that is on the medium when it returns 0.
  virtual int write_through(std::uint64_t offset, std::span<std::byte const> from) {
    int const failed = write(offset, from);
    return failed != 0 ? failed : flush();
  }
};

}  // namespace sluice::journal
