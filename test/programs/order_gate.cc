// SPDX-License-Identifier: Apache-2.0
// Behind a barrier that is not durable yet nothing of an ordered target may change, whatever call
// it is; all else goes on. And a file may not be closed before the daemon has it. order_gate DIR,
// with ORDER_FAKE=gate.
#include <aio.h>
#include <dirent.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <utime.h>

#include <functional>
#include <thread>

#include "order_board.h"

using namespace sluice;

namespace {

abi::order_area* area;
std::string dir;
int subject = -1, other = -1;

std::uint64_t counted(abi::order_count what) {
  return area->head.count[static_cast<unsigned>(what)];
}

/// Whether the daemon was taken for dead meanwhile, as it may be on a busy machine.
std::uint64_t lost_patience() {
  return counted(abi::order_count::silent) + counted(abi::order_count::absent);
}

void set_wish(wish what) { wish_word(*area) = static_cast<std::uint64_t>(what); }

/// Posts a barrier that stays outstanding, in its own file.
void post() {
  std::uint64_t const before = counted(abi::order_count::barriers);
  CHECK(pwrite(subject, "x", 1, 0) == 1);
  CHECK(fsync(subject) == 0);
  CHECK(counted(abi::order_count::barriers) == before + 1 || lost_patience() != 0);
}

/// `act` is begun after a barrier and must not be over before it is durable.
void waits(char const* name, std::function<bool()> const& act, wish until = wish::hold,
           wish then = wish::make_durable) {
  for (int tries = 0; tries < 5; ++tries) {
    std::uint64_t const lost = lost_patience();
    set_wish(until);
    post();
    std::atomic<bool> is_over{false}, good{false};
    std::thread one([&] {
      good = act();
      is_over = true;
    });
    nap_ms(40);
    bool const waited = !is_over;
    set_wish(then);
    one.join();
    set_wish(wish::make_durable);
    CHECK(pwrite(other, "y", 1, 0) == 1);  // nothing is left over for the next one
    if (lost_patience() != lost) continue;
    if (!waited || !good)
      fprintf(stderr, "%s: %s\n", name, waited ? "did not succeed" : "did not wait");
    CHECK(waited && good);
    return;
  }
}

std::string in(char const* name) { return dir + "/" + name; }

void data_waits() {
  iovec const part = {const_cast<char*>("z"), 1};
  int const from = make_file(in("from"));
  waits("write", [] { return write(other, "z", 1) == 1; });
  waits("the file itself", [] { return write(subject, "z", 1) == 1; });
  waits("pwrite", [] { return pwrite(other, "z", 1, 5) == 1; });
  waits("writev", [&] { return writev(other, &part, 1) == 1; });
  waits("pwritev", [&] { return pwritev(other, &part, 1, 9) == 1; });
  waits("pwritev2", [&] { return pwritev2(other, &part, 1, 9, 0) == 1; });
  waits("syscall", [] { return syscall(SYS_pwrite64, other, "z", 1L, 7L) == 1; });
  waits("dprintf", [] { return dprintf(other, "%d", 1) == 1; });
  waits("copy_file_range", [&] {
    off_t in_at = 0, out_at = 0;
    ssize_t const n = copy_file_range(from, &in_at, other, &out_at, 100, 0);
    return n == 100 || errno == EXDEV || errno == EOPNOTSUPP || errno == ENOSYS;
  });
  waits("sendfile", [&] {
    off_t at = 0;
    return sendfile(other, from, &at, 10) == 10;
  });
  waits("ftruncate", [] { return ftruncate(other, 100) == 0; });
  waits("truncate", [] { return truncate(in("other").c_str(), 90) == 0; });
  waits("posix_fallocate", [] { return posix_fallocate(other, 0, 8192) == 0; });
  waits("fallocate", [] { return fallocate(other, 0, 0, 16384) == 0 || errno == EOPNOTSUPP; });
  void* const page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, from, 0);
  CHECK(page != MAP_FAILED);
  waits("msync", [&] { return msync(page, 4096, MS_SYNC) == 0; });
  munmap(page, 4096);
  waits("aio_write", [&] {
    aiocb request = {};
    request.aio_fildes = from;
    request.aio_buf = const_cast<char*>("a");
    request.aio_nbytes = 1;
    if (aio_write(&request) != 0) return false;
    while (aio_error(&request) == EINPROGRESS) nap_ms(1);
    return aio_return(&request) == 1;
  });
  close(from);
}

void names_wait() {
  auto const made = [](char const* name) { close(make_file(in(name), 1)); };
  made("one");
  waits("open to create", [] {
    int const fd = open(in("new").c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
    return fd >= 0 && close(fd) == 0;
  });
  waits("open to cut", [] { return close(open(in("new").c_str(), O_WRONLY | O_TRUNC)) == 0; });
  waits("creat", [] { return close(creat(in("new").c_str(), 0600)) == 0; });
  waits("rename", [] { return rename(in("one").c_str(), in("two").c_str()) == 0; });
  waits("renameat",
        [] { return renameat(AT_FDCWD, in("two").c_str(), AT_FDCWD, in("one").c_str()) == 0; });
  waits("link", [] { return link(in("one").c_str(), in("two").c_str()) == 0; });
  waits("unlink", [] { return unlink(in("two").c_str()) == 0; });
  waits("symlink", [] { return symlink("nowhere", in("two").c_str()) == 0; });
  waits("unlinkat", [] { return unlinkat(AT_FDCWD, in("two").c_str(), 0) == 0; });
  waits("syscall unlink",
        [] { return syscall(SYS_unlinkat, AT_FDCWD, in("new").c_str(), 0) == 0; });
  waits("mkdir", [] { return mkdir(in("sub").c_str(), 0700) == 0; });
  waits("rmdir", [] { return rmdir(in("sub").c_str()) == 0; });
  waits("mkdtemp", [] {
    std::string name = in("tmpXXXXXX");
    return mkdtemp(name.data()) != nullptr && rmdir(name.c_str()) == 0;
  });
  waits("mkstemp", [] {
    std::string name = in("tmpXXXXXX");
    int const fd = mkstemp(name.data());
    return fd >= 0 && close(fd) == 0 && unlink(name.c_str()) == 0;
  });
  waits("mkfifo", [] { return mkfifo(in("fifo").c_str(), 0600) == 0; });
  waits("remove", [] { return remove(in("fifo").c_str()) == 0; });
  waits("chmod", [] { return chmod(in("one").c_str(), 0640) == 0; });
  waits("fchmod", [] { return fchmod(other, 0640) == 0; });
  waits("chown", [] { return chown(in("one").c_str(), getuid(), getgid()) == 0; });
  waits("utime", [] { return utime(in("one").c_str(), nullptr) == 0; });
  waits("futimens", [] { return futimens(other, nullptr) == 0; });
  waits("setxattr", [] {
    return setxattr(in("one").c_str(), "user.t", "v", 1, 0) == 0 || errno == EOPNOTSUPP;
  });
  waits("fsetxattr",
        [] { return fsetxattr(other, "user.t", "v", 1, 0) == 0 || errno == EOPNOTSUPP; });
  waits("fremovexattr", [] { return fremovexattr(other, "user.t") == 0 || errno == EOPNOTSUPP; });
}

void streams_wait() {
  FILE* f = nullptr;
  waits("fopen", [&] { return (f = fopen(in("stream").c_str(), "w")) != nullptr; });
  setvbuf(f, nullptr, _IOFBF, 4096);
  waits("fwrite", [&] { return fwrite(in("x").data(), 1, 2, f) == 2; });
  waits("fflush", [&] { return fflush(f) == 0; });
  CHECK(fputs("kept back", f) >= 0);
  waits("fflush of all", [] { return fflush(nullptr) == 0; });
  CHECK(fputs("kept back", f) >= 0);
  waits("fseek", [&] { return fseek(f, 0, SEEK_SET) == 0; });
  CHECK(fputs("kept back", f) >= 0);
  waits("fclose", [&] { return fclose(f) == 0; });
}

void programs_wait() {
  char const* const argv[] = {"true", nullptr};
  auto const ends_well = [](pid_t pid) {
    int status = 1;
    return waitpid(pid, &status, 0) == pid && status == 0;
  };
  waits("the child of a fork", [&] {
    pid_t const pid = fork();
    if (pid == 0) _exit(pwrite(other, "c", 1, 0) == 1 ? 0 : 1);
    return ends_well(pid);
  });
  waits("exec in a child", [&] {
    pid_t const pid = fork();
    if (pid == 0) {
      execv("/bin/true", const_cast<char* const*>(argv));
      _exit(1);
    }
    return ends_well(pid);
  });
  waits("exec after vfork", [&] {
    pid_t const pid = vfork();
    if (pid == 0) {
      execv("/bin/true", const_cast<char* const*>(argv));
      _exit(1);
    }
    return ends_well(pid);
  });
  waits("system", [] { return system("true") == 0; });
  waits("popen", [] {
    FILE* const f = popen("true", "r");
    return f != nullptr && pclose(f) == 0;
  });
  for (bool const quick : {false, true})
    waits("exit", [&] {
      pid_t const pid = fork();
      if (pid == 0) {
        if (fsync(other) != 0) _exit(1);
        if (quick) _exit(0);
        exit(0);
      }
      return ends_well(pid);
    });
}

/// Nobody has taken the request: the descriptor is all there is of it.
void closing_waits() {
  auto const closes = [](char const* name, std::function<bool(int)> const& close_it) {
    auto const again = [&] {
      bool const good = close_it(subject);
      subject = open(in("subject").c_str(), O_RDWR);
      return good && subject >= 0;
    };
    waits(name, again, wish::leave, wish::make_durable);
  };
  closes("close", [](int fd) { return close(fd) == 0; });
  closes("syscall close", [](int fd) { return syscall(SYS_close, fd) == 0; });
  closes("close_range", [](int fd) {
    return close_range(static_cast<unsigned>(fd), static_cast<unsigned>(fd), 0) == 0;
  });
  closes("dup2", [](int fd) { return dup2(other, fd) == fd && close(fd) == 0; });
  closes("fclose", [](int fd) {
    FILE* const f = fdopen(fd, "r+");
    return f != nullptr && fclose(f) == 0;
  });
  // When it was taken the file may go, though nothing is durable yet.
  set_wish(wish::hold);
  post();
  CHECK(close(subject) == 0);
  set_wish(wish::make_durable);
  subject = open(in("subject").c_str(), O_RDWR);
}

/// What changes nothing there goes on; all of it would hang here.
void others_do_not(std::string const& outside) {
  int const elsewhere = make_file(outside);
  int ends[2];
  set_wish(wish::hold);
  post();
  char c;
  CHECK(pread(other, &c, 1, 0) == 1 && access(dir.c_str(), R_OK) == 0);
  CHECK(pipe(ends) == 0 && write(ends[1], "p", 1) == 1 && read(ends[0], &c, 1) == 1);
  CHECK(pwrite(elsewhere, "e", 1, 0) == 1 && ftruncate(elsewhere, 2) == 0);
  int const fd = open(in("subject").c_str(), O_RDWR);
  CHECK(fd >= 0);
  CHECK(fsync(other) == 0 && fdatasync(fd) == 0);  // several at once
  int const at = open(dir.c_str(), O_RDONLY | O_DIRECTORY);
  CHECK(fsync(at) == 0);
  iovec const part = {const_cast<char*>("n"), 1};
  std::uint64_t const lost = lost_patience();
  CHECK(pwritev2(at, &part, 1, 0, RWF_NOWAIT) == -1 && errno == EBADF);  // it is open for reads
  ssize_t const n = pwritev2(other, &part, 1, 0, RWF_NOWAIT);
  CHECK(n == -1 && (errno == EAGAIN || errno == EOPNOTSUPP || lost != lost_patience()));
  set_wish(wish::make_durable);
  errno = 33;
  CHECK(pwrite(other, "z", 1, 0) == 1 && errno == 33);
  for (int const one : {ends[0], ends[1], elsewhere, fd, at}) close(one);
  unlink(outside.c_str());
}

/// More than a process may have outstanding.
void many() {
  set_wish(wish::make_durable);
  for (int i = 0; i < 200; ++i) CHECK(fsync(i % 2 == 0 ? subject : other) == 0);
  CHECK(pwrite(other, "z", 1, 0) == 1);
}

}  // namespace

int main(int argc, char** argv) {
  dir = folder(argc, argv);
  area = &map_order_area();
  subject = make_file(in("subject"));
  other = make_file(in("other"));
  data_waits();
  names_wait();
  streams_wait();
  programs_wait();
  closing_waits();
  others_do_not(dir + "/../outside");
  many();
}
