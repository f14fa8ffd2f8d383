// SPDX-License-Identifier: Apache-2.0
// random_reads DIR SEED COUNT [TELL ANSWER]: runs of small reads through several descriptors of a
// few files, and between them all that may notice that they were answered from memory: positions,
// copies, children, threads, handlers, bad addresses; and a second process that writes, cuts,
// renames and removes the files, in turns with the first. Each step is a line with what it
// returned, so two runs with one seed can be compared. The second process is a child; with TELL and
// ANSWER (FIFOs) it is whoever runs `random_reads DIR serve TELL ANSWER`.
#include <signal.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <algorithm>
#include <random>
#include <thread>
#include <vector>

#include "random_steps.h"
#include "received.h"

namespace {

constexpr size_t large = 400'000;  // enough for a few thousand small reads

/// What the second process is asked for. It answers with a number.
struct order {
  enum kind : int {
    overwrite,  // `size` bytes `fill` at `at`
    append,     // the same at the end
    cut,        // to `size` bytes, by name
    grow,       // to `size` bytes, by descriptor
    keep_open,  // for writing; it writes when the next order comes
    at_once,    // opens without waiting, and writes
    replace,    // by another file, of `size` bytes
    remove_it,  // and makes a new one
    lease,      // tries to get a write lease: only where nobody has it open
    no_more
  } what;
  int file;
  long at, size;
  char fill;
};

std::string name_of(std::string const& dir, int file) {
  return dir + (file == 0 ? "/one" : "/two");
}

void write_whole(std::string const& path, size_t size, unsigned seed) {
  int const fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  CHECK(fd >= 0);
  std::mt19937 random(seed);
  std::string bytes(size, ' ');
  for (char& c : bytes) c = static_cast<char>('a' + random() % 26);
  CHECK(write(fd, bytes.data(), size) == static_cast<ssize_t>(size));
  close(fd);
}

class meddler {
 public:
  meddler(std::string dir, bool is_outside) : dir_(std::move(dir)), is_outside_(is_outside) {}

  long act(order const& o) {
    if (kept_ >= 0) {
      long const n = pwrite(kept_, "kept open", 9, 100);
      close(kept_);
      kept_ = -1;
      if (n != 9) return -1000;
    }
    std::string const path = name_of(dir_, o.file);
    std::string const bytes(static_cast<size_t>(o.size % 5000), o.fill);
    switch (o.what) {
      case order::overwrite:
        return put(path, O_WRONLY, o.at, bytes);
      case order::append:
        return put(path, O_WRONLY | O_APPEND, -1, bytes);
      case order::cut:
        return truncate(path.c_str(), o.size);
      case order::grow: {
        int const fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
        long const r = fd < 0 ? -errno : ftruncate(fd, o.size);
        close(fd);
        return r;
      }
      case order::keep_open:
        kept_ = open(path.c_str(), O_RDWR | O_CLOEXEC);
        return kept_ < 0 ? -errno : 0;
      case order::at_once: {
        long r = put(path, O_WRONLY | O_NONBLOCK, o.at, bytes);
        // Outside of the job nobody tries again for us.
        for (int i = 0; is_outside_ && r == -EWOULDBLOCK && i < 1000; ++i) {
          nap_ms(1);
          r = put(path, O_WRONLY | O_NONBLOCK, o.at, bytes);
        }
        return r;
      }
      case order::replace: {
        std::string const other = dir_ + "/other";
        write_whole(other, static_cast<size_t>(o.size), static_cast<unsigned>(o.at));
        return rename(other.c_str(), path.c_str());
      }
      case order::remove_it: {
        long const r = unlink(path.c_str());
        write_whole(path, static_cast<size_t>(o.size), static_cast<unsigned>(o.at));
        return r;
      }
      case order::lease: {
        int const fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
        long const r = fcntl(fd, F_SETLEASE, F_WRLCK);
        if (r == 0) fcntl(fd, F_SETLEASE, F_UNLCK);
        close(fd);
        return r;
      }
      case order::no_more:
        break;
    }
    return 0;
  }

 private:
  static long put(std::string const& path, int flags, long at, std::string const& bytes) {
    int const fd = open(path.c_str(), flags | O_CLOEXEC);
    if (fd < 0) return -errno;
    ssize_t const n =
        at < 0 ? write(fd, bytes.data(), bytes.size()) : pwrite(fd, bytes.data(), bytes.size(), at);
    close(fd);
    return n;
  }
  std::string dir_;
  bool is_outside_;
  int kept_ = -1;
};

void serve(std::string const& dir, int orders, int answers, bool is_outside) {
  meddler m(dir, is_outside);
  order o;
  while (read(orders, &o, sizeof o) == sizeof o && o.what != order::no_more) {
    long const r = m.act(o);
    CHECK(write(answers, &r, sizeof r) == sizeof r);
  }
}

int handler_fd = -1;
char handler_read[60];
ssize_t handler_got = 0;

void handle(int) {
  for (int i = 0; i < 3; ++i) handler_got += read(handler_fd, handler_read, 17);
}

char in_data[2048] = "data";  // the program's own image, which may be written
char const constant[2048] = "constant";

class reader : random_steps {
 public:
  reader(std::string dir, unsigned seed, int orders, int answers)
      : random_steps(seed), dir_(std::move(dir)), orders_(orders), answers_(answers) {
    write_whole(name_of(dir_, 0), large, seed);
    write_whole(name_of(dir_, 1), large, seed + 1);
    signal(SIGUSR1, handle);
    open_one();
  }

  void run(int count) {
    using step = void (reader::*)();
    constexpr step looks[] = {
        &reader::move,      &reader::read_at,   &reader::ask,       &reader::close_one,
        &reader::parts,     &reader::send,      &reader::map,       &reader::interrupt,
        &reader::wrong,     &reader::to_other,  &reader::in_thread, &reader::raw,
        &reader::meddle,    &reader::meddle,    &reader::meddle,    &reader::meddle,
        &reader::write_own, &reader::large_one, &reader::to_end,    &reader::open_one,
        &reader::duplicate, &reader::child,     &reader::spawned,   &reader::vchild,
        &reader::stdio,     &reader::renumber,  &reader::message,   &reader::lock,
        &reader::two,       &reader::ends,      &reader::meet,      &reader::meet,
        &reader::meet,      &reader::meet,      &reader::meet,      &reader::meet,
        &reader::constants};
    for (int i = 0; i < count; ++i) {
      int const fd = some_fd();
      burst(fd);
      (this->*looks[below(std::size(looks))])();
      if (below(2) == 0) burst(fd_or_new(fd));
    }
    for (int fd : fds_) say("close %d", close(fd));
    order const last = {order::no_more, 0, 0, 0, 0};
    CHECK(write(orders_, &last, sizeof last) == sizeof last);
  }

 private:
  int some_fd() { return fds_[below(fds_.size())]; }
  int fd_or_new(int fd) {
    return std::find(fds_.begin(), fds_.end(), fd) != fds_.end() ? fd : some_fd();
  }
  std::string name() { return name_of(dir_, static_cast<int>(below(2))); }

  /// So many small reads that a lease is asked for, and used.
  void burst(int fd) {
    size_t const counts[] = {below(30), 400 + below(600), 2000 + below(4000)};
    size_t const count = counts[below(3)], longest = 1 + below(60);
    char to[64];
    uint64_t h = 14695981039346656037u;
    ssize_t sum = 0;
    for (size_t i = 0; i < count; ++i) {
      ssize_t const n = read(fd, to, 1 + below(longest));
      if (n > 0) h = hash(to, n, h);
      sum += n;
    }
    say("burst %zu: %zd %016jx", count, sum, static_cast<uintmax_t>(h));
  }

  int busy() {
    open_one();
    burst(fds_.back());
    return fds_.back();
  }

  void open_one() {
    if (fds_.size() > 6) close_one();
    int fd = open(name().c_str(), below(12) == 0 ? O_RDWR : O_RDONLY);
    CHECK(fd >= 0);
    if (below(3) == 0) {  // numbers that lie far from each other
      int const far = fcntl(fd, F_DUPFD, 3 + 64 * static_cast<int>(1 + below(3)));
      CHECK(far >= 0 && close(fd) == 0);
      fd = far;
    }
    if (below(3) == 0) lseek(fd, static_cast<off_t>(below(large / 2)), SEEK_SET);
    fds_.push_back(fd);
    say("open");
  }
  void close_one() {
    if (fds_.size() < 3) return;
    size_t const which = below(fds_.size());
    say("close: %d", close(fds_[which]));
    fds_.erase(fds_.begin() + static_cast<long>(which));
  }

  void meddle() { meddle(static_cast<int>(below(2))); }
  void meddle(int file) {
    constexpr order::kind kinds[] = {order::overwrite, order::append,    order::cut,
                                     order::grow,      order::keep_open, order::at_once,
                                     order::replace,   order::remove_it, order::lease};
    order const o = {kinds[below(std::size(kinds))], file, static_cast<long>(below(large)),
                     static_cast<long>(below(large)) + 1, static_cast<char>('A' + below(26))};
    long r = 0;
    CHECK(write(orders_, &o, sizeof o) == sizeof o && read(answers_, &r, sizeof r) == sizeof r);
    say("meddled %d: %ld", static_cast<int>(o.what), r);
  }

  // What was read ahead is written meanwhile.
  void meet() {
    int const file = static_cast<int>(below(2));
    write_whole(name_of(dir_, file), large, static_cast<unsigned>(below(1000)));
    int const fd = open(name_of(dir_, file).c_str(), O_RDONLY | O_CLOEXEC);
    for (int i = 0; i < 3; ++i) {
      burst(fd);
      burst(fd);
      meddle(file);
    }
    burst(fd);
    say("met: %jd %d", static_cast<intmax_t>(lseek(fd, 0, SEEK_CUR)), close(fd));
  }

  void move() {
    int const whence = static_cast<int>(below(3));
    off_t const by =
        whence == SEEK_SET ? static_cast<off_t>(below(large)) : -static_cast<off_t>(below(5000));
    off_t const at = lseek(some_fd(), by, whence);
    say("seek %d: %jd errno %d", whence, static_cast<intmax_t>(at), at < 0 ? errno : 0);
  }
  void read_at() {
    char to[500];
    ssize_t const n = pread(some_fd(), to, sizeof to, static_cast<off_t>(below(large)));
    say("pread: %zd %016jx", n, static_cast<uintmax_t>(hash(to, n)));
  }
  void ask() {
    struct stat st;
    int const of = some_fd();
    CHECK(fstat(of, &st) == 0);
    say("ask: %jd at %jd", static_cast<intmax_t>(st.st_size),
        static_cast<intmax_t>(lseek(of, 0, SEEK_CUR)));
  }
  void parts() {
    char a[70], b[500];
    iovec const both[] = {{a, sizeof a}, {b, 1 + below(sizeof b)}};
    ssize_t const n = readv(some_fd(), both, 2);
    say("readv: %zd %016jx", n, static_cast<uintmax_t>(hash(a, std::min<ssize_t>(n, 70))));
  }
  void send() {
    int ends[2];
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    ssize_t const n = sendfile(ends[1], some_fd(), nullptr, 1 + below(2000));
    say("sendfile: %zd", n);
    close(ends[0]);
    close(ends[1]);
  }
  void map() {
    int const of = some_fd();
    struct stat st;
    CHECK(fstat(of, &st) == 0);
    if (st.st_size == 0) return;
    auto const size = static_cast<size_t>(st.st_size);
    void* const p = mmap(nullptr, size, PROT_READ, MAP_SHARED, of, 0);
    CHECK(p != MAP_FAILED);
    say("map: %016jx", static_cast<uintmax_t>(hash(static_cast<char*>(p), st.st_size)));
    munmap(p, size);
  }
  void interrupt() {
    handler_fd = busy();
    handler_got = 0;
    char to[40];
    ssize_t sum = 0;
    for (int i = 0; i < 20; ++i) {
      sum += read(handler_fd, to, sizeof to);
      if (i == 12) raise(SIGUSR1);
    }
    say("interrupted: %zd %zd %016jx", sum, handler_got,
        static_cast<uintmax_t>(hash(handler_read, sizeof handler_read)));
  }
  // Addresses that point nowhere, to constants, and over the end of what is there.
  void wrong() {
    int const fd = busy();
    ssize_t const one = read(fd, nullptr, 10);
    int const why = one < 0 ? errno : 0;
    ssize_t const two = read(fd, const_cast<char*>(constant), 10);
    int const also = two < 0 ? errno : 0;
    auto* const pages = static_cast<char*>(
        mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    CHECK(pages != MAP_FAILED && munmap(pages + 4096, 4096) == 0);
    ssize_t const three = read(fd, pages + 4090, 6);
    CHECK(mprotect(pages, 4096, PROT_READ) == 0);
    ssize_t const four = read(fd, pages, 10);
    munmap(pages, 4096);
    say("wrong: %zd %d %zd %d %zd %zd %zd %zd at %jd", one, why, two, also, three, four,
        read(-1, in_data, 1), read(fd, in_data, 0), static_cast<intmax_t>(lseek(fd, 0, SEEK_CUR)));
  }
  // The same in places that a thread has: its stack, and malloc's memory for it.
  void constants() {
    int const fd = busy();
    std::thread([&] {
      constexpr size_t page = 4096;
      alignas(page) char on_stack[3 * page];
      auto* const given = static_cast<char*>(aligned_alloc(page, 3 * page));
      CHECK(given != nullptr);
      for (char* at : {on_stack, given}) {
        CHECK(read(fd, at, 20) >= 0 && mprotect(at + page, page, PROT_READ) == 0);
        ssize_t const n = read(fd, at + page, 20);
        int const why = n < 0 ? errno : 0;
        CHECK(mprotect(at + page, page, PROT_READ | PROT_WRITE) == 0);
        say("constants: %zd %d, then %zd", n, why, read(fd, at + page, 20));
      }
      free(given);
    }).join();
  }
  // Memory of every kind.
  void to_other() {
    int const fd = busy();
    std::vector<char> heap(3000);
    auto* const page = static_cast<char*>(
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    CHECK(page != MAP_FAILED);
    ssize_t sum = 0;
    for (int i = 0; i < 100; ++i) {
      sum += read(fd, heap.data() + 20 * i, 20);
      sum += read(fd, page + 20 * i, 20);
      sum += read(fd, in_data + 20 * i, 20);
    }
    say("to others: %zd %016jx %016jx %016jx", sum, static_cast<uintmax_t>(hash(heap.data(), 2000)),
        static_cast<uintmax_t>(hash(page, 2000)), static_cast<uintmax_t>(hash(in_data, 2000)));
    munmap(page, 4096);
  }
  void in_thread() {
    int const fd = busy();
    char to[2000] = {};
    ssize_t sum = 0;
    std::thread([&] {
      for (int i = 0; i < 40; ++i) sum += read(fd, to + 40 * i, 40);
    }).join();
    say("thread: %zd %016jx", sum, static_cast<uintmax_t>(hash(to, sizeof to)));
  }
  void raw() {
    int const fd = busy();
    char to[40];
    long const n = syscall(SYS_read, fd, to, sizeof to);
    say("raw: %ld %016jx at %ld", n, static_cast<uintmax_t>(hash(to, n)),
        syscall(SYS_lseek, fd, 0, SEEK_CUR));
  }
  // The process itself writes what it reads.
  void write_own() {
    int const file = static_cast<int>(below(2));
    int const to = open(name_of(dir_, file).c_str(), O_WRONLY | (below(2) == 0 ? O_TRUNC : 0));
    CHECK(to >= 0);
    std::string const bytes(1 + below(3000), static_cast<char>('0' + below(10)));
    say("own: %zd", pwrite(to, bytes.data(), bytes.size(), static_cast<off_t>(below(20'000))));
    burst(some_fd());
    say("own again: %zd", write(to, bytes.data(), bytes.size()));
    close(to);
  }
  void large_one() {
    std::vector<char> to(1 + below(100'000));
    ssize_t const n = read(some_fd(), to.data(), to.size());
    say("large: %zd %016jx", n, static_cast<uintmax_t>(hash(to.data(), n)));
  }
  void to_end() {
    int const fd = busy();
    char to[1000];
    uint64_t h = 1;
    long sum = 0;
    for (ssize_t n = 0; (n = read(fd, to, sizeof to)) > 0; sum += n) h = hash(to, n, h);
    say("to the end: %ld %016jx, then %zd", sum, static_cast<uintmax_t>(h), read(fd, to, 10));
  }

  // A child that reads on moves the position of its parent.
  void child() {
    int const fd = busy();
    fflush(stdout);
    pid_t const pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
      char to[30];
      ssize_t sum = 0;
      for (int i = 0; i < 50; ++i) sum += read(fd, to, sizeof to);
      _exit(static_cast<int>(sum % 100));
    }
    end_of(pid);
    burst(fd);
  }
  std::string read_by_shell() { return "dd bs=10 count=10 2>/dev/null | cksum >" + dir_ + "/sum"; }
  void say_sum() {
    char to[100] = {};
    int const from = open((dir_ + "/sum").c_str(), O_RDONLY);
    CHECK(from >= 0 && read(from, to, sizeof to - 1) > 0);
    close(from);
    say("by a shell: %s", to);
  }
  void spawned() {
    int const fd = busy();
    std::string script = read_by_shell();
    auto argv = shell_for(script);
    pid_t pid = -1;
    posix_spawn_file_actions_t actions;
    CHECK(posix_spawn_file_actions_init(&actions) == 0 &&
          posix_spawn_file_actions_adddup2(&actions, fd, 0) == 0);
    CHECK(posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ) == 0);
    posix_spawn_file_actions_destroy(&actions);
    end_of(pid);
    say_sum();
    burst(fd);
  }
  void vchild() {
    int const fd = busy();
    std::string script = read_by_shell();
    auto argv = shell_for(script);
    fflush(stdout);
    pid_t const pid = vfork();
    CHECK(pid >= 0);
    if (pid == 0) {
      dup2(fd, 0);
      execve(argv[0], argv.data(), environ);
      _exit(99);
    }
    end_of(pid);
    say_sum();
    burst(fd);
  }
  void ends() {
    std::string const path = name();
    fflush(stdout);
    pid_t const pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
      int const from = open(path.c_str(), O_RDONLY);
      char to[20];
      for (int i = 0; i < 500; ++i)
        if (read(from, to, sizeof to) < 0) _exit(1);
      quick_exit(0);
    }
    end_of(pid);
    meddle();
  }
  void duplicate() {
    if (fds_.size() > 6) return;
    int const from = busy();
    int const copied = below(2) == 0 ? dup(from) : fcntl(from, F_DUPFD_CLOEXEC, 50);
    CHECK(copied >= 0);
    fds_.push_back(copied);
    burst(below(2) == 0 ? from : copied);
    say("dup: %jd %jd", static_cast<intmax_t>(lseek(copied, 0, SEEK_CUR)),
        static_cast<intmax_t>(lseek(from, 0, SEEK_CUR)));
    burst(copied);
    burst(from);
  }
  void stdio() {
    int const fd = busy();
    FILE* const f = fdopen(dup(fd), "r");
    CHECK(f != nullptr);
    char some[200];
    size_t const n = fread(some, 1, sizeof some, f);
    say("stdio: %zu %016jx %d", n, static_cast<uintmax_t>(hash(some, static_cast<ssize_t>(n))),
        fclose(f));
    burst(fd);
  }
  // A number that another file had.
  void renumber() {
    int const fd = busy();
    fds_.pop_back();
    CHECK(close_range(static_cast<unsigned>(fd), static_cast<unsigned>(fd), 0) == 0);
    int const other = open(name().c_str(), O_RDONLY);
    burst(other);
    int const third = open("/dev/zero", O_RDONLY);
    CHECK(dup2(third, other) == other);
    burst(other);
    say("renumber: %d %d", close(third), close(other));
  }
  void message() {
    int const fd = busy(), got = received_by_socket(fd);
    burst(got);
    say("message: %jd", static_cast<intmax_t>(lseek(fd, 0, SEEK_CUR)));
    close(got);
  }
  void lock() {
    int const fd = busy();
    say("lock: %d %d %d", flock(fd, LOCK_SH | LOCK_NB), flock(fd, LOCK_UN),
        fcntl(fd, F_GETFL) & O_ACCMODE);
  }
  // Two descriptors of one file, in turns.
  void two() {
    std::string const path = name();
    int const a = open(path.c_str(), O_RDONLY), b = open(path.c_str(), O_RDONLY);
    CHECK(a >= 0 && b >= 0);
    char to[50];
    uint64_t h = 1;
    for (int i = 0; i < 900; ++i) {
      ssize_t const n = read(i % 2 == 0 ? a : b, to, 30);
      if (n > 0) h = hash(to, n, h);
    }
    say("two: %016jx at %jd %jd", static_cast<uintmax_t>(h),
        static_cast<intmax_t>(lseek(a, 0, SEEK_CUR)), static_cast<intmax_t>(lseek(b, 0, SEEK_CUR)));
    close(a);
    close(b);
  }

  std::string dir_;
  int orders_, answers_;
  std::vector<int> fds_;
};

}  // namespace

int main(int argc, char** argv) { return run_two<reader>(argc, argv, serve); }
