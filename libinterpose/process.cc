// SPDX-License-Identifier: Apache-2.0
// Starting programs, leaving, naming threads, entering sandboxes. A program that is started keeps
// the stage even when its caller drops the environment: LD_PRELOAD is put back into the array that
// exec is given, on the stack, because this may be a vfork child. Only that one variable is ours;
// it says where library and segment lie.
#include <alloca.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/prctl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "attach.h"
#include "clock.h"
#include "join.h"
#include "meter.h"
#include "name_buffer.h"
#include "rows.h"
#include "sys.h"

namespace sluice {

namespace {

constexpr char preload_name[] = "LD_PRELOAD=";
constexpr unsigned preload_name_length = sizeof preload_name - 1;
constexpr unsigned most_text_on_stack = 4096;     // bytes of the one variable
constexpr unsigned max_environment = 1000;        // entries we are ready to copy
constexpr unsigned most_on_stack = 2048;          // bytes of a copy
constexpr unsigned longest_variable = 128 << 10;  // the kernel's own limit

bool starts_with(char const* text, char const* prefix, unsigned length) {
  for (unsigned i = 0; i < length; ++i)
    if (text[i] != prefix[i]) return false;
  return true;
}

bool names_us(char const* list) {
  while (*list != 0) {
    bool const here = starts_with(list, stage.preload, stage.preload_length);
    char const after = here ? list[stage.preload_length] : 'x';
    if (after == 0 || after == ':' || after == ' ') return true;
    while (*list != 0 && *list != ':' && *list != ' ') ++list;
    while (*list == ':' || *list == ' ') ++list;
  }
  return false;
}

struct environment {
  unsigned count = 0;
  int preload_at = -1;
  bool readable = true;   // else the kernel is left to say EFAULT
  bool complete = false;  // has us already; then preload_at is where
};

// After a sandbox nobody may be asked. A program that reads its environment dies of a bad one too.
bool is_readable(char* const* entry) { return is_in_sandbox() || can_read(entry); }

bool can_read_whole(char const* variable) {
  if (is_in_sandbox()) return true;
  bool const is_short = strnlen(variable, core::max_path) < core::max_path;
  return is_short || ask_for_text(variable, longest_variable);
}

environment inspect(char* const* envp) {
  environment e;
  for (; envp != nullptr; ++e.count) {
    if (!is_readable(envp + e.count)) return {e.count, -1, false, false};
    if (envp[e.count] == nullptr) break;
    if (!is_in_sandbox() && !can_read_text(envp[e.count])) return {e.count, -1, false, false};
    if (!starts_with(envp[e.count], preload_name, preload_name_length)) continue;
    if (!can_read_whole(envp[e.count])) return {e.count, -1, false, false};
    e.preload_at = static_cast<int>(e.count);
    e.complete = names_us(envp[e.count] + preload_name_length);
  }
  return e;
}

// A process without free descriptors cannot say.
bool opens_library() {
  long const fd = sys::call(SYS_openat, sys::at_cwd, sys::as_long(stage.preload),
                            O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (!sys::failed(fd)) sys::call(SYS_close, fd);
  return !sys::failed(fd) || fd == -EMFILE || fd == -ENFILE;
}

long may_read_library(long call, long flags) {
  constexpr long read_permission = 4;
  return sys::call(call, sys::at_cwd, sys::as_long(stage.preload), read_permission, flags);
}

// A program that changed its user, or its root, or put itself below Landlock, may no longer open
// the library: its children then go without us, and ld.so has nothing to complain about. Asked each
// time (a microsecond of the half millisecond an exec takes): roots and mounts change without our
// knowing. Both ids are asked, for capabilities are lost at the exec. Only Landlock, and a kernel
// before 5.8, have to be asked by an open, whose descriptor other threads would see.
bool library_is_within_reach() {
  constexpr long by_effective_ids = 0x200;  // AT_EACCESS
  long const effective = may_read_library(SYS_faccessat2, by_effective_ids);
  long const real = may_read_library(SYS_faccessat, 0);
  for (long const r : {effective, real})
    if (r == -EACCES || r == -ENOENT) return false;  // a filter may have refused to say
  // A user can be below it only with no_new_privs. Root needs none: its own call is seen.
  bool const may_be_below_landlock = stage.mine == nullptr ||
                                     stage.mine->below_landlock.load(std::memory_order_relaxed) ||
                                     sys::call(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
  return (effective == 0 && !may_be_below_landlock) || opens_library();
}

// The segment is of the user who began, and root opens all.
bool is_another_user() {
  abi::segment const* const s = stage.active.load(std::memory_order_relaxed);
  long const user = sys::call(SYS_geteuid);
  return s != nullptr && !sys::failed(user) && user != 0 && user != long{s->head.owner_uid};
}

// Writes LD_PRELOAD=<us>:<theirs without us>, or without us. `to` has room for all of it. False:
// nothing is left.
bool write_preload(char* to, char const* theirs, bool with_us) {
  char const* const end_of_name = preload_name + preload_name_length;
  for (char const* c = preload_name; c != end_of_name;) *to++ = *c++;
  char const* const first = to;
  auto const put = [&](std::string_view item) {
    if (item.empty()) return;
    if (to != first) *to++ = ':';
    for (char c : item) *to++ = c;
  };
  std::string_view const us(stage.preload, stage.preload_length);
  if (with_us) put(us);
  while (*theirs != 0) {
    std::string_view const item(theirs, __builtin_strcspn(theirs, ": "));
    if (item != us) put(item);
    theirs += item.size();
    while (*theirs == ':' || *theirs == ' ') ++theirs;
  }
  *to = 0;
  return to != first;
}

// Room that is there before a sandbox, in which nobody may map any. A vfork child that starts its
// program never gives it back, so it has none of it.
class sandbox_room {
 public:
  explicit sandbox_room(std::size_t bytes)
      : is_ours_(stage.mine != nullptr && bytes > most_on_stack &&
                 bytes <= sizeof stage.mine->exec_room && is_in_sandbox() &&
                 self.is_vfork_child == 0 && !is_taken_.exchange(true)) {}
  ~sandbox_room() {
    if (is_ours_) is_taken_.store(false);
  }
  sandbox_room(sandbox_room const&) = delete;
  sandbox_room& operator=(sandbox_room const&) = delete;

  char* text() const { return is_ours_ ? stage.mine->exec_room : nullptr; }

 private:
  inline static constinit std::atomic<bool> is_taken_{false};
  bool is_ours_;
};

/// As exec says it, or a spawn.
bool is_too_long(int result) { return result == E2BIG || (result == -1 && errno == E2BIG); }

// The arrays live in this frame, hence the callback; and the frame exists only when it must.
template <class Start>
[[gnu::noinline]] int with_rewritten(char* const* envp, environment const& e, bool with_us,
                                     bool may_repeat, Start&& start) {
  char const* const theirs = e.preload_at >= 0 ? envp[e.preload_at] + preload_name_length : "";
  std::size_t const length = __builtin_strlen(theirs) + stage.preload_length + 32;
  bool const may_copy = e.count <= max_environment || is_in_sandbox();
  if (!may_copy || length > longest_variable) {
    pass_through(abi::passthrough::exec_environment);
    return start(envp);
  }
  // On the stack, unless they are large: signal handlers have little. The mapping is given back
  // when the start failed or was a spawn, and an exec takes it away. A vfork child's memory is its
  // parent's, so it has none.
  std::size_t const bytes = (e.count + 2) * sizeof(char*) + length;
  bool const may_map = bytes > most_on_stack && self.is_vfork_child == 0 && !is_in_sandbox();
  mapped_room const mapped(may_map ? bytes : 0);
  sandbox_room const kept(bytes);
  char* room = may_map ? mapped.text() : kept.text();
  bool const may_use_stack = !may_map && length <= most_text_on_stack;
  if (room == nullptr && may_use_stack) room = static_cast<char*>(alloca(bytes));
  if (room == nullptr) {
    pass_through(abi::passthrough::exec_environment);
    return start(envp);
  }
  auto** const entries = reinterpret_cast<char**>(room);
  char* const text = room + (e.count + 2) * sizeof(char*);
  bool const is_left = write_preload(text, theirs, with_us);
  unsigned count = 0;
  for (unsigned i = 0; i < e.count; ++i) {
    bool const is_preload = static_cast<int>(i) == e.preload_at;
    if (!is_preload || is_left) entries[count++] = is_preload ? text : envp[i];
  }
  if (e.preload_at < 0) entries[count++] = text;
  entries[count] = nullptr;
  int const r = start(entries);
  // What fits only without us starts without us.
  if (!may_repeat || !is_too_long(r)) return r;
  pass_through(abi::passthrough::exec_environment);
  return start(envp);
}

// Calls start(envp) with an environment that has us in it; after a sandbox, with one that has not:
// a filter knows no calls of ours. `may_repeat`: a start that failed has changed nothing.
template <class Start>
int with_preload(char* const* envp, bool may_repeat, Start&& start) {
  if (stage.preload_length == 0) return start(envp);
  environment const e = inspect(envp);
  if (!e.readable) return start(envp);
  if (is_in_sandbox()) await_tries();
  bool const with_us = !is_in_sandbox() && library_is_within_reach();
  if (!is_in_sandbox() && is_another_user()) pass_through(abi::passthrough::other_user);
  if (e.complete != with_us) return with_rewritten(envp, e, with_us, may_repeat, start);
  int const r = start(envp);
  bool const begins_anew = with_us && may_repeat && is_too_long(r);
  return begins_anew ? with_rewritten(envp, e, false, false, start) : r;
}

}  // namespace

// Only where it can be written for sure: on the first stack, where the kernel has put it, or in the
// heap, where setenv() does.
char** entry_in_environment() {
  if (stage.mine == nullptr || self.is_vfork_child != 0 || is_in_sandbox()) return nullptr;
  environment const e = inspect(environ);
  if (!e.readable || !e.complete) return nullptr;
  char** const entry = environ + e.preload_at;
  auto const at = reinterpret_cast<std::uintptr_t>(entry);
  bool const is_ours_to_write = is_in(known.stack, at) || is_in(known.heap, at);
  bool const fits = __builtin_strlen(*entry) < sizeof stage.mine->other_preloads;
  return is_ours_to_write && fits ? entry : nullptr;
}

void leave_environment(char** entry) {
  char* const left = stage.mine->other_preloads;
  if (write_preload(left, *entry + preload_name_length, false)) {
    *entry = left;
    return;
  }
  for (; *entry != nullptr; ++entry) *entry = entry[1];
}

void before_libc_starts_a_shell() {
  if (stage.preload_length == 0 || is_in_sandbox() || library_is_within_reach()) return;
  if (char** const entry = entry_in_environment()) leave_environment(entry);
}

namespace slow {

int execve(char const* path, char* const* argv, char* const* envp) {
  return with_preload(envp, true, [&](char* const* env) { return real::execve(path, argv, env); });
}

int execveat(int dir, char const* path, char* const* argv, char* const* envp, int flags) {
  return with_preload(
      envp, true, [&](char* const* env) { return real::execveat(dir, path, argv, env, flags); });
}

int fexecve(int fd, char* const* argv, char* const* envp) {
  return with_preload(envp, true, [&](char* const* env) { return real::fexecve(fd, argv, env); });
}

int execvpe(char const* file, char* const* argv, char* const* envp) {
  return with_preload(envp, true, [&](char* const* env) { return real::execvpe(file, argv, env); });
}

int execv(char const* path, char* const* argv) { return execve(path, argv, environ); }

int execvp(char const* file, char* const* argv) { return execvpe(file, argv, environ); }

int posix_spawn(int* pid, char const* path, void const* actions, void const* attributes,
                char* const* argv, char* const* envp) {
  return with_preload(envp, actions == nullptr, [&](char* const* env) {
    return real::posix_spawn(pid, path, actions, attributes, argv, env);
  });
}

int posix_spawnp(int* pid, char const* file, void const* actions, void const* attributes,
                 char* const* argv, char* const* envp) {
  return with_preload(envp, actions == nullptr, [&](char* const* env) {
    return real::posix_spawnp(pid, file, actions, attributes, argv, env);
  });
}

int pidfd_spawn(int* pidfd, char const* path, void const* actions, void const* attributes,
                char* const* argv, char* const* envp) {
  return with_preload(envp, actions == nullptr, [&](char* const* env) {
    return real::pidfd_spawn(pidfd, path, actions, attributes, argv, env);
  });
}

int pidfd_spawnp(int* pidfd, char const* file, void const* actions, void const* attributes,
                 char* const* argv, char* const* envp) {
  return with_preload(envp, actions == nullptr, [&](char* const* env) {
    return real::pidfd_spawnp(pidfd, file, actions, attributes, argv, env);
  });
}

// Before a durable target's barriers it waits; else it is libc's.
int system(char const* command) {
  if (command != nullptr) before_libc_starts_a_shell();
  return real::system(command);
}

// The next four are followed where small writes are gathered (small/); else they are libc's.
int setrlimit(int what, void const* limit) { return real::setrlimit(what, limit); }

int prlimit(int process, int what, void const* limit, void* old) {
  return real::prlimit(process, what, limit, old);
}

// More arguments than the caller gave do no harm.
int clone(int (*run)(void*), void* stack, int flags, void* argument, void* parent, void* tls,
          void* child) {
  return real::clone(run, stack, flags, argument, parent, tls, child);
}

[[gnu::always_inline]] static inline int beside_no_try(int (*real_fork)()) {
  bool const is_begun = begin_fork();
  int const r = real_fork();
  if (is_begun && r != 0) end_fork();
  return r;
}

int fork() { return beside_no_try(real::fork); }
int _Fork() { return beside_no_try(real::_Fork); }

// A sandbox that the program enters may kill it for any call it does not expect: from here on we
// make none.
// One that is refused (programs probe for the feature this way) is none.
int prctl(int option, long a, long b, long c, long d) {
  if (option == PR_SET_SECCOMP)
    return static_cast<int>(into_sandbox(a, b, [=] { return real::prctl(option, a, b, c, d); }));
  // From then on it answers system calls itself, those of others too.
  if (option == PR_SET_SYSCALL_USER_DISPATCH && a != PR_SYS_DISPATCH_OFF)
    return static_cast<int>(
        into_sandbox(other_sandbox, 0, [=] { return real::prctl(option, a, b, c, d); }));
  // Who may not read the processor's counter may not read the kernel's clock in memory either.
  if (option == PR_SET_TSC && a == PR_TSC_SIGSEGV) ask_kernel_for_time();
  int const r = real::prctl(option, a, b, c, d);
  if (option == PR_SET_NAME && r == 0) thread_was_named();
  return r;
}

int pthread_setname_np(unsigned long thread, char const* name) {
  int const r = real::pthread_setname_np(thread, name);
  if (r == 0) thread_was_named();
  return r;
}

void _exit(int status) {
  leave_process();
  real::_exit(status);
  __builtin_unreachable();
}

}  // namespace slow

// execl and friends: the arguments become an array in this frame. execle's environment follows the
// null.
#define EXPORT __attribute__((visibility("default")))

#define COLLECT_ARGUMENTS(first, list)                                          \
  unsigned count = 1;                                                           \
  va_start(list, first);                                                        \
  while (va_arg(list, char*) != nullptr) ++count;                               \
  va_end(list);                                                                 \
  auto** const argv = static_cast<char**>(alloca((count + 1) * sizeof(char*))); \
  va_start(list, first);                                                        \
  argv[0] = const_cast<char*>(first);                                           \
  for (unsigned i = 1; i <= count; ++i) argv[i] = va_arg(list, char*)

extern "C" EXPORT int sluice_execl(char const* path, char const* first, ...) __asm__("execl");
int sluice_execl(char const* path, char const* first, ...) {
  va_list list;
  COLLECT_ARGUMENTS(first, list);
  va_end(list);
  if (!minds_starts()) return real::execv(path, argv);
  return slow::execv(path, argv);
}

extern "C" EXPORT int sluice_execlp(char const* file, char const* first, ...) __asm__("execlp");
int sluice_execlp(char const* file, char const* first, ...) {
  va_list list;
  COLLECT_ARGUMENTS(first, list);
  va_end(list);
  if (!minds_starts()) return real::execvp(file, argv);
  return slow::execvp(file, argv);
}

extern "C" EXPORT int sluice_execle(char const* path, char const* first, ...) __asm__("execle");
int sluice_execle(char const* path, char const* first, ...) {
  va_list list;
  COLLECT_ARGUMENTS(first, list);
  auto* const envp = va_arg(list, char* const*);
  va_end(list);
  if (!minds_starts()) return real::execve(path, argv, envp);
  return slow::execve(path, argv, envp);
}

extern "C" __attribute__((visibility("hidden"))) int sluice_vfork_failed(long result) {
  errno = static_cast<int>(-result);
  return -1;
}

// AddressSanitizer refuses to start behind another preloaded library; this is how it is told not to
// mind. A program with options of its own defines this itself, and then that one counts.
extern "C" EXPORT char const* sluice_asan_options() __asm__("__asan_default_options");
char const* sluice_asan_options() { return "verify_asan_link_order=0"; }

}  // namespace sluice
