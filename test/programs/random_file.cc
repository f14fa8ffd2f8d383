// SPDX-License-Identifier: Apache-2.0
// random_file DIR SEED COUNT: random calls on one file, checked against a copy in memory, in the
// way of the fsx programs. Each call is a line on standard output with what it returned, so that
// two runs with one seed can be compared: whoever is between the program and the kernel must not
// change a byte of it. Calls that must fail are among them.
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

#include <algorithm>
#include <random>
#include <vector>

#include "check.h"

namespace {

constexpr off_t largest = 1 << 18;
constexpr size_t longest = 1 << 14;

class exerciser {
 public:
  exerciser(std::string const& dir, unsigned seed) : random_(seed), path_(dir + "/random_file") {
    unlink(path_.c_str());
    reopen();
  }

  void run(int count) {
    using step = void (exerciser::*)();
    constexpr step steps[] = {&exerciser::write_here, &exerciser::write_at, &exerciser::write_parts,
                              &exerciser::append,     &exerciser::read_at,  &exerciser::read_parts,
                              &exerciser::read_here,  &exerciser::cut,      &exerciser::cut_by_name,
                              &exerciser::punch,      &exerciser::map,      &exerciser::stdio,
                              &exerciser::copy_part,  &exerciser::send,     &exerciser::sync,
                              &exerciser::rename_it,  &exerciser::link_it,  &exerciser::duplicate,
                              &exerciser::reopen,     &exerciser::wrong,    &exerciser::holes};
    for (int i = 0; i < count; ++i) {
      (this->*steps[random_() % std::size(steps)])();
      compare();
    }
    say("end %zu", model_.size());
  }

 private:
  off_t below(off_t limit) { return static_cast<off_t>(random_() % static_cast<uint64_t>(limit)); }
  off_t place() { return below(largest - static_cast<off_t>(longest)); }

  std::vector<char> bytes() {
    std::vector<char> out(static_cast<size_t>(1 + below(longest)));
    for (char& c : out) c = static_cast<char>(random_());
    return out;
  }

  [[gnu::format(printf, 2, 3)]] void say(char const* format, ...) {
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
  }

  void put(off_t at, char const* from, ssize_t length) {
    if (length <= 0) return;
    size_t const end = static_cast<size_t>(at + length);
    if (model_.size() < end) model_.resize(end);
    std::copy(from, from + length, model_.begin() + at);
  }

  /// What a read of `room` bytes at `at` brings.
  ssize_t there(off_t at, size_t room) const {
    auto const size = static_cast<off_t>(model_.size());
    return at >= size ? 0 : std::min<ssize_t>(static_cast<ssize_t>(room), size - at);
  }
  void must_be(off_t at, char const* got, ssize_t length) {
    CHECK(length == 0 || memcmp(got, model_.data() + at, static_cast<size_t>(length)) == 0);
  }

  void compare() {
    struct stat st;
    CHECK(fstat(fd_, &st) == 0 && st.st_size == static_cast<off_t>(model_.size()));
    CHECK(stat(path_.c_str(), &st) == 0 && st.st_size == static_cast<off_t>(model_.size()));
  }

  void write_here() {
    auto const data = bytes();
    off_t const at = place();
    CHECK(lseek(fd_, at, SEEK_SET) == at);
    ssize_t const n = write(fd_, data.data(), data.size());
    say("write %zu at %jd: %zd", data.size(), static_cast<intmax_t>(at), n);
    put(at, data.data(), n);
  }
  void write_at() {
    auto const data = bytes();
    off_t const at = place();
    ssize_t const n = pwrite(fd_, data.data(), data.size(), at);
    say("pwrite %zu at %jd: %zd", data.size(), static_cast<intmax_t>(at), n);
    put(at, data.data(), n);
  }
  void write_parts() {
    auto a = bytes(), b = bytes();
    off_t const at = below(largest - 2 * static_cast<off_t>(longest));
    iovec const parts[] = {{a.data(), a.size()}, {nullptr, 0}, {b.data(), b.size()}};
    ssize_t const n = pwritev(fd_, parts, 3, at);
    say("pwritev %zu: %zd", a.size() + b.size(), n);
    a.insert(a.end(), b.begin(), b.end());
    put(at, a.data(), n);
  }
  void append() {
    if (model_.size() + longest > static_cast<size_t>(largest)) return;
    auto const data = bytes();
    int const fd = open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
    CHECK(fd >= 0);
    ssize_t const n = write(fd, data.data(), data.size());
    CHECK(close(fd) == 0);
    say("append %zu: %zd", data.size(), n);
    put(static_cast<off_t>(model_.size()), data.data(), n);
  }

  void read_at() {
    char to[longest];
    off_t const at = below(largest);
    ssize_t const n = pread(fd_, to, sizeof to, at);
    say("pread at %jd: %zd", static_cast<intmax_t>(at), n);
    CHECK(n == there(at, sizeof to));
    must_be(at, to, n);
  }
  void read_parts() {
    char a[1000], b[3000];
    off_t const at = below(largest);
    iovec const parts[] = {{a, sizeof a}, {b, sizeof b}};
    ssize_t const n = preadv(fd_, parts, 2, at);
    say("preadv: %zd", n);
    CHECK(n == there(at, sizeof a + sizeof b));
    must_be(at, a, std::min<ssize_t>(n, sizeof a));
    if (n > static_cast<ssize_t>(sizeof a))
      must_be(at + static_cast<off_t>(sizeof a), b, n - static_cast<ssize_t>(sizeof a));
  }
  void read_here() {
    char to[5000];
    off_t const at = below(largest);
    CHECK(lseek(fd_, at, SEEK_SET) == at);
    ssize_t const n = read(fd_, to, sizeof to);
    say("read: %zd", n);
    CHECK(n == there(at, sizeof to) && lseek(fd_, 0, SEEK_CUR) == at + n);
    must_be(at, to, n);
  }

  void cut() {
    off_t const size = below(largest);
    say("ftruncate %jd: %d", static_cast<intmax_t>(size), ftruncate(fd_, size));
    model_.resize(static_cast<size_t>(size));
  }
  void cut_by_name() {
    off_t const size = below(largest);
    say("truncate %jd: %d", static_cast<intmax_t>(size), truncate(path_.c_str(), size));
    model_.resize(static_cast<size_t>(size));
  }
  void punch() {
    off_t const at = place(), length = 1 + below(longest);
    int const done = fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, length);
    say("punch: %d", done);
    if (done != 0) return;
    off_t const end = std::min<off_t>(at + length, static_cast<off_t>(model_.size()));
    if (at < end) std::fill(model_.begin() + at, model_.begin() + end, 0);
  }
  void holes() {
    off_t const at = below(largest);
    off_t const end = lseek(fd_, at, SEEK_HOLE);
    say("seek_hole: %d", end >= 0 ? 0 : errno);
    CHECK(end < 0 ? errno == ENXIO && at >= static_cast<off_t>(model_.size()) : end >= at);
  }

  void map() {
    if (model_.empty()) return;
    void* const at = mmap(nullptr, model_.size(), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    CHECK(at != MAP_FAILED);
    CHECK(memcmp(at, model_.data(), model_.size()) == 0);
    off_t const place = below(static_cast<off_t>(model_.size()));
    static_cast<char*>(at)[place] = model_[static_cast<size_t>(place)] =
        static_cast<char>(random_());
    say("map: %d", msync(at, model_.size(), MS_SYNC));
    CHECK(munmap(at, model_.size()) == 0);
  }
  void stdio() {
    FILE* const f = fopen(path_.c_str(), "r+e");
    CHECK(f != nullptr);
    auto const data = bytes();
    off_t const at = place();
    CHECK(fseeko(f, at, SEEK_SET) == 0);
    size_t const n = fwrite(data.data(), 1, data.size(), f);
    CHECK(fflush(f) == 0);
    put(at, data.data(), static_cast<ssize_t>(n));
    char to[700];
    rewind(f);
    size_t const got = fread(to, 1, sizeof to, f);
    CHECK(fclose(f) == 0);
    say("stdio: %zu %zu", n, got);
    CHECK(static_cast<ssize_t>(got) == there(0, sizeof to));
    must_be(0, to, static_cast<ssize_t>(got));
  }

  void copy_part() {
    off_t from = below(largest / 2), to = largest / 2 + below(largest / 4);
    off_t const source = from, target = to;
    ssize_t const n = copy_file_range(fd_, &from, fd_, &to, longest, 0);
    say("copy_file_range: %zd", n);
    if (n <= 0) return;
    std::vector<char> const part(model_.begin() + source, model_.begin() + source + n);
    put(target, part.data(), n);
  }
  void send() {
    std::string const name = path_ + ".sent";
    int const out = open(name.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(out >= 0);
    off_t at = below(largest);
    off_t const from = at;
    ssize_t const n = sendfile(out, fd_, &at, longest);
    say("sendfile: %zd", n);
    CHECK(n == there(from, longest));
    char to[longest];
    CHECK(pread(out, to, sizeof to, 0) == n);
    must_be(from, to, n);
    CHECK(close(out) == 0 && unlink(name.c_str()) == 0);
  }
  void sync() {
    say("fdatasync: %d", fdatasync(fd_));
    say("fsync: %d", fsync(fd_));
  }

  void rename_it() {
    std::string const other = path_ + ".other";
    say("rename: %d", rename(path_.c_str(), other.c_str()));
    CHECK(rename(other.c_str(), path_.c_str()) == 0);
  }
  void link_it() {
    std::string const other = path_ + ".link";
    int const made = link(path_.c_str(), other.c_str());
    say("link: %d", made);
    CHECK(unlink(path_.c_str()) == 0);
    CHECK(rename(other.c_str(), path_.c_str()) == 0);
  }
  void duplicate() {
    int const twin = dup(fd_);
    CHECK(twin >= 0 && lseek(twin, 17, SEEK_SET) == 17 && lseek(fd_, 0, SEEK_CUR) == 17);
    CHECK(dup2(twin, fd_) == fd_);
    say("dup: %d", close(twin));
  }
  void reopen() {
    if (fd_ >= 0) CHECK(close(fd_) == 0);
    fd_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    CHECK(fd_ >= 0);
    say("open");
  }

  void wrong() {
    char byte = 0;
    char* volatile const place = reinterpret_cast<char*>(8);  // the compiler need not know it
    char* const nowhere = place;
    auto const told = [&](char const* what, ssize_t result) {
      say("%s: %zd errno %d", what, result, result < 0 ? errno : 0);
      CHECK(result < 0);
    };
    told("read of -1", read(-1, &byte, 1));
    told("pwrite at -1", pwrite(fd_, &byte, 1, -1));
    told("write from nowhere", pwrite(fd_, nowhere, 1, 0));
    told("open of nowhere", open(nowhere, O_RDONLY));
    told("open of nothing", open("", O_RDONLY));
    told("seek before 0", lseek(fd_, -1, SEEK_SET));
    told("truncate to -1", ftruncate(fd_, -1));
    told("file as directory", open((path_ + "/x").c_str(), O_RDONLY));
    told("no such name", unlink((path_ + ".none").c_str()));
  }

  std::mt19937_64 random_;
  std::string path_;
  std::vector<char> model_;
  int fd_ = -1;
};

}  // namespace

int main(int argc, char** argv) {
  CHECK(argc == 4);
  exerciser(argv[1], static_cast<unsigned>(atoi(argv[2]))).run(atoi(argv[3]));
  return 0;
}
