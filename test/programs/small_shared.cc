// SPDX-License-Identifier: Apache-2.0
// small_shared DIR WHAT: a file written in small pieces, while libc, a child or another thread uses
// it by another way. Prints what a program sees of it, which must be what it sees bare; of races,
// nothing but mistakes.
#include <error.h>
#include <execinfo.h>
#include <grp.h>
#include <pthread.h>
#include <pty.h>
#include <stdio_ext.h>
#include <sys/capability.h>
#include <sys/file.h>
#include <sys/fsuid.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <wchar.h>

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "check.h"

namespace {

std::string dir;

std::string path(char const* name) { return dir + "/" + name; }

int open_new(std::string const& name, int more = 0) {
  int const fd = open(name.c_str(), O_RDWR | O_CREAT | O_TRUNC | more, 0600);
  CHECK(fd >= 0);
  return fd;
}

void put(int fd, char const* what, int times = 100) {
  char line[32];
  for (int i = 0; i < times; ++i) {
    int const size = snprintf(line, sizeof line, "%s%03d\n", what, i);
    CHECK(write(fd, line, static_cast<size_t>(size)) == size);
  }
}

std::string contents(std::string const& name) {
  FILE* const f = fopen(name.c_str(), "r");
  CHECK(f != nullptr);
  std::string all;
  for (int c; (c = getc(f)) != EOF;) all += static_cast<char>(c);
  fclose(f);
  return all;
}

// To where the test looks, whatever became of stdout.
void tell(char const* what, std::string const& text) {
  static int const out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 100);
  std::string const line = std::string(what) + ": " + text + "\n";
  CHECK(write(out, line.data(), line.size()) == static_cast<ssize_t>(line.size()));
}

void tell(char const* what, long n) { tell(what, std::to_string(n)); }

// libc's messages come after what was written by any number of the same file.
void messages() {
  for (bool const second_is_first : {false, true}) {
    int const fd = open_new(path("messages"));
    CHECK(dup2(fd, second_is_first ? 2 : 1) >= 0 && dup2(fd, second_is_first ? 1 : 2) >= 0);
    put(1, "one");
    errno = ENOENT;
    perror("perror");
    put(fd, "fd");
    error(0, 0, "error");
    close(fd);
    put(1, "last");
    perror("perror");
    tell("messages", contents(path("messages")));
  }
}

// error(3) writes out what stdout has.
void text_waiting() {
  CHECK(dup2(open_new(path("text")), 1) == 1 && dup2(open_new(path("other")), 2) == 2);
  printf("buffered\n");
  put(1, "raw");
  error(0, 0, "message");
  put(1, "raw");
  fflush(stdout);
  tell("text", contents(path("text")));
}

// The same with text that came when the descriptor had long been held, and no call said so.
void put_text(char const* text) {
  printf("begin\n");
  fflush(stdout);
  put(1, "w", 3000);
  for (; *text != 0; ++text) putchar_unlocked(*text);
  put(1, "v", 200);
}

// The messages have arguments in every kind of register, and on the stack.
void later_text() {
  CHECK(close(1) == 0 && open_new(path("later")) == 1);
  CHECK(close(2) == 0 && open_new(path("err")) == 2);
  put_text("first\n");
  error(0, EBADF, "%d %.1f %s %d %d %d %.2f %d", 1, 2.5, "three", 4, 5, 6, 7.25, 8);
  put_text("second\n");
  error_at_line(0, 0, "file", 9, "%s %.1f", "text", 1.5);
  put_text("third\n");
  CHECK(fcloseall() == 0);
  put(1, "end");
  tell("later", contents(path("later")));
  std::string const said = contents(path("err"));
  tell("said", said.substr(said.find(':')));
}

// A new buffer: what the old one has is written out.
void other_buffers() {
  static char room[BUFSIZ];
  void (*const change[])() = {[] { setbuffer(stdout, room, sizeof room); },
                              [] { setlinebuf(stdout); }, [] { setbuf(stdout, nullptr); }};
  CHECK(close(1) == 0 && open_new(path("buffers")) == 1);
  for (auto* const to : change) {
    put_text("text");
    to();
    put(1, "end");
  }
  tell("buffers", contents(path("buffers")));
}

// What few programs call: wide characters, and what libc writes by itself.
extern "C" int __wprintf_chk(int flag, wchar_t const* format, ...);
extern "C" int login_tty(int terminal);  // <utmp.h> includes <paths.h>, which we have, too
extern "C" void _flushlbf();
extern "C" void updwtmp(char const* path, void const* entry);

void wide() {
  CHECK(dup2(open_new(path("wide")), 1) == 1 && setvbuf(stdout, nullptr, _IONBF, 0) == 0);
  put(1, "a");
  CHECK(__wprintf_chk(1, L"checked %d\n", 1) > 0);
  put(1, "b");
  CHECK(putwchar(L'w') == L'w' && putwchar_unlocked(L'u') == L'u');
  put(1, "c");
  CHECK(putwc_unlocked(L'p', stdout) == L'p' && fputws_unlocked(L"string", stdout) >= 0);
  put(1, "d");
  tell("wide", contents(path("wide")));
  // Who does not ask for the lock does not wait for it.
  flockfile(stdout);
  std::thread([] {
    CHECK(fputwc_unlocked(L'x', stdout) == L'x' && putwchar_unlocked(L'y') == L'y');
  }).join();
  funlockfile(stdout);
  int const fd = open_new(path("read"));
  put(fd, "e");
  CHECK(freopen(path("read").c_str(), "r", stdin) != nullptr);
  put(fd, "f", 200);
  std::string got;
  for (wint_t c; (c = got.size() % 2 == 0 ? getwchar() : fgetwc_unlocked(stdin)) != WEOF;)
    got += static_cast<char>(c);
  tell("read", static_cast<long>(got.size()));
}

void by_libc() {
  int const fd = open_new(path("libc"), O_APPEND);
  FILE* const lines = fopen(path("libc").c_str(), "a");
  CHECK(lines != nullptr && setvbuf(lines, nullptr, _IOLBF, 4096) == 0);
  fputs("line", lines);
  put(fd, "a");
  _flushlbf();
  put(fd, "b");
  void* const frame = reinterpret_cast<void*>(16);
  backtrace_symbols_fd(&frame, 1, fd);
  put(fd, "c");
  tell("libc", contents(path("libc")));
  int const log = open_new(path("log"), O_APPEND);
  char const entry[384] = {};  // struct utmp
  put(log, "entries", 40);
  updwtmp(path("log").c_str(), &entry);
  put(log, "more");
  std::string const all = contents(path("log"));
  tell("log", static_cast<long>(all.size()) * 1000 + static_cast<long>(all.find("more")));
  fclose(lines);
}

// What the kernel maps without libc.
void raw_mapping() {
  int const fd = open_new(path("raw"));
  put(fd, "a");
  auto const at = syscall(SYS_mmap, 0, 8192, PROT_READ, MAP_SHARED, fd, 0);
  put(fd, "b");
  tell("raw", std::string(reinterpret_cast<char const*>(at) + 900, 100));
}

// A stream on a copy shares the position.
void streams() {
  for (char const* mode : {"r", "r+"}) {
    int const fd = open_new(path("stream"));
    put(fd, "a");
    FILE* const f = fdopen(dup(fd), mode);
    CHECK(f != nullptr);
    put(fd, "b");
    rewind(f);
    char line[32] = "";
    tell(mode, fgets(line, sizeof line, f) != nullptr ? line : "nothing");
    tell(mode, lseek(fd, 0, SEEK_CUR));
    put(fd, "c", 3);
    tell(mode, contents(path("stream")));
    fclose(f), close(fd);
  }
  FILE* const head = fopen(path("closed").c_str(), "w");
  int const copy = dup(fileno(head));
  fputs("head\n", head);
  put(copy, "raw");
  fcloseall();
  put(copy, "raw");
  tell("fcloseall", contents(path("closed")));
}

// libc gives a number to another file, or to none.
void reopened() {
  CHECK(dup2(open_new(path("before")), 1) == 1);
  put(1, "a");
  CHECK(mkfifo(path("fifo").c_str(), 0600) == 0);
  int const end = open(path("fifo").c_str(), O_RDONLY | O_NONBLOCK);
  CHECK(end >= 0 && freopen(path("fifo").c_str(), "w", stdout) != nullptr);
  CHECK(write(1, "hello", 5) == 5);
  char got[16] = "";
  tell("fifo", read(end, got, sizeof got));
  CHECK(dup2(open_new(path("after")), 1) == 1);
  put(1, "b");
  CHECK(freopen(path("no/such").c_str(), "w", stdout) == nullptr);
  int pair[2];
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  CHECK(write(pair[0], "hello", 5) == 5);
  tell("socket", recv(pair[1], got, sizeof got, MSG_DONTWAIT));
  tell("before", contents(path("before")));
  tell("after", contents(path("after")));
}

// A child of fork has its parent's mappings, and opens the file itself.
void mapped() {
  int const fd = open_new(path("mapped"));
  CHECK(ftruncate(fd, 4096) == 0);
  void* const at = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(at != MAP_FAILED);
  auto* const text = static_cast<char*>(at);
  pid_t const child = fork();
  if (child == 0) {
    int const own = open(path("mapped").c_str(), O_RDWR);
    put(own, "child");
    tell("mapped", std::string(text, 899));
    text[890] = '!';
    put(own, "more");
    _exit(text[890] == '!' ? 0 : 1);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child);
  tell("child", status);
}

void watched() {
  int const events = inotify_init1(IN_NONBLOCK);
  int const fd = open_new(path("watched"));
  CHECK(inotify_add_watch(events, path("watched").c_str(), IN_MODIFY) >= 0);
  long missed = 0;
  for (int i = 0; i < 100; ++i) {
    put(fd, "w", 1);
    char event[512];
    missed += read(events, event, sizeof event) <= 0;
  }
  tell("missed", missed);
}

// What the process was given watches as well: an inotify by the program that it was before.
void watched_late() {
  CHECK(dup2(inotify_init1(IN_NONBLOCK), 90) == 90);
  execl("/proc/self/exe", "small_shared", dir.c_str(), "given", nullptr);
}

void given_watch() {
  constexpr int events = 90;
  for (bool const is_raw : {false, true}) {
    std::string const name = path(is_raw ? "raw" : "given");
    pid_t const child = fork();
    if (child == 0) {
      int const fd = open_new(name);
      put(fd, "before");
      long const watch = is_raw ? syscall(SYS_inotify_add_watch, events, name.c_str(), IN_MODIFY)
                                : inotify_add_watch(events, name.c_str(), IN_MODIFY);
      CHECK(watch >= 0);
      char event[512];
      long missed = 0;
      for (int i = 0; i < 100; ++i) {
        put(fd, "w", 1);
        missed += read(events, event, sizeof event) <= 0;
      }
      tell("missed", missed);
      _exit(0);
    }
    CHECK(waitpid(child, nullptr, 0) == child);
  }
}

// Of a directory; a signal tells of each write.
void notified() {
  static std::atomic<int> told{0};
  signal(SIGIO, [](int) { told.fetch_add(1); });
  int const fd = open_new(path("notified")), in = open(dir.c_str(), O_RDONLY | O_DIRECTORY);
  put(fd, "before");
  CHECK(fcntl(in, F_NOTIFY, DN_MODIFY | DN_MULTISHOT) == 0);
  int missed = 0;
  for (int i = 0; i < 100; ++i) {
    int const before = told.load();
    put(fd, "w", 1);
    missed += told.load() == before;
  }
  tell("missed", missed);
}

// Who dies when the call is over has written all that came before it: the rights are others since.
void rights() {
  uid_t const user = getuid();
  gid_t const group = getgid();
  std::vector<gid_t> groups(1024);
  groups.resize(static_cast<size_t>(getgroups(1024, groups.data())));
  __user_cap_header_struct own = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct have[2];
  CHECK(capget(&own, have) == 0);
  std::map<std::string, std::function<long()>> const calls = {
      {"setuid", [=] { return setuid(user); }},
      {"seteuid", [=] { return seteuid(user); }},
      {"setreuid", [=] { return setreuid(user, user); }},
      {"setresuid", [=] { return setresuid(user, user, user); }},
      {"setgid", [=] { return setgid(group); }},
      {"setegid", [=] { return setegid(group); }},
      {"setregid", [=] { return setregid(group, group); }},
      {"setresgid", [=] { return setresgid(group, group, group); }},
      {"setfsuid", [=] { return setfsuid(user); }},
      {"setfsgid", [=] { return setfsgid(group); }},
      {"setgroups", [&] { return setgroups(groups.size(), groups.data()); }},
      {"initgroups", [=] { return initgroups("root", group); }},
      {"capset", [&] { return capset(&own, have); }},
      {"refused", [] { return setresuid(~0u - 1, 1, 1) + setgroups(~size_t{0}, nullptr); }},
      {"raw", [=] { return syscall(SYS_setresuid, user, user, user); }}};
  for (auto const& [name, call] : calls) {
    std::string const file = path(name.c_str());
    pid_t const child = fork();
    if (child == 0) {
      int const fd = open_new(file);
      put(fd, name.c_str(), 1000);
      errno = 0;
      long const r = call();
      if (r < 0) tell(name.c_str(), errno);
      if (name != "refused") kill(getpid(), SIGKILL);
      _exit(0);
    }
    CHECK(waitpid(child, nullptr, 0) == child);
    tell(name.c_str(), static_cast<long>(contents(file).size()));
  }
}

// libc puts a terminal, or nothing, over the standard descriptors.
void over_standard() {
  for (char const* how : {"login_tty", "daemon"}) {
    std::string const name = path(how);
    pid_t const child = fork();
    if (child == 0) {
      alarm(60);
      int terminal, end;
      CHECK(openpty(&terminal, &end, nullptr, nullptr, nullptr) == 0);
      CHECK(dup2(open_new(name), 1) == 1);
      put(1, "a", 1000);
      CHECK((how[0] == 'l' ? login_tty(end) : daemon(1, 0)) == 0);
      CHECK(write(1, "told", 4) == 4);
      char got[16];
      if (how[0] == 'l') CHECK(read(terminal, got, sizeof got) == 4);
      CHECK(dup2(open_new(name + "2"), 1) == 1);
      put(1, "b", 1000);
      _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    tell(how, static_cast<long>(contents(name).size()));
    if (how[0] == 'l') tell(how, static_cast<long>(contents(name + "2").size()));
  }
}

bool is_leased(ino_t inode) {
  std::string const all = contents("/proc/locks"), own = ":" + std::to_string(inode) + " ";
  for (size_t at = 0; (at = all.find("LEASE", at)) != std::string::npos; ++at)
    if (all.substr(at, all.find('\n', at) - at).find(own) != std::string::npos) return true;
  return false;
}

// The locks of one that is dead are free for whoever opens the file. Who asks for a lease just now
// may have a copy of the descriptor a moment longer, so only files that are leased count.
void dead_locks() {
  std::string const name = path("locked");
  int taken = 0, leased = 0;
  for (int round = 0; round < 300; ++round) {
    int ends[2];
    CHECK(pipe(ends) == 0);
    pid_t const child = fork();
    if (child == 0) {
      int const fd = open_new(name);
      struct stat file;
      CHECK(fstat(fd, &file) == 0 && flock(fd, LOCK_EX) == 0);
      for (int n = 0; n < 30 && !is_leased(file.st_ino); ++n) put(fd, "a", 1000);
      CHECK(write(ends[1], is_leased(file.st_ino) ? "y" : "n", 1) == 1);
      for (;;) pause();
    }
    char told;
    CHECK(read(ends[0], &told, 1) == 1);
    close(ends[0]), close(ends[1]);
    kill(child, SIGKILL);
    CHECK(waitpid(child, nullptr, 0) == child);
    int const fd = open(name.c_str(), O_RDONLY);
    bool const is_taken = flock(fd, LOCK_EX | LOCK_NB) != 0;
    taken += is_taken && told == 'y';
    leased += told == 'y';
    close(fd);
  }
  tell("leased", leased);
  tell("taken", taken);
}

// A pending cancellation comes before the write.
void cancelled() {
  int const fd = open_new(path("cancelled"));
  std::thread t([&] {
    put(fd, "a");
    pthread_cancel(pthread_self());
    (void)!write(fd, "never\n", 6);
  });
  t.join();
  tell("cancelled", contents(path("cancelled")));
}

// On a file system that shares blocks; elsewhere it is refused alike.
void cloned() {
  constexpr unsigned long clones = _IOW(0x94, 9, int);
  int const from = open_new(path("from")), to = open_new(path("to"));
  put(from, "a");
  long const r = ioctl(to, clones, from);
  tell("cloned", r == 0 ? contents(path("to")) : "refused");
}

// Whose write was told before _exit, or before the image was left, has its bytes in the file.
void left(std::function<void()> const& leave) {
  struct shared {
    std::atomic<uint32_t> told[3];
  };
  void* const at =
      mmap(nullptr, sizeof(shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(at != MAP_FAILED);
  auto* const s = static_cast<shared*>(at);
  std::string const names[3] = {path("left0"), path("left1"), path("left2")};
  for (int round = 0; round < 60; ++round) {
    for (auto& n : s->told) n.store(0);
    pid_t const child = fork();
    if (child == 0) {
      for (int i = 0; i < 3; ++i)
        std::thread([&, i] {
          int const fd = open_new(names[i], O_CLOEXEC);
          for (uint32_t n = 1;; ++n) {
            CHECK(write(fd, &n, sizeof n) == sizeof n);
            s->told[i].store(n);
          }
        }).detach();
      for (auto& n : s->told)
        while (n.load() < 300) std::this_thread::yield();
      leave();
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    for (int i = 0; i < 3; ++i) {
      struct stat file;
      CHECK(stat(names[i].c_str(), &file) == 0);
      CHECK(file.st_size >= static_cast<off_t>(s->told[i].load() * sizeof(uint32_t)));
    }
  }
}

void ends() {
  left([] { _exit(0); });
}

void starts() {
  std::vector<std::string> words(3000, std::string(560, 'x'));
  words.insert(words.begin(), {"sh", "-c", "exit 0"});
  std::vector<char*> argv;
  for (auto& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);
  left([&] { execv("/bin/sh", argv.data()); });
}

// Two threads with a descriptor each append to one file: at first at once, then in turns.
void turns() {
  for (int round = 0; round < 200; ++round) {
    std::string const name = path("turns");
    close(open_new(name));
    std::atomic<int> turn{0};
    pthread_barrier_t both;
    pthread_barrier_init(&both, nullptr, 2);
    auto const work = [&](int who) {
      int const fd = open(name.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
      CHECK(fd >= 0);
      pthread_barrier_wait(&both);
      put(fd, "at once", 60);
      pthread_barrier_wait(&both);
      for (int i = who; i < 100; i += 2) {
        while (turn.load() != i) std::this_thread::yield();
        char line[16];
        int const size = snprintf(line, sizeof line, "turn %d\n", i);
        CHECK(write(fd, line, static_cast<size_t>(size)) == size);
        turn.store(i + 1);
      }
      close(fd);
    };
    std::thread one(work, 0), two(work, 1);
    one.join(), two.join();
    std::string const all = contents(name);
    size_t at = 0;
    for (int i = 0; i < 100; ++i) {
      at = all.find("turn " + std::to_string(i) + "\n", at);
      CHECK(at != std::string::npos);
    }
  }
}

// What one thread looks at is there, though another one's calls write it out.
void looks() {
  std::atomic<bool> is_over{false};
  std::thread other([&] {
    struct stat s;
    while (!is_over.load()) stat(dir.c_str(), &s);
  });
  std::string const name = path("looks");
  for (int round = 0; round < 600; ++round) {
    int const fd = open_new(name), twin = dup(fd), second = open(name.c_str(), O_RDONLY);
    off_t n = 0;
    for (int i = 0; i < 200; ++i) {
      CHECK(write(fd, "01234567", 8) == 8);
      n += 8;
      if (i < 40 || i % 16 != 0) continue;
      struct stat s;
      char all[4096];
      if (round % 4 == 0) CHECK(stat(name.c_str(), &s) == 0 && s.st_size == n);
      if (round % 4 == 1) CHECK(fstat(second, &s) == 0 && s.st_size == n);
      if (round % 4 == 2) CHECK(pread(second, all, sizeof all, 0) == n);
      if (round % 4 != 3) continue;
      CHECK(write(twin, "TWIN-BY-", 8) == 8);
      n += 8;
      CHECK(pread(second, all, 8, n - 8) == 8 && memcmp(all, "TWIN-BY-", 8) == 0);
    }
    close(fd), close(twin), close(second);
  }
  is_over.store(true);
  other.join();
}

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, std::function<void()>> const all = {
      {"messages", messages},   {"text", text_waiting},
      {"later", later_text},    {"buffers", other_buffers},
      {"streams", streams},     {"reopened", reopened},
      {"mapped", mapped},       {"watched", watched},
      {"cancelled", cancelled}, {"looks", looks},
      {"cloned", cloned},       {"ends", ends},
      {"starts", starts},       {"turns", turns},
      {"wide", wide},           {"libc", by_libc},
      {"raw", raw_mapping},     {"late", watched_late},
      {"given", given_watch},   {"notified", notified},
      {"rights", rights},       {"standard", over_standard},
      {"locks", dead_locks}};
  CHECK(argc == 3 && all.count(argv[2]) == 1);
  dir = argv[1];
  tell("begin", argv[2]);
  all.at(argv[2])();
}
