// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/program.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <sstream>

#include "base/error.h"
#include "base/printable.h"

namespace sluice::cli {

namespace {

/// A file read at offsets found in it; everything is checked against its size.
class image {
 public:
  explicit image(std::string const& path)
      : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    struct stat st = {};
    if (fd_ >= 0 && fstat(fd_, &st) == 0 && S_ISREG(st.st_mode))
      size_ = static_cast<std::uint64_t>(st.st_size);
  }
  ~image() {
    if (fd_ >= 0) close(fd_);
  }
  image(image const&) = delete;
  image& operator=(image const&) = delete;

  bool opened() const { return fd_ >= 0; }

  std::string text(std::uint64_t offset, std::uint64_t length) const {
    if (offset > size_ || length > size_ - offset || length > 1 << 20) return {};
    std::string out(length, '\0');
    auto const got = pread(fd_, out.data(), length, static_cast<off_t>(offset));
    return got == static_cast<ssize_t>(length) ? out : std::string{};
  }

  template <typename T>
  bool read(std::uint64_t offset, T& out) const {
    std::string const bytes = text(offset, sizeof out);
    if (bytes.empty()) return false;
    std::memcpy(&out, bytes.data(), sizeof out);
    return true;
  }

  std::string start(std::uint64_t most) const { return text(0, std::min(most, size_)); }

 private:
  int fd_;
  std::uint64_t size_ = 0;
};

struct elf_facts {
  std::uint16_t machine = 0;
  std::uint8_t width = 0;  // ELFCLASS
  bool shared_object = false;
  std::string interpreter;
  bool go = false;
};

bool has_go_section(image const& file, Elf64_Ehdr const& head) {
  unsigned const count = std::min<unsigned>(head.e_shnum, 4096);
  Elf64_Shdr names = {};
  if (head.e_shentsize != sizeof names || head.e_shstrndx >= count) return false;
  if (head.e_shoff > UINT64_MAX / 2) return false;
  if (!file.read(head.e_shoff + std::uint64_t{head.e_shstrndx} * sizeof names, names)) return false;
  std::string const table = file.text(names.sh_offset, names.sh_size);
  for (std::string_view wanted : {".go.buildinfo", ".note.go.buildid"})
    if (table.find(std::string(1, '\0') + std::string(wanted) + '\0') != std::string::npos)
      return true;
  return false;
}

std::optional<elf_facts> read_elf(image const& file) {
  std::string const magic = file.text(0, EI_NIDENT);
  if (!magic.starts_with(ELFMAG)) return std::nullopt;
  elf_facts facts;
  facts.width = static_cast<std::uint8_t>(magic[EI_CLASS]);
  file.read(18, facts.machine);  // e_machine lies there in both widths
  Elf64_Ehdr head = {};
  if (facts.width != ELFCLASS64 || magic[EI_DATA] != ELFDATA2LSB || !file.read(0, head))
    return facts;
  facts.shared_object = head.e_type == ET_DYN;
  for (unsigned i = 0; i < std::min<unsigned>(head.e_phnum, 256); ++i) {
    Elf64_Phdr part = {};
    if (head.e_phentsize != sizeof part || head.e_phoff > UINT64_MAX / 2 ||
        !file.read(head.e_phoff + i * sizeof part, part))
      break;
    if (part.p_type == PT_INTERP && part.p_filesz < 4096)
      facts.interpreter = file.text(part.p_offset, part.p_filesz).c_str();
  }
  facts.go = has_go_section(file, head);
  return facts;
}

/// True when exec will forget LD_PRELOAD: other ids than ours, or capabilities of the file.
bool gains_privileges(std::string const& path) {
  struct stat st = {};
  if (::stat(path.c_str(), &st) != 0) return false;
  bool const uid = (st.st_mode & S_ISUID) != 0 && st.st_uid != getuid();
  bool const gid =
      (st.st_mode & S_ISGID) != 0 && (st.st_mode & S_IXGRP) != 0 && st.st_gid != getgid();
  return uid || gid || getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
}

void say(program_facts& f, char const* kind, bool limited, std::string why,
         std::string advice = {}) {
  f.kind = kind;
  f.limited = limited;
  f.why = std::move(why);
  f.advice = std::move(advice);
}

constexpr char const* link_dynamically = "link it dynamically against glibc to limit it";

void judge_elf(program_facts& f, elf_facts const& elf, elf_facts const& own) {
  f.interpreter = elf.interpreter;
  if (elf.width != own.width || elf.machine != own.machine) {
    f.loads_library = false;
    return say(f, "foreign", false,
               "it is made for another machine or word size than libinterpose.so",
               "install sluice built for that machine");
  }
  if (gains_privileges(f.through.empty() ? f.path : f.through.back()))
    return say(f, "setuid", false,
               "it gains privileges at exec (setuid, setgid or file capabilities), "
               "and then the loader ignores LD_PRELOAD",
               "start it without the extra privileges, or list the library in /etc/ld.so.preload");
  if (elf.go)
    return say(f, "go", false, "it is a Go program: its runtime makes system calls without libc",
               "its I/O cannot be limited by preloading; programs it starts can");
  if (elf.interpreter.empty())
    return say(f, elf.shared_object ? "static-pie" : "static", false,
               "it is statically linked: no library can be preloaded", link_dynamically);
  if (elf.interpreter.find("ld-musl") != std::string::npos) {
    f.loads_library = false;
    return say(f, "musl", false, "it uses musl libc, which cannot load a library made for glibc",
               link_dynamically);
  }
  if (elf.interpreter.find("ld-linux") == std::string::npos &&
      elf.interpreter.find("ld64.so") == std::string::npos) {
    f.loads_library = false;
    return say(f, "other libc", false, fmt::format("its loader {} is not glibc's", elf.interpreter),
               link_dynamically);
  }
  say(f, "dynamic", true, "it is linked dynamically against glibc: its calls are seen");
}

/// The words of a `#!` line: interpreter and at most one argument.
std::vector<std::string> interpreter_line(std::string const& start) {
  std::string line = start.substr(2, start.find('\n') - 2);
  std::istringstream in(line);
  std::vector<std::string> out;
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

bool is_executable_file(std::string const& path) {
  struct stat st = {};
  return ::stat(path.c_str(), &st) == 0 && S_ISREG(st.st_mode) && access(path.c_str(), X_OK) == 0;
}

/// As execvp looks for it: an empty part of PATH, also its last, is the current directory, and what
/// is there but cannot be executed is told from what is nowhere: then `why` is EACCES.
std::optional<std::string> in_path(std::string const& name, int& why) {
  char const* const set = std::getenv("PATH");
  std::string const path = set != nullptr ? set : "/bin:/usr/bin";
  why = 0;
  for (std::size_t at = 0, end = 0; end != std::string::npos; at = end + 1) {
    end = path.find(':', at);
    std::string const dir = path.substr(at, end == std::string::npos ? end : end - at);
    std::string const file = (dir.empty() ? "." : dir) + "/" + name;
    if (is_executable_file(file)) return file;
    struct stat st = {};
    if (::stat(file.c_str(), &st) == 0 || errno == EACCES) why = EACCES;
  }
  return std::nullopt;
}

/// The next file of a chain of interpreters; empty: this one is not a script.
std::string next_interpreter(std::string const& start) {
  if (!start.starts_with("#!")) return {};
  auto const words = interpreter_line(start);
  if (words.empty()) return {};
  bool const by_env = words.size() > 1 && words[0].ends_with("/env");
  std::size_t const at = by_env ? (words[1] == "-S" ? 2 : 1) : 0;
  if (!by_env || at >= words.size()) return words[0];
  if (words[at].find('/') != std::string::npos) return words[at];
  int why = 0;
  return in_path(words[at], why).value_or(words[0]);
}

}  // namespace

std::string find_program(std::string const& name) {
  auto const refuse = [&](int status, int why) {
    return error(status, fmt::format("cannot execute {}: {}", name.empty() ? "''" : printable(name),
                                     why == 0 ? "command not found" : std::strerror(why)));
  };
  if (name.empty()) throw refuse(exit_missing, 0);
  if (name.find('/') == std::string::npos) {
    int why = 0;
    if (auto found = in_path(name, why)) return *found;
    throw refuse(why == 0 ? exit_missing : exit_cannot, why);
  }
  struct stat st = {};
  if (::stat(name.c_str(), &st) != 0)
    throw refuse(errno == ENOENT || errno == ENOTDIR ? exit_missing : exit_cannot, errno);
  if (S_ISDIR(st.st_mode)) throw refuse(exit_cannot, EISDIR);
  if (access(name.c_str(), X_OK) != 0) throw refuse(exit_cannot, errno);
  return name;
}

program_facts inspect_program(std::string const& path) {
  program_facts f;
  f.path = path;
  image const self("/proc/self/exe");
  elf_facts const own = read_elf(self).value_or(elf_facts{});
  std::string file = path;
  for (int depth = 0; depth < 5; ++depth) {
    image const program(file);
    if (!program.opened()) {
      say(f, "unreadable", true, fmt::format("{} cannot be read: {}", file, std::strerror(errno)));
      return f;
    }
    if (auto const elf = read_elf(program)) {
      judge_elf(f, *elf, own);
      return f;
    }
    std::string const start = program.start(512);
    std::string next = next_interpreter(start);
    if (next.empty()) {
      say(f, "not a program", true,
          "it is neither ELF nor a script with #!; a shell may run it as a script");
      return f;
    }
    file = next;
    f.through.push_back(file);
  }
  say(f, "not a program", false, "its interpreters are scripts in a circle");
  return f;
}

}  // namespace sluice::cli
