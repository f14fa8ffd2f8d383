// SPDX-License-Identifier: Apache-2.0
// random_small DIR SEED COUNT: runs of small writes through several descriptors of a few files, and
// between them all that may notice what became of them: other descriptors, names, children, locks,
// positions, stdio, messages, threads. Each step is a line with what it returned, so two runs with
// one seed can be compared. With an even seed no other process and no copy gets a descriptor.
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <thread>

#include "random_steps.h"
#include "received.h"

namespace {

int handler_fd = -1;
ssize_t handler_wrote = 0;

void handle(int) {
  for (int i = 0; i < 3; ++i) handler_wrote += write(handler_fd, "handled", 7);
}

class exerciser : random_steps {
 public:
  exerciser(std::string const& dir, unsigned seed) : random_steps(seed), shares_(seed % 2 != 0) {
    for (char const* name : {"/one", "/two"}) names_.push_back(dir + name);
    other_ = dir + "/other";
    for (auto const& name : names_) unlink(name.c_str());
    unlink(other_.c_str());
    signal(SIGUSR1, handle);
    open_one();
    open_one();
  }

  void run(int count) {
    using step = void (exerciser::*)();
    // After the first ones nobody else has the descriptors that are open.
    constexpr step looks[] = {
        &exerciser::move,        &exerciser::read_here, &exerciser::read_at,
        &exerciser::write_at,    &exerciser::ask,       &exerciser::close_one,
        &exerciser::flags,       &exerciser::cut,       &exerciser::rename_it,
        &exerciser::link_it,     &exerciser::send,      &exerciser::copy,
        &exerciser::map,         &exerciser::parts,     &exerciser::print,
        &exerciser::interrupt,   &exerciser::allocate,  &exerciser::lock,
        &exerciser::wrong,       &exerciser::in_thread, &exerciser::raw,
        &exerciser::sync,        &exerciser::mixed,     &exerciser::attributes,
        &exerciser::gone,        &exerciser::limited,   &exerciser::renumber,
        &exerciser::cut_by_name, &exerciser::open_one,  &exerciser::stdio,
        &exerciser::duplicate,   &exerciser::child,     &exerciser::vchild,
        &exerciser::spawned,     &exerciser::shell,     &exerciser::by_message,
        &exerciser::together,    &exerciser::ends};
    size_t const used = std::size(looks) - (shares_ ? 0 : 9);
    for (int i = 0; i < count; ++i) {
      if (below(6) == 0) open_one();
      burst();
      if (below(2) == 0) mixed();
      (this->*looks[below(used)])();
      if (i % 8 == 0) contents();
    }
    for (int fd : fds_) say("close %d", close(fd));
    contents();
  }

 private:
  std::string const& name() { return names_[below(names_.size())]; }
  int fd() { return fds_[below(fds_.size())]; }

  void contents() {
    std::vector<char> to(1 << 22);
    for (auto const& path : names_) {
      int const from = open(path.c_str(), O_RDONLY | O_CLOEXEC);
      ssize_t const n = from < 0 ? -1 : pread(from, to.data(), to.size(), 0);
      if (from >= 0) close(from);
      say("  has %zd %016jx", n, static_cast<uintmax_t>(hash(to.data(), n)));
    }
  }

  /// One that was just opened, and has a habit of small writes already.
  int busy_fd() {
    if (fds_.size() > 6) close_one();
    int const to = open(name().c_str(), O_RDWR | O_CREAT | (below(2) == 0 ? O_APPEND : 0), 0600);
    CHECK(to >= 0);
    fds_.push_back(to);
    ssize_t sum = 0;
    for (int i = 0; i < 70; ++i) sum += write(to, "habit", 5);
    say("busy: %zd", sum);
    return to;
  }

  void burst() {
    int const to = fd();
    size_t const count = 1 + below(300), longest = below(12) == 0 ? 20000 : 1 + below(80);
    ssize_t sum = 0;
    for (size_t i = 0; i < count; ++i) {
      auto const p = piece(longest);
      sum += write(to, p.data(), p.size());
    }
    say("burst %zu: %zd", count, sum);
  }
  void mixed() {
    int const a = fd(), b = fd();
    ssize_t sum = 0;
    for (int i = 0; i < 90; ++i) {
      auto const p = piece(40);
      sum += write(i % 3 == 0 ? a : b, p.data(), p.size());
    }
    say("mixed: %zd", sum);
  }
  void move() {
    int const to = fd(), whence = static_cast<int>(below(3));
    off_t const by =
        whence == SEEK_SET ? static_cast<off_t>(below(5000)) : -static_cast<off_t>(below(50));
    off_t const at = lseek(to, by, whence);
    say("seek %d: %jd errno %d", whence, static_cast<intmax_t>(at), at < 0 ? errno : 0);
  }
  void read_here() {
    char to[500];
    ssize_t const n = read(fd(), to, 1 + below(sizeof to));
    say("read: %zd %016jx errno %d", n, static_cast<uintmax_t>(hash(to, n)), n < 0 ? errno : 0);
  }
  void read_at() {
    char to[500];
    ssize_t const n = pread(fd(), to, sizeof to, static_cast<off_t>(below(4000)));
    say("pread: %zd %016jx", n, static_cast<uintmax_t>(hash(to, n)));
  }
  void write_at() {
    auto const p = piece(300);
    say("pwrite: %zd", pwrite(fd(), p.data(), p.size(), static_cast<off_t>(below(4000))));
  }
  void ask() {
    struct stat st;
    int const of = fd();
    long const position = static_cast<long>(lseek(of, 0, SEEK_CUR));
    long const by_name = stat(name().c_str(), &st) == 0 ? static_cast<long>(st.st_size) : -1;
    say("ask: %ld %ld %ld", size_of(of), position, by_name);
  }
  void open_one() {
    constexpr int kinds[] = {
        O_WRONLY | O_CREAT,          O_RDWR | O_CREAT,           O_WRONLY | O_CREAT | O_APPEND,
        O_RDWR | O_CREAT | O_APPEND, O_RDWR | O_CREAT | O_TRUNC, O_RDONLY,
        O_WRONLY | O_CREAT | O_SYNC};
    if (fds_.size() > 6) close_one();
    int const flags = kinds[below(std::size(kinds))] | (below(2) == 0 ? O_CLOEXEC : 0);
    int const opened = open(name().c_str(), flags, 0600);
    say("open %x: %s", static_cast<unsigned>(flags), opened < 0 ? strerror(errno) : "done");
    if (opened >= 0) fds_.push_back(opened);
  }
  void close_one() {
    if (fds_.size() < 3) return;
    size_t const which = below(fds_.size());
    say("close: %d", close(fds_[which]));
    fds_.erase(fds_.begin() + static_cast<long>(which));
  }
  void duplicate() {
    if (fds_.size() > 6) return;
    int const from = busy_fd();
    int const copied = below(2) == 0 ? dup(from) : fcntl(from, F_DUPFD_CLOEXEC, 50);
    CHECK(copied >= 0);
    fds_.push_back(copied);
    if (below(2) == 0) CHECK(dup2(fd(), copied) == copied);
    say("dup: %ld", static_cast<long>(lseek(copied, 0, SEEK_CUR)));
  }
  void flags() {
    int const of = fd(), now = fcntl(of, F_GETFL);
    say("flags: %d", fcntl(of, F_SETFL, below(2) == 0 ? now ^ O_APPEND : now));
  }

  void child() {
    int const to = busy_fd();
    auto const p = piece(40);
    fflush(stdout);
    pid_t const pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
      for (int i = 0; i < 20; ++i)
        if (write(to, p.data(), p.size()) < 0) _exit(errno);
      _exit(0);
    }
    end_of(pid);
  }
  // Both write to it, in turns: the child when it is told to.
  void together() {
    int const to = busy_fd();
    int tell[2], answer[2];
    CHECK(pipe2(tell, O_CLOEXEC) == 0 && pipe2(answer, O_CLOEXEC) == 0);
    fflush(stdout);
    pid_t const pid = fork();
    CHECK(pid >= 0);
    char byte = 0;
    if (pid == 0) {
      close(tell[1]);
      while (read(tell[0], &byte, 1) == 1)
        if (write(to, "child", 5) < 0 || write(answer[1], &byte, 1) != 1) _exit(1);
      _exit(0);
    }
    close(answer[1]);
    for (int turn = 0; turn < 3; ++turn) {
      ssize_t sum = 0;
      for (int i = 0; i < 70; ++i) sum += write(to, "parent", 6);
      CHECK(write(tell[1], &byte, 1) == 1);
      ssize_t const n = read(answer[0], &byte, 1);
      say("together: %zd %zd", sum, n);
      if (n != 1) break;
    }
    for (int end : {tell[0], tell[1], answer[0]}) close(end);
    end_of(pid);
  }
  void vchild() { by_vfork("printf vfork >&" + std::to_string(busy_fd())); }
  void spawned() { by_spawn("printf spawn >&" + std::to_string(busy_fd())); }
  void shell() {
    std::string const script = "printf system >>" + name();
    say("system: %d", system(script.c_str()));
  }

  void cut() { say("ftruncate: %d", ftruncate(fd(), static_cast<off_t>(below(6000)))); }
  void cut_by_name() {
    say("truncate: %d", truncate(name().c_str(), static_cast<off_t>(below(6000))));
  }
  void rename_it() { say("rename: %d", rename(names_[0].c_str(), names_[1].c_str())); }
  void link_it() {
    unlink(other_.c_str());
    int const r = link(name().c_str(), other_.c_str());
    struct stat st;
    say("link: %d %ld", r, stat(other_.c_str(), &st) == 0 ? static_cast<long>(st.st_size) : -1);
  }
  void send() {
    off_t at = 0;
    ssize_t const n = sendfile(fd(), fd(), &at, 200);
    say("sendfile: %s", n < 0 ? "refused" : "sent");
  }
  void copy() {
    off_t from = static_cast<off_t>(below(500)), to = 4000 + static_cast<off_t>(below(500));
    ssize_t const n = copy_file_range(fd(), &from, fd(), &to, 100, 0);
    say("copy: %zd", n);
  }
  void map() {
    int const of = open(name().c_str(), O_RDONLY | O_CLOEXEC);
    long const size = size_of(of);
    if (size <= 0) {
      if (of >= 0) close(of);
      return;
    }
    void* const p = mmap(nullptr, static_cast<size_t>(size), PROT_READ, MAP_PRIVATE, of, 0);
    CHECK(p != MAP_FAILED);
    say("map: %016jx", static_cast<uintmax_t>(hash(static_cast<char*>(p), size)));
    munmap(p, static_cast<size_t>(size));
    close(of);
  }
  void parts() {
    auto a = piece(50), b = piece(50);
    iovec const both[] = {{a.data(), a.size()}, {b.data(), b.size()}};
    say("writev: %zd", writev(fd(), both, 2));
  }
  void print() { say("dprintf: %d", dprintf(fd(), "number %zu\n", below(1000))); }
  void stdio() {
    FILE* const f = below(2) == 0 ? fopen(name().c_str(), "a+") : fdopen(dup(fds_[0]), "w");
    if (f == nullptr) return;
    int const to = busy_fd();
    ssize_t sum = 0;
    for (int turn = 0; turn < 3; ++turn) {
      for (int i = 0; i < 50; ++i) sum += write(to, "descriptor", 10);
      fprintf(f, "stdio %zu", below(1000));
      if (turn != 2) fflush(f);
    }
    say("stdio: %zd %d", sum, fclose(f));
  }
  void interrupt() {
    handler_fd = busy_fd();
    handler_wrote = 0;
    auto const p = piece(30);
    ssize_t sum = 0;
    for (int i = 0; i < 20; ++i) {
      sum += write(handler_fd, p.data(), p.size());
      if (i == 12) raise(SIGUSR1);
    }
    say("interrupted: %zd %zd", sum, handler_wrote);
  }
  void allocate() {
    say("fallocate: %d", posix_fallocate(fd(), 0, static_cast<off_t>(1 + below(3000))));
  }
  void lock() {
    int const of = busy_fd();
    say("lock: %d %d", flock(of, LOCK_EX | LOCK_NB), flock(of, LOCK_UN));
  }
  void wrong() {
    int const to = fd();
    ssize_t const one = write(to, nullptr, 100);
    int const why = one < 0 ? errno : 0;
    say("wrong: %zd %d %zd", one, why, write(-1, "x", 1));
  }
  void in_thread() {
    int const to = busy_fd();
    auto const p = piece(60);
    ssize_t sum = 0;
    std::thread([&] {
      for (int i = 0; i < 25; ++i) sum += write(to, p.data(), p.size());
    }).join();
    say("thread: %zd", sum);
  }
  void raw() {
    auto const p = piece(60);
    int const to = busy_fd();
    long const n = syscall(SYS_write, to, p.data(), p.size());
    say("raw: %ld at %ld", n, syscall(SYS_lseek, to, 0, SEEK_CUR));
  }
  void by_message() {
    int const to = busy_fd(), got = received_by_socket(to);
    auto const p = piece(20);
    say("message: %zd %ld", write(got, p.data(), p.size()),
        static_cast<long>(lseek(to, 0, SEEK_CUR)));
    close(got);
  }
  // Memory that was written from, and is no more.
  void gone() {
    int const to = busy_fd();
    size_t const size = 1 << 16;
    auto* const p = static_cast<char*>(
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    CHECK(p != MAP_FAILED);
    memset(p, 'm', size);
    ssize_t sum = 0;
    for (size_t i = 0; i < 50; ++i) sum += write(to, p + 8 * i, 8);
    munmap(p, size);
    ssize_t const n = write(to, p, 8);
    say("gone: %zd %zd errno %d", sum, n, n < 0 ? errno : 0);
  }
  // A limit in the middle of a write.
  void limited() {
    int const to = busy_fd();
    rlimit before = {};
    CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
    rlimit const low = {static_cast<rlim_t>(size_of(to)) + 5, before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    ssize_t sum = 0;
    CHECK(setrlimit(RLIMIT_FSIZE, &low) == 0);
    lseek(to, 0, SEEK_END);
    for (int i = 0; i < 3; ++i) sum += write(to, "seven..", 7);
    CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
    say("limited: %zd at %ld", sum, static_cast<long>(lseek(to, 0, SEEK_CUR)));
  }
  // A number that another file had.
  void renumber() {
    int const to = busy_fd();
    fds_.pop_back();
    CHECK(close_range(static_cast<unsigned>(to), static_cast<unsigned>(to), 0) == 0);
    FILE* const f = fopen(name().c_str(), "r");
    if (f == nullptr) return say("renumber: no file");
    char some[64];
    size_t const one = fread(some, 1, sizeof some, f);
    int const other = busy_fd();
    ssize_t const two = pread(fileno(f), some, sizeof some, 0);
    say("renumber: %zu %zd %d %ld", one, two, fclose(f), size_of(other));
  }
  void ends() {
    std::string const path = name();
    fflush(stdout);
    pid_t const pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
      int const to = open(path.c_str(), O_WRONLY | O_APPEND);
      for (int i = 0; i < 100; ++i)
        if (write(to, "end", 3) != 3) _exit(1);
      quick_exit(0);
    }
    end_of(pid);
  }
  void sync() { say("fsync: %d", below(2) == 0 ? fsync(fd()) : fdatasync(fd())); }
  void attributes() { say("fchmod: %d %d", fchmod(fd(), 0640), chmod(name().c_str(), 0600)); }

  bool shares_;  // whether children and others get descriptors
  std::vector<std::string> names_;
  std::string other_;
  std::vector<int> fds_;
};

}  // namespace

int main(int argc, char** argv) {
  CHECK(argc == 4);
  static char buffer[1 << 22];  // nothing of it is written before the end
  setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
  exerciser e(folder(argc, argv), static_cast<unsigned>(atoi(argv[2])));
  e.run(atoi(argv[3]));
  return 0;
}
