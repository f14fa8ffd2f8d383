// SPDX-License-Identifier: Apache-2.0
// random_strict DIR SEED COUNT [TELL ANSWER]: runs of small writes at the end of files, each of
// which only this process has open, and between them all that may notice that they waited in
// memory: a second process that opens the files, reads, writes, cuts, renames and removes them;
// positions, copies, children, threads, handlers, bad addresses, limits; and writers that are
// killed. Each step is a line with what it returned, so two runs with one seed can be compared. The
// second process is a child; with TELL and ANSWER (FIFOs) it is whoever runs
// `random_strict DIR serve TELL ANSWER`.
#include <setjmp.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "random_steps.h"
#include "received.h"

namespace {

constexpr int files = 4;

std::string name_of(std::string const& dir, int file) { return dir + "/f" + std::to_string(file); }

/// What the second process is asked for.
struct order {
  enum kind : int {
    look,       // opens it, and tells its contents
    at_once,    // the same without waiting
    append,     // ten bytes at the end
    overwrite,  // five bytes at its beginning
    cut,        // to `size` bytes, by name
    exchange,   // renames another file to its name
    remove_it,
    keep_open,  // for reading; until the next order
    no_more
  } what;
  int file;
  long size;
};

struct told {
  long result;
  uint64_t hash;
};

class observer {
 public:
  observer(std::string dir, bool is_outside) : dir_(std::move(dir)), is_outside_(is_outside) {}

  told act(order const& o) {
    if (kept_ >= 0) close(kept_);
    kept_ = -1;
    std::string const path = name_of(dir_, o.file);
    switch (o.what) {
      case order::look:
        return read_whole(open(path.c_str(), O_RDONLY | O_CLOEXEC));
      case order::at_once:
        return read_whole(open_at_once(path));
      case order::append:
        return {put(path, O_WRONLY | O_APPEND, "0123456789"), 0};
      case order::overwrite:
        return {put(path, O_WRONLY, "other"), 0};
      case order::cut:
        return {truncate(path.c_str(), o.size), 0};
      case order::exchange: {
        std::string const other = dir_ + "/other";
        put(other, O_WRONLY | O_CREAT | O_TRUNC, "exchanged");
        return {rename(other.c_str(), path.c_str()), 0};
      }
      case order::remove_it:
        return {unlink(path.c_str()), 0};
      case order::keep_open:
        kept_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
        return {kept_ < 0 ? -errno : 0, 0};
      case order::no_more:
        break;
    }
    return {0, 0};
  }

 private:
  /// Outside of the job nobody tries again for us.
  int open_at_once(std::string const& path) const {
    int fd = -1;
    for (int i = 0; i < 2000; ++i) {
      fd = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
      if (fd >= 0 || errno != EWOULDBLOCK || !is_outside_) break;
      nap_ms(1);
    }
    return fd;
  }
  static told read_whole(int fd) {
    if (fd < 0) return {-errno, 0};
    static std::vector<char> to(1 << 22);
    ssize_t const n = read(fd, to.data(), to.size());
    struct stat st;
    CHECK(fstat(fd, &st) == 0 && st.st_size >= n);
    close(fd);
    return {n, hash(to.data(), n)};
  }
  static long put(std::string const& path, int flags, std::string const& bytes) {
    int const fd = open(path.c_str(), flags | O_CLOEXEC, 0600);
    if (fd < 0) return -errno;
    ssize_t const n = write(fd, bytes.data(), bytes.size());
    close(fd);
    return n;
  }
  std::string dir_;
  bool is_outside_;
  int kept_ = -1;
};

void serve(std::string const& dir, int orders, int answers, bool is_outside) {
  observer one(dir, is_outside);
  order o;
  while (read(orders, &o, sizeof o) == sizeof o && o.what != order::no_more) {
    told const t = one.act(o);
    CHECK(write(answers, &t, sizeof t) == sizeof t);
  }
}

int handler_fd = -1;
ssize_t handler_wrote = 0;
sigjmp_buf back;
std::atomic<long> before_jump;

void handle(int) {
  for (int i = 0; i < 3; ++i) handler_wrote += write(handler_fd, "handled", 7);
}
void jump(int) { siglongjmp(back, 1); }

class writer : random_steps {
 public:
  writer(std::string dir, unsigned seed, int orders, int answers)
      : random_steps(seed), dir_(std::move(dir)), orders_(orders), answers_(answers) {
    for (int& fd : fds_) fd = -1;
    for (int i = 0; i < files; ++i) unlink(name_of(dir_, i).c_str());
    unlink((dir_ + "/sum").c_str());
    signal(SIGUSR1, handle);
  }

  void run(int count) {
    using step = void (writer::*)();
    constexpr step steps[] = {
        &writer::meet,      &writer::meet,     &writer::meet,      &writer::meet,
        &writer::meet,      &writer::meet,     &writer::meet,      &writer::meet,
        &writer::move,      &writer::write_at, &writer::read_here, &writer::ask,
        &writer::flags,     &writer::cut,      &writer::by_name,   &writer::send,
        &writer::map,       &writer::parts,    &writer::print,     &writer::interrupt,
        &writer::leave,     &writer::allocate, &writer::lock,      &writer::wrong,
        &writer::in_thread, &writer::threads,  &writer::raw,       &writer::duplicate,
        &writer::child,     &writer::vchild,   &writer::spawned,   &writer::message,
        &writer::stdio,     &writer::limited,  &writer::renumber,  &writer::twice,
        &writer::killed,    &writer::killed,   &writer::sync,      &writer::ends,
        &writer::several,   &writer::program,  &writer::copy_stays};
    for (int i = 0; i < count; ++i) {
      busy(file());
      (this->*steps[below(std::size(steps))])();
      if (below(3) == 0) burst(file());
      if (below(4) == 0) close_one(file());
      if (below(3) == 0) look(file());
    }
    for (int i = 0; i < files; ++i) close_one(i), look(i);
    ask_other({order::no_more, 0, 0});
  }

 private:
  int file() { return static_cast<int>(below(files)); }

  told ask_other(order const& o) {
    told t = {0, 0};
    CHECK(write(orders_, &o, sizeof o) == sizeof o);
    if (o.what != order::no_more) CHECK(read(answers_, &t, sizeof t) == sizeof t);
    return t;
  }
  void look(int f) {
    told const t = ask_other({below(4) == 0 ? order::at_once : order::look, f, 0});
    say("  f%d has %ld %016jx", f, t.result, static_cast<uintmax_t>(t.hash));
  }
  void meet() {
    constexpr order::kind kinds[] = {order::look,      order::at_once,  order::append,
                                     order::overwrite, order::cut,      order::exchange,
                                     order::remove_it, order::keep_open};
    int const f = at_;
    order const o = {kinds[below(std::size(kinds))], f, static_cast<long>(below(20'000))};
    told const t = ask_other(o);
    say("meet %d: %ld %016jx", o.what, t.result, static_cast<uintmax_t>(t.hash));
    burst(f);
    look(f);
  }

  int fd_of(int f) {
    constexpr int kinds[] = {O_WRONLY | O_CREAT | O_APPEND, O_WRONLY | O_CREAT | O_APPEND,
                             O_RDWR | O_CREAT | O_APPEND, O_WRONLY | O_CREAT | O_TRUNC,
                             O_RDWR | O_CREAT};
    if (fds_[f] >= 0) return fds_[f];
    fds_[f] = open(name_of(dir_, f).c_str(), kinds[below(std::size(kinds))] | O_CLOEXEC, 0600);
    CHECK(fds_[f] >= 0);
    if (below(3) == 0) {  // numbers that lie far from each other
      int const far = fcntl(fds_[f], F_DUPFD_CLOEXEC, 3 + 64 * static_cast<int>(1 + below(3)));
      CHECK(far >= 0 && close(fds_[f]) == 0);
      fds_[f] = far;
    }
    if (below(2) == 0) lseek(fds_[f], 0, SEEK_END);
    return fds_[f];
  }
  void close_one(int f) {
    if (fds_[f] < 0) return;
    say("close: %d", close(fds_[f]));
    fds_[f] = -1;
  }
  /// So many small writes that a lease is asked for, and used.
  int busy(int f) {
    at_ = f;
    int const to = fd_of(f);
    if (below(3) == 0) lseek(to, 0, SEEK_END);
    ssize_t sum = 0;
    for (int i = 0; i < 150; ++i) sum += write(to, "habit", 5);
    if (below(2) == 0) nap_ms(1);
    sum += put(to, 100 + below(400), 1 + below(60));
    say("busy f%d: %zd", f, sum);
    return to;
  }
  ssize_t put(int to, size_t count, size_t longest) {
    ssize_t sum = 0;
    for (size_t i = 0; i < count; ++i) {
      auto const p = piece(longest);
      sum += write(to, p.data(), p.size());
    }
    return sum;
  }
  void burst(int f) {
    size_t const longest = below(12) == 0 ? 20'000 : below(5) == 0 ? 3000 : 1 + below(80);
    size_t const count = longest > 1000 ? 20 : below(2) == 0 ? below(300) : 2000 + below(8000);
    ssize_t const sum = put(fd_of(f), count, longest);
    say("burst f%d: %zd", f, sum);
  }
  int fd() { return fd_of(at_); }
  std::string path() { return name_of(dir_, at_); }

  void move() {
    int const whence = below(2) == 0 ? SEEK_SET : SEEK_END;
    off_t const by = whence == SEEK_SET ? static_cast<off_t>(below(5000)) : 0;
    say("seek: %jd", static_cast<intmax_t>(lseek(fd(), by, whence)));
  }
  void write_at() {
    auto const p = piece(300);
    say("pwrite: %zd", pwrite(fd(), p.data(), p.size(), static_cast<off_t>(below(4000))));
  }
  void read_here() {
    char to[500];
    ssize_t const n = below(2) == 0 ? read(fd(), to, sizeof to) : pread(fd(), to, sizeof to, 100);
    say("read: %zd %016jx", n, static_cast<uintmax_t>(hash(to, n)));
  }
  void ask() {
    struct stat st;
    long const here = size_of(fd()), by_name = stat(path().c_str(), &st) == 0 ? st.st_size : -1;
    say("ask: %ld %ld %ld", here, by_name, static_cast<long>(lseek(fd(), 0, SEEK_CUR)));
  }
  void flags() {
    int const now = fcntl(fd(), F_GETFL);
    f_owner_ex owner = {};
    CHECK(fcntl(fd(), F_GETOWN_EX, &owner) == 0);
    say("flags: %x owner %d of %d lease %d", static_cast<unsigned>(now), owner.pid, owner.type,
        fcntl(fd(), F_GETLEASE));
    say("set: %d", fcntl(fd(), F_SETFL, below(2) == 0 ? now ^ O_APPEND : now));
  }
  void cut() { say("ftruncate: %d", ftruncate(fd(), static_cast<off_t>(below(6000)))); }
  void by_name() {
    int const r = truncate(path().c_str(), static_cast<off_t>(below(6000)));
    std::string const other = dir_ + "/moved";
    int const moved = rename(path().c_str(), other.c_str());
    say("by name: %d %d %d", r, moved, rename(other.c_str(), path().c_str()));
  }
  void send() {
    off_t at = 0;
    int const other = fd_of((at_ + 1) % files);
    say("sendfile: %d", sendfile(other, fd(), &at, 200) < 0 ? -errno : 0);
  }
  void map() {
    int const of = below(2) == 0 ? dup(fd()) : open(path().c_str(), O_RDWR | O_CLOEXEC);
    long const size = of >= 0 ? size_of(of) : 0;
    void* const p = size > 0
                        ? mmap(nullptr, static_cast<size_t>(size), PROT_READ, MAP_SHARED, of, 0)
                        : MAP_FAILED;
    if (p != MAP_FAILED) {
      ssize_t const sum = put(fd(), 300, 9);
      say("map: %zd %016jx", sum, static_cast<uintmax_t>(hash(static_cast<char*>(p), size)));
      munmap(p, static_cast<size_t>(size));
    }
    if (of >= 0) close(of);
  }
  void parts() {
    auto a = piece(50), b = piece(50);
    iovec const both[] = {{a.data(), a.size()}, {b.data(), b.size()}};
    say("writev: %zd", writev(fd(), both, 2));
  }
  void print() { say("dprintf: %d", dprintf(fd(), "number %zu\n", below(1000))); }
  void interrupt() {
    handler_fd = fd();
    handler_wrote = 0;
    ssize_t sum = 0;
    for (int i = 0; i < 20; ++i) {
      sum += put(handler_fd, 3, 30);
      if (i % 6 == 5) raise(SIGUSR1);
    }
    say("interrupted: %zd %zd", sum, handler_wrote);
  }
  /// Out of the middle of a write. What was told to be written is there.
  void leave() {
    int const to = fd();
    long const begin = static_cast<long>(lseek(to, 0, SEEK_END));
    struct sigaction old = {}, now = {};
    now.sa_handler = jump;
    sigaction(SIGALRM, &now, &old);
    before_jump = 0;
    itimerval const soon = {{0, 0}, {0, 1 + static_cast<long>(below(900))}};
    if (sigsetjmp(back, 1) == 0) {
      setitimer(ITIMER_REAL, &soon, nullptr);
      for (;;)
        if (write(to, "12345678", 8) == 8) before_jump.fetch_add(8);
    }
    sigaction(SIGALRM, &old, nullptr);
    long const grown = static_cast<long>(lseek(to, 0, SEEK_END)) - begin;
    say("left: %d", grown == before_jump || grown == before_jump + 8);
    CHECK(ftruncate(to, begin) == 0);
    lseek(to, begin, SEEK_SET);
  }
  void allocate() {
    say("fallocate: %d", posix_fallocate(fd(), 0, static_cast<off_t>(1 + below(3000))));
  }
  void lock() { say("lock: %d %d", flock(fd(), LOCK_EX | LOCK_NB), flock(fd(), LOCK_UN)); }
  void wrong() {
    ssize_t const one = write(fd(), nullptr, 100);
    int const why = one < 0 ? errno : 0;
    say("wrong: %zd %d %zd", one, why, write(-1, "x", 1));
  }
  void in_thread() {
    int const to = fd();
    ssize_t sum = 0;
    std::thread([&] { sum += put(to, 400, 60); }).join();
    say("thread: %zd", sum);
  }
  /// At once: the order is not known, and so the bytes are all alike.
  void threads() {
    int const to = fd();
    std::atomic<ssize_t> sum{0};
    std::vector<std::thread> all;
    for (int t = 0; t < 3; ++t)
      all.emplace_back([&] {
        for (int i = 0; i < 2000; ++i) sum += write(to, "tttttttt", 8);
      });
    for (auto& t : all) t.join();
    say("threads: %zd at %jd", sum.load(), static_cast<intmax_t>(lseek(to, 0, SEEK_CUR)));
  }
  void raw() {
    auto const p = piece(60);
    long const n = syscall(SYS_write, fd(), p.data(), p.size());
    say("raw: %ld at %ld", n, syscall(SYS_lseek, fd(), 0, SEEK_CUR));
  }
  void duplicate() {
    int const copied = below(2) == 0 ? dup(fd()) : fcntl(fd(), F_DUPFD_CLOEXEC, 50);
    ssize_t const one = put(copied, 300, 20), two = put(fd(), 300, 20), three = put(copied, 9, 20);
    say("dup: %zd %zd %zd at %jd", one, two, three,
        static_cast<intmax_t>(lseek(copied, 0, SEEK_CUR)));
    close(copied);
  }
  void child() {
    int const to = fd();
    fflush(stdout);
    pid_t const pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
      ssize_t const sum = put(to, 300, 20);
      _exit(sum > 0 ? 0 : 1);
    }
    end_of(pid);
    say("parent: %zd", put(to, 300, 20));
  }
  void vchild() { by_vfork("printf vfork >>'" + path() + "'"); }
  void spawned() {
    by_spawn("cksum <'" + path() + "' >'" + dir_ + "/sum'");
    char to[64] = {};
    int const from = open((dir_ + "/sum").c_str(), O_RDONLY | O_CLOEXEC);
    ssize_t const n = read(from, to, sizeof to - 1);
    close(from);
    say("sum: %zd %s", n, to);
  }
  void message() {
    int const got = received_by_socket(fd());
    ssize_t const one = put(got, 200, 20), two = put(fd(), 200, 20);
    say("message: %zd %zd %jd", one, two, static_cast<intmax_t>(lseek(fd(), 0, SEEK_CUR)));
    close(got);
  }
  void stdio() {
    FILE* const f = below(2) == 0 ? fopen(path().c_str(), "a+") : fdopen(dup(fd()), "w");
    if (f == nullptr) return;
    ssize_t sum = 0;
    for (int turn = 0; turn < 3; ++turn) {
      sum += put(fd(), 200, 10);
      fprintf(f, "stdio %zu", below(1000));
      if (turn != 2) fflush(f);
    }
    say("stdio: %zd %d", sum, fclose(f));
  }
  void limited() {
    rlimit before = {};
    CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
    rlimit const low = {static_cast<rlim_t>(size_of(fd())) + 5, before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    CHECK(setrlimit(RLIMIT_FSIZE, &low) == 0);
    lseek(fd(), 0, SEEK_END);
    ssize_t sum = 0;
    for (int i = 0; i < 3; ++i) sum += write(fd(), "seven..", 7);
    CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
    say("limited: %zd at %jd", sum, static_cast<intmax_t>(lseek(fd(), 0, SEEK_CUR)));
  }
  void renumber() {
    int const was = fd();
    CHECK(close_range(static_cast<unsigned>(was), static_cast<unsigned>(was), 0) == 0);
    fds_[at_] = -1;
    FILE* const f = fopen(path().c_str(), "r");
    char some[64];
    if (f == nullptr) return;
    size_t const n = fread(some, 1, sizeof some, f);
    say("renumber: %zu %d", n, fclose(f));
  }
  /// A second descriptor of the file, and none of it alone.
  void twice() {
    int const other = open(path().c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    ssize_t const one = put(fd(), 200, 20), two = put(other, 200, 20), three = put(fd(), 200, 20);
    say("twice: %zd %zd %zd %d", one, two, three, close(other));
  }
  /// A copy that stays open, and acts on the file while the first one is written to.
  void copy_stays() {
    int const copied = dup(fd());
    ssize_t sum = 0;
    for (int i = 0; i < 5; ++i) {
      sum += put(fd(), 300, 20);
      struct stat st;
      sum += fstat(copied, &st) == 0 ? static_cast<ssize_t>(st.st_size) : -1;
      say("copy: %zd owner %d lease %d flags %x", sum, fcntl(copied, F_GETOWN),
          fcntl(copied, F_GETLEASE), static_cast<unsigned>(fcntl(copied, F_GETFL)));
      if (below(2) == 0) say("append: %d", fcntl(copied, F_SETFL, O_APPEND));
      sum += put(copied, below(2) == 0 ? 3 : 300, 9000);
    }
    close(copied);
  }
  /// What it was told to have written is there when it is dead.
  void killed() {
    close_one(at_);
    auto* const count = static_cast<std::atomic<long>*>(
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    fflush(stdout);
    pid_t const pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      int const to = open(path().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
      for (long i = 0;; ++i) {
        char line[9];
        snprintf(line, sizeof line, "%07ld\n", i % 10'000'000);
        if (write(to, line, 8) == 8) count->store(i + 1);
      }
    }
    long const most = static_cast<long>(100 + below(30'000));
    while (count->load() < most) sched_yield();
    bool const is_before = below(2) == 0;
    if (is_before) kill(pid, SIGKILL);
    if (!is_before) {
      // A look while it writes: all that was told before it.
      long const told_before = count->load();
      told const t = ask_other({order::look, at_, 0});
      say("seen: %d", t.result >= told_before * 8);
      kill(pid, SIGKILL);
    }
    int status = 0;
    CHECK(waitpid(pid, &status, 0) == pid);
    long const told_lines = count->load();
    munmap(count, 4096);
    int const from = open(path().c_str(), O_RDWR | O_CLOEXEC);
    long const size = size_of(from);
    std::vector<char> all(static_cast<size_t>(size));
    bool is_right = read(from, all.data(), all.size()) == size && size >= told_lines * 8 &&
                    size <= (told_lines + 1) * 8;
    for (long i = 0; is_right && i < told_lines; ++i) {
      char line[9];
      snprintf(line, sizeof line, "%07ld\n", i);
      is_right = memcmp(all.data() + i * 8, line, 8) == 0;
    }
    say("killed: %d", is_right);
    if (!is_right) fprintf(stderr, "told %ld lines, file has %ld bytes\n", told_lines, size);
    CHECK(ftruncate(from, 0) == 0);
    close(from);
  }
  void sync() { say("fsync: %d", below(2) == 0 ? fsync(fd()) : fdatasync(fd())); }
  void ends() {
    close_one(at_);
    fflush(stdout);
    pid_t const pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
      int const to = open(path().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
      put(to, 500, 20);
      if (below(2) == 0) abort();
      exit(3);
    }
    end_of(pid);
    look(at_);
  }
  void several() {
    ssize_t sum = 0;
    for (int turn = 0; turn < 3; ++turn)
      for (int f = 0; f < files; ++f) sum += put(fd_of(f), 200, 30);
    for (int f = 0; f < files; ++f) look(f);
    say("several: %zd", sum);
  }
  /// A program that was just written is run.
  void program() {
    std::string const script = dir_ + "/script";
    int const to = open(script.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
    for (char const c : "#!/bin/sh\n") CHECK(c == 0 || write(to, &c, 1) == 1);
    for (int i = 0; i < 600; ++i) CHECK(write(to, "# nothing\n", 10) == 10);
    CHECK(write(to, "exit 5\n", 7) == 7 && close(to) == 0);
    fflush(stdout);
    pid_t const pid = fork();
    if (pid == 0) {
      execl(script.c_str(), script.c_str(), nullptr);
      _exit(errno);
    }
    end_of(pid);
  }

  std::string dir_;
  int orders_, answers_;
  int fds_[files];
  int at_ = 0;
};

}  // namespace

int main(int argc, char** argv) { return run_two<writer>(argc, argv, serve); }
