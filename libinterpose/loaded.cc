// SPDX-License-Identifier: Apache-2.0
// See loaded.h. Two ways to the objects: the loader's list, which debuggers read, for those that
// were there from the start; dl_iterate_phdr, which holds the loader's lock, for all. Another libc
// has the second only.
#include "loaded.h"

#include <link.h>
#include <string.h>
#include <sys/auxv.h>

#include <atomic>

extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));
extern "C" r_debug loader_list __asm__("_r_debug") __attribute__((weak));

namespace sluice::loaded {

namespace {

using address = ElfW(Addr);
using entry = ElfW(Dyn);
using symbol_entry = ElfW(Sym);
using part_header = ElfW(Phdr);
using version_entry = ElfW(Verdef);
using version_name = ElfW(Verdaux);

constexpr unsigned address_bits = 8 * sizeof(address);
constexpr std::uint16_t hidden_version = 0x8000, version_number = 0x7fff, first_named_version = 2;

std::uint32_t old_hash_of(char const* name) {
  std::uint32_t hash = 0;
  for (; *name != 0; ++name) {
    hash = (hash << 4) + static_cast<unsigned char>(*name);
    hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
  }
  return hash;
}

/// The tables of one object.
class object {
 public:
  object(address base, entry const* dynamic) : base_(base) {
    for (; dynamic->d_tag != DT_NULL; ++dynamic) {
      switch (dynamic->d_tag) {
        case DT_SYMTAB:
          set(symbols_, *dynamic);
          break;
        case DT_STRTAB:
          set(text_, *dynamic);
          break;
        case DT_GNU_HASH:
          set(gnu_, *dynamic);
          break;
        case DT_HASH:
          set(old_, *dynamic);
          break;
        case DT_VERSYM:
          set(versions_, *dynamic);
          break;
        case DT_VERDEF:
          set(defined_, *dynamic);
          break;
      }
    }
  }

  void* find(symbol const& wanted) const {
    if (symbols_ == nullptr || text_ == nullptr) return nullptr;
    if (gnu_ != nullptr) return find_by_gnu(wanted);
    return old_ != nullptr ? find_by_old(wanted) : nullptr;
  }

 private:
  // Some loaders turn what the file says into addresses, some do not.
  template <class T>
  void set(T const*& to, entry const& e) {
    address const at = e.d_un.d_ptr;
    to = reinterpret_cast<T const*>(at < base_ ? at + base_ : at);
  }

  void* find_by_gnu(symbol const& wanted) const {
    std::uint32_t const buckets = gnu_[0], first = gnu_[1], words = gnu_[2], shift = gnu_[3];
    if (buckets == 0 || words == 0) return nullptr;
    auto const* const bloom = reinterpret_cast<address const*>(gnu_ + 4);
    auto const* const bucket = reinterpret_cast<std::uint32_t const*>(bloom + words);
    address const word = bloom[wanted.hash / address_bits % words];
    address const both =
        word >> wanted.hash % address_bits & word >> (wanted.hash >> shift) % address_bits;
    if ((both & 1) == 0) return nullptr;
    std::uint32_t at = bucket[wanted.hash % buckets];
    if (at < first) return nullptr;
    for (auto const* chain = bucket + buckets - first;; ++at) {
      if ((chain[at] | 1) == (wanted.hash | 1))
        if (void* const found = if_meant(at, wanted)) return found;
      if ((chain[at] & 1) != 0) return nullptr;
    }
  }

  void* find_by_old(symbol const& wanted) const {
    std::uint32_t const buckets = old_[0], count = old_[1];
    if (buckets == 0) return nullptr;
    auto const* const chain = old_ + 2 + buckets;
    for (std::uint32_t at = old_[2 + old_hash_of(wanted.name) % buckets]; at != 0 && at < count;
         at = chain[at])
      if (void* const found = if_meant(at, wanted)) return found;
    return nullptr;
  }

  void* if_meant(std::uint32_t at, symbol const& wanted) const {
    symbol_entry const& s = symbols_[at];
    unsigned const type = s.st_info & 0xf;
    bool const has_address =
        type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE || type == STT_OBJECT;
    if (s.st_shndx == SHN_UNDEF || s.st_value == 0 || !has_address) return nullptr;
    if (strcmp(text_ + s.st_name, wanted.name) != 0 || !has_version(at, wanted)) return nullptr;
    address const found = base_ + s.st_value;
    return type == STT_GNU_IFUNC ? chosen(found) : reinterpret_cast<void*>(found);
  }

  static void* chosen([[maybe_unused]] address chooser) {
#if defined(__x86_64__)
    return reinterpret_cast<void* (*)()>(chooser)();
#else
    return nullptr;  // it has arguments there, and libc's functions of files are none such
#endif
  }

  bool has_version(std::uint32_t at, symbol const& wanted) const {
    if (versions_ == nullptr) return true;
    std::uint16_t const number = versions_[at] & version_number;
    bool const is_default = (versions_[at] & hidden_version) == 0;
    if (wanted.version == nullptr || number < first_named_version) return is_default;
    char const* const name = name_of_version(number);
    return name != nullptr && strcmp(name, wanted.version) == 0;
  }

  char const* name_of_version(std::uint16_t number) const {
    auto const* at = reinterpret_cast<char const*>(defined_);
    while (at != nullptr) {
      auto const& version = *reinterpret_cast<version_entry const*>(at);
      if (version.vd_ndx == number)
        return text_ + reinterpret_cast<version_name const*>(at + version.vd_aux)->vda_name;
      at = version.vd_next == 0 ? nullptr : at + version.vd_next;
    }
    return nullptr;
  }

  address base_;
  symbol_entry const* symbols_ = nullptr;
  char const* text_ = nullptr;
  std::uint32_t const* gnu_ = nullptr;
  std::uint32_t const* old_ = nullptr;
  std::uint16_t const* versions_ = nullptr;
  version_entry const* defined_ = nullptr;
};

// In the loader's list: ours, and the last that was there when it was first looked at. The program
// may have unloaded that one since, so the list may end without it.
constinit std::atomic<link_map const*> own{nullptr};
constinit link_map const* last = nullptr;

link_map const* own_place() {
  link_map const* place = own.load(std::memory_order_acquire);
  if (place != nullptr || &loader_list == nullptr) return place;
  link_map const* end = nullptr;
  for (link_map const* m = loader_list.r_map; m != nullptr; end = m, m = m->l_next)
    if (m->l_ld == _DYNAMIC) place = m;
  last = end;
  own.store(place, std::memory_order_release);
  return place;
}

/// A function, and the object that has it.
struct finding {
  void* found = nullptr;
  address base = 0;
  entry const* dynamic = nullptr;
};

struct search {
  symbol const* wanted;
  finding first;
};

/// Older ones have their calls that may be cancelled in libpthread, too; both have this function.
bool is_libc(object const& o) {
  return o.find({"__libc_current_sigrtmin", hash_of("__libc_current_sigrtmin"), nullptr}) !=
         nullptr;
}

int look_into(dl_phdr_info* info, std::size_t, void* data) {
  auto& s = *static_cast<search*>(data);
  for (unsigned i = 0; i < info->dlpi_phnum; ++i) {
    part_header const& part = info->dlpi_phdr[i];
    if (part.p_type != PT_DYNAMIC) continue;
    auto const* const dynamic = reinterpret_cast<entry const*>(info->dlpi_addr + part.p_vaddr);
    if (dynamic == _DYNAMIC) continue;
    s.first = {object(info->dlpi_addr, dynamic).find(*s.wanted), info->dlpi_addr, dynamic};
  }
  return s.first.found != nullptr;
}

finding look_after_ours(symbol const& wanted) {
  link_map const* const place = own_place();
  if (place == nullptr) return {};
  for (link_map const* m = place; m != last && (m = m->l_next) != nullptr;)
    if (void* const found = object(m->l_addr, m->l_ld).find(wanted))
      return {found, m->l_addr, m->l_ld};
  return {};
}

finding look_for(symbol const& wanted) {
  if (finding const f = look_after_ours(wanted); f.found != nullptr) return f;
  search s{&wanted, {}};
  dl_iterate_phdr(look_into, &s);
  return s.first;
}

}  // namespace

void* find_next(symbol const& wanted) { return look_after_ours(wanted).found; }

void* find(symbol const& wanted) { return look_for(wanted).found; }

bool is_libcs(symbol const& wanted) {
  finding const f = look_for(wanted);
  return f.found == nullptr || is_libc(object(f.base, f.dynamic));
}

void* find_in_vdso(symbol const& wanted) {
  auto const at = static_cast<address>(getauxval(AT_SYSINFO_EHDR));
  if (at == 0) return nullptr;
  auto const& head = *reinterpret_cast<ElfW(Ehdr) const*>(at);
  auto const* const parts = reinterpret_cast<part_header const*>(at + head.e_phoff);
  address base = at;
  entry const* dynamic = nullptr;
  for (unsigned i = 0; i < head.e_phnum; ++i) {
    part_header const& part = parts[i];
    if (part.p_type == PT_LOAD) base = at + part.p_offset - part.p_vaddr;
    if (part.p_type == PT_DYNAMIC) dynamic = reinterpret_cast<entry const*>(at + part.p_offset);
  }
  return dynamic == nullptr ? nullptr : object(base, dynamic).find(wanted);
}

char const* own_name() {
  link_map const* const place = own_place();
  return place == nullptr ? nullptr : place->l_name;
}

void end_if_cancelled() {
  using function = void();
  static constinit std::atomic<function*> test{nullptr};
  function* known = test.load(std::memory_order_relaxed);
  if (known == nullptr) {
    known = reinterpret_cast<function*>(
        find_next({"pthread_testcancel", hash_of("pthread_testcancel"), nullptr}));
    test.store(known, std::memory_order_relaxed);
  }
  if (known != nullptr) known();
}

}  // namespace sluice::loaded
