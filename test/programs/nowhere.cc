// SPDX-License-Identifier: Apache-2.0
// nowhere DIR: passes addresses that cannot be read to every call that takes a name or a list, and
// prints what came of each. The text must be the same with a stage and without.
#include "check.h"

#include <linux/aio_abi.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <ucontext.h>
#include <utime.h>

#include <vector>

namespace {

constexpr size_t page = 4096;
using text = char const*;
std::string dir, good;
int file = -1, folder_fd = -1;
aio_context_t ring = 0;

iovec const* parts(text p) { return reinterpret_cast<iovec const*>(p); }
char* writable(text p) { return const_cast<char*>(p); }
loff_t* offset(text p) { return reinterpret_cast<loff_t*>(writable(p)); }
char* const* list(text p) { return reinterpret_cast<char* const*>(p); }

struct row {
  text name;
  long (*call)(text p);
};
char to[512];
char* no_words[] = {nullptr};
open_how how{};

#define ROW(name, ...)                                                  \
  row {                                                                 \
    name, [](text p) -> long { return static_cast<long>(__VA_ARGS__); } \
  }
#define PATH(function, ...) ROW(#function, function(p __VA_OPT__(, ) __VA_ARGS__))
#define AT(function, ...) ROW(#function, function(folder_fd, p __VA_OPT__(, ) __VA_ARGS__))
#define SYSCALL(number, ...) ROW(#number, syscall(number, __VA_ARGS__))
#define STAT reinterpret_cast<struct stat*>(to)

row const paths[] = {PATH(open, O_RDONLY),
                     PATH(creat, 0600),
                     AT(openat, O_RDONLY),
                     PATH(stat, STAT),
                     PATH(lstat, STAT),
                     AT(fstatat, STAT, 0),
                     AT(statx, 0, STATX_SIZE, reinterpret_cast<struct statx*>(to)),
                     PATH(access, R_OK),
                     PATH(eaccess, R_OK),
                     AT(faccessat, R_OK, 0),
                     PATH(statfs, reinterpret_cast<struct statfs*>(to)),
                     PATH(statvfs, reinterpret_cast<struct statvfs*>(to)),
                     PATH(truncate, 0),
                     PATH(chmod, 0600),
                     AT(fchmodat, 0600, 0),
                     PATH(chown, 0, 0),
                     PATH(lchown, 0, 0),
                     AT(fchownat, 0, 0, 0),
                     PATH(utime, nullptr),
                     PATH(utimes, nullptr),
                     PATH(lutimes, nullptr),
                     AT(utimensat, nullptr, 0),
                     PATH(getxattr, "user.x", to, 1),
                     PATH(lgetxattr, "user.x", to, 1),
                     PATH(setxattr, "user.x", to, 1, 0),
                     PATH(lsetxattr, "user.x", to, 1, 0),
                     PATH(listxattr, to, 1),
                     PATH(llistxattr, to, 1),
                     PATH(removexattr, "user.x"),
                     PATH(lremovexattr, "user.x"),
                     ROW("name of getxattr", getxattr(good.c_str(), p, to, 1)),
                     ROW("name of fsetxattr", fsetxattr(file, p, to, 1, 0)),
                     PATH(rename, good.c_str()),
                     ROW("rename to", rename(good.c_str(), p)),
                     AT(renameat, folder_fd, "x"),
                     ROW("renameat to", renameat(folder_fd, "none", folder_fd, p)),
                     AT(renameat2, folder_fd, "x", 0),
                     PATH(link, good.c_str()),
                     ROW("link to", link(good.c_str(), p)),
                     AT(linkat, folder_fd, "x", 0),
                     PATH(symlink, "none/x"),
                     ROW("symlink to", symlink("x", p)),
                     ROW("symlinkat", symlinkat("x", folder_fd, p)),
                     PATH(readlink, to, 8),
                     AT(readlinkat, to, 8),
                     PATH(unlink),
                     AT(unlinkat, 0),
                     AT(unlinkat, AT_REMOVEDIR),
                     PATH(remove),
                     PATH(mkdir, 0700),
                     AT(mkdirat, 0700),
                     PATH(rmdir),
                     PATH(mknod, S_IFREG, 0),
                     AT(mknodat, S_IFREG, 0),
                     PATH(mkfifo, 0600),
                     AT(mkfifoat, 0600),
                     PATH(chdir),
                     PATH(chroot),
                     ROW("fopen", fopen(p, "r") != nullptr),
                     ROW("fopen w", fopen(p, "w") != nullptr),
                     ROW("execve", execve(p, no_words, no_words)),
                     ROW("execv", execv(p, no_words)),
                     SYSCALL(SYS_openat, AT_FDCWD, p, O_RDONLY, 0),
                     SYSCALL(SYS_openat2, AT_FDCWD, p, &how, sizeof how),
                     SYSCALL(SYS_statx, AT_FDCWD, p, 0, STATX_SIZE, to),
                     SYSCALL(SYS_faccessat, AT_FDCWD, p, R_OK),
                     SYSCALL(SYS_mkdirat, AT_FDCWD, p, 0700),
                     SYSCALL(SYS_readlinkat, AT_FDCWD, p, to, 8),
                     SYSCALL(SYS_renameat2, AT_FDCWD, p, AT_FDCWD, p, 0),
                     SYSCALL(SYS_unlinkat, AT_FDCWD, p, 0),
                     SYSCALL(SYS_chdir, p),
                     SYSCALL(SYS_chroot, p)};

row const lists[] = {
    ROW("readv", readv(file, parts(p), 2)),
    ROW("writev", writev(file, parts(p), 2)),
    ROW("preadv", preadv(file, parts(p), 2, 0)),
    ROW("pwritev", pwritev(file, parts(p), 2, 0)),
    ROW("preadv2", preadv2(file, parts(p), 2, 0, 0)),
    ROW("pwritev2", pwritev2(file, parts(p), 2, 0, 0)),
    ROW("readv, long", readv(file, parts(p), 1024)),
    ROW("copy_file_range", copy_file_range(file, offset(p), file, offset(p), 1, 0)),
    ROW("sendfile", sendfile(file, file, offset(p), 1)),
    ROW("splice", splice(file, offset(p), file, offset(p), 1, 0)),
    ROW("words of execve", execve("/bin/true", list(p), no_words)),
    ROW("environment of execve", execve("/bin/true", no_words, list(p))),
    SYSCALL(SYS_openat2, AT_FDCWD, "/dev/null", p, sizeof how),
    SYSCALL(SYS_readv, file, p, 2),
    SYSCALL(SYS_writev, file, p, 2),
    SYSCALL(SYS_preadv, file, p, 2, 0, 0),
    SYSCALL(SYS_pwritev2, file, p, 2, 0, 0, 0),
    SYSCALL(SYS_io_submit, ring, 1, p)};

// They map memory for a moment, which may be where there was none.
row const spawns[] = {
    ROW("posix_spawn", posix_spawn(nullptr, p, nullptr, nullptr, no_words, no_words)),
    ROW("environment of posix_spawn",
        posix_spawn(nullptr, "/bin/true", nullptr, nullptr, no_words, list(p)))};

long start_with_variable(text p) {
  char* const words[] = {writable(p), nullptr};
  return execve("/bin/true", no_words, words);
}
long submit(text p) {
  iocb* requests[] = {reinterpret_cast<iocb*>(writable(p))};
  return syscall(SYS_io_submit, ring, 1, requests);
}
long submit_vector(text p) {
  iocb one{};
  one.aio_lio_opcode = IOCB_CMD_PWRITEV;
  one.aio_fildes = static_cast<unsigned>(file);
  one.aio_buf = reinterpret_cast<uint64_t>(p);
  one.aio_nbytes = 2;
  return submit(reinterpret_cast<text>(&one));
}
row const elements[] = {
    {"variable", start_with_variable}, {"request", submit}, {"vector of a request", submit_vector}};

template <size_t count>
void try_rows(text where, row const (&rows)[count], text p) {
  for (row const& r : rows) {
    struct stat s;
    CHECK(stat(good.c_str(), &s) == 0);  // so that a thread knows the directory
    errno = 0;
    long const result = r.call(p);
    printf("%s, %s: %ld %d\n", where, r.name, result, errno);
    fflush(stdout);
  }
}

void try_all(text where, text p) {
  try_rows(where, paths, p);
  if (p == nullptr) return;
  try_rows(where, lists, p);
  try_rows(where, elements, p);
}

void try_with_spawns(text where, text p) {
  try_all(where, p);
  if (p != nullptr) try_rows(where, spawns, p);
}

char* pages(size_t count, int protection = PROT_READ | PROT_WRITE) {
  void* const p = mmap(nullptr, count * page, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(p != MAP_FAILED);
  return static_cast<char*>(p);
}

// A name of the directory that was just used, so that only its end differs.
text ends_at(char* end, size_t cut) {
  memcpy(end - good.size() - 1 + cut, good.c_str(), good.size() + 1 - cut);
  return end - good.size() - 1 + cut;
}
text runs_into(char* end) {
  std::string const begin = dir + "/" + std::string(100, 'n');
  memcpy(end - begin.size(), begin.data(), begin.size());
  return end - begin.size();
}

void succeed(text p) {
  struct stat s;
  for (int i = 0; i < 3; ++i) {
    CHECK(stat(p, &s) == 0);
    int const fd = open(p, O_RDONLY);
    CHECK(fd >= 0 && close(fd) == 0);
  }
}

void taken_away() {
  char* p = pages(1);
  text name = ends_at(p + page, 0);
  succeed(name);
  CHECK(munmap(p, page) == 0);
  try_all("unmapped after use", name);
  p = pages(1);
  name = ends_at(p + page, 0);
  succeed(name);
  CHECK(syscall(SYS_munmap, p, page) == 0);
  try_all("unmapped by number", name);
  p = pages(2);
  name = ends_at(p + page, 0);
  succeed(name);
  CHECK(mremap(p, 2 * page, 2 * page, MREMAP_MAYMOVE | MREMAP_FIXED, pages(2)) != MAP_FAILED);
  try_all("moved", name);
  size_t const much = 4 << 20;  // libc maps and unmaps such by itself
  auto* const freed = static_cast<char*>(malloc(much));
  name = ends_at(freed + much, 0);
  succeed(name);
  free(freed);
  try_all("freed", name);
}

alignas(page) char of_image[4 * page];

// Of what nobody expects to go away.
void taken_from_known() {
  text name = ends_at(of_image + 2 * page, 0);
  succeed(name);
  CHECK(mprotect(of_image + page, page, PROT_NONE) == 0);
  try_all("of the image", name);
  void* room = nullptr;
  CHECK(posix_memalign(&room, page, 40 * page) == 0);
  auto* const of_heap = static_cast<char*>(room);
  name = ends_at(of_heap + 8 * page, 0);
  succeed(name);
  CHECK(mprotect(of_heap + 7 * page, page, PROT_NONE) == 0);
  try_all("of the heap", name);
  CHECK(mprotect(of_heap + 7 * page, page, PROT_READ | PROT_WRITE) == 0);
}

// What is learned of a heap ends with the first page that is taken from it, so each way has a
// process of its own.
template <class Way>
void in_child(char const* what, Way&& way) {
  fflush(stdout);
  pid_t const child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    void* room = nullptr;
    CHECK(posix_memalign(&room, page, 8 * page) == 0);
    auto* const p = static_cast<char*>(room) + 4 * page;
    text const name = ends_at(p + page, 0);
    succeed(name);
    way(p);
    try_all(what, name);
    fflush(stdout);
    _exit(0);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  printf("%s: status %d\n", what, status);
}

void taken_in_other_ways() {
  constexpr int guard_install = 102, process_madvise = 440;
  in_child("guarded", [](char* p) { madvise(p, page, guard_install); });
  in_child("guarded by number", [](char* p) { syscall(SYS_madvise, p, page, guard_install); });
  in_child("guarded from outside", [](char* p) {
    int const self = static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0));
    iovec const part = {p, page};
    syscall(process_madvise, self, &part, 1, guard_install, 0);
  });
  in_child("not for children", [](char* p) {
    CHECK(madvise(p, page, MADV_DONTFORK) == 0);
    pid_t const child = fork();
    CHECK(child >= 0);
    int status = 0;
    if (child != 0) _exit(waitpid(child, &status, 0) == child ? WTERMSIG(status) : 1);
  });
  in_child("shared memory", [](char* p) {
    int const id = shmget(IPC_PRIVATE, page, 0600);
    CHECK(id >= 0 && shmat(id, p, SHM_REMAP) == p && shmctl(id, IPC_RMID, nullptr) == 0);
    CHECK(shmdt(p) == 0);
  });
  fflush(stdout);
}

// By number libc does not hear of it.
void break_cut() {
  auto* const end = static_cast<char*>(sbrk(64 * page));
  CHECK(end != reinterpret_cast<char*>(-1));
  text const name = ends_at(end + 63 * page, 0);
  succeed(name);
  syscall(SYS_brk, end);
  try_all("above the break, by number", name);
  syscall(SYS_brk, end + 64 * page);
}

void heap_cut() {
  auto* const end = static_cast<char*>(sbrk(64 * page));
  CHECK(end != reinterpret_cast<char*>(-1));
  text const name = ends_at(end + 63 * page, 0);
  succeed(name);
  CHECK(brk(end) == 0);
  try_all("above the break", name);
}

char* page_in(char* room) { return room + page - reinterpret_cast<uintptr_t>(room) % page; }

// What lies beside the stack on both sides can be read; the hole in it cannot.
void* in_thread(void*) {
  char here[9 * page];
  succeed(ends_at(here + sizeof here, 0));
  try_all("unmapped, in a thread", pages(1, PROT_NONE));
  char* const hole = page_in(here + 4 * page);
  text const name = ends_at(hole + page, 0), before = ends_at(hole, 0);
  succeed(name);
  succeed(before);
  CHECK(mprotect(hole, page, PROT_NONE) == 0);
  try_all("of a thread's stack", name);
  try_all("runs into a hole", runs_into(hole));
  succeed(ends_at(here + sizeof here, 0));
  succeed(ends_at(hole, 0));
  CHECK(mprotect(hole, page, PROT_READ | PROT_WRITE) == 0);
  succeed(name);
  return nullptr;
}

// malloc keeps a heap for each thread, and gives back what it needed more.
void* in_own_heap(void*) {
  constexpr size_t piece = 100'000;
  auto* const room = static_cast<char*>(aligned_alloc(page, 8 * page));
  text const name = ends_at(room + 3 * page, 0);
  succeed(name);
  succeed(ends_at(room + 5 * page, 0));
  CHECK(mprotect(room + 2 * page, page, PROT_NONE) == 0);
  try_all("of a thread's heap", name);
  CHECK(mprotect(room + 2 * page, page, PROT_READ | PROT_WRITE) == 0);
  succeed(name);
  std::vector<char*> pieces(2 * (64 << 20) / piece);
  for (char*& p : pieces) p = static_cast<char*>(malloc(piece));
  std::vector<text> names;
  for (size_t i = 1; i <= 4; ++i) {
    names.push_back(ends_at(pieces[i * (pieces.size() - 1) / 4] + piece / 2, 0));
    succeed(names.back());
  }
  for (char* p : pieces) free(p);
  // Some of it is still there: nothing that could succeed and change something.
  row const harmless[] = {PATH(stat, STAT), PATH(open, O_RDONLY), PATH(access, R_OK)};
  for (text n : names) try_rows("given back by a thread's heap", harmless, n);
  return nullptr;
}

// A coroutine's stack right below the thread's, which goes away when it has ended.
constexpr size_t stack_pages = 12;
char* both_stacks = nullptr;
ucontext_t coroutine, thread_itself;
text name_of_coroutine = nullptr;
void run_coroutine() {
  char here[256];
  name_of_coroutine = ends_at(here + sizeof here, 0);
  succeed(name_of_coroutine);
}
void* with_coroutine(void*) {
  char here[256];
  succeed(ends_at(here + sizeof here, 0));
  CHECK(getcontext(&coroutine) == 0);
  coroutine.uc_stack = {both_stacks, 0, stack_pages * page};
  coroutine.uc_link = &thread_itself;
  makecontext(&coroutine, run_coroutine, 0);
  CHECK(swapcontext(&thread_itself, &coroutine) == 0);
  CHECK(munmap(both_stacks, stack_pages * page) == 0);
  try_all("of a coroutine that ended", name_of_coroutine);
  return nullptr;
}

void run_thread(void* (*function)(void*), char* stack = nullptr) {
  pthread_attr_t how;
  pthread_t thread;
  CHECK(pthread_attr_init(&how) == 0);
  if (stack != nullptr) CHECK(pthread_attr_setstack(&how, stack, stack_pages * page) == 0);
  CHECK(pthread_create(&thread, &how, function, nullptr) == 0);
  CHECK(pthread_join(thread, nullptr) == 0);
}
void threads() {
  run_thread(in_thread);
  run_thread(in_own_heap);
  both_stacks = pages(2 * stack_pages);
  run_thread(with_coroutine, both_stacks + stack_pages * page);
}

void never_there() {
  try_with_spawns("null", nullptr);
  for (uintptr_t at : {uintptr_t{1}, uintptr_t{16}, uintptr_t{0xdeadbeef}, uintptr_t{1} << 46,
                       uintptr_t{1} << 47, uintptr_t{1} << 62, ~uintptr_t{0} - 4096, ~uintptr_t{0}})
    try_with_spawns(("at " + std::to_string(at)).c_str(), reinterpret_cast<text>(at));
  char* p = pages(3);
  CHECK(munmap(p + page, page) == 0 && mprotect(p + 2 * page, page, PROT_NONE) == 0);
  try_with_spawns("unmapped", p + page + 100);
  try_with_spawns("protected", p + 2 * page);
  succeed(ends_at(p + page, 0));
  try_with_spawns("cut name", ends_at(p + page, 1));
  try_with_spawns("into unmapped", runs_into(p + page));
  CHECK(mmap(p, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
        p);
  try_with_spawns("into protected", runs_into(p + 2 * page));
  auto* const sparse = static_cast<char*>(mmap(nullptr, 4 * page, PROT_READ, MAP_SHARED, file, 0));
  CHECK(sparse != MAP_FAILED);
  try_with_spawns("behind the end of a file", sparse + 3 * page);
}

}  // namespace

int main(int argc, char** argv) {
  dir = folder(argc, argv);
  good = dir + "/nowhere";
  file = make_file(good);
  folder_fd = open(dir.c_str(), O_RDONLY | O_DIRECTORY);
  CHECK(folder_fd >= 0 && syscall(SYS_io_setup, 4, &ring) == 0);
  never_there();
  taken_away();
  heap_cut();
  taken_in_other_ways();
  threads();
  break_cut();
  taken_from_known();
  return 0;
}
