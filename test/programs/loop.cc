// SPDX-License-Identifier: Apache-2.0
// loop OP COUNT DIR [SIZE]: does one kind of call COUNT times below DIR and prints the milliseconds
// it took. The file or tree it works on is prepared by `loop prepare 1 DIR`.
#include "check.h"

#include <aio.h>
#include <dirent.h>
#include <ftw.h>
#include <glob.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/xattr.h>

#include <functional>
#include <map>

namespace {
std::string dir;
std::string file;
size_t size = 1;
char buffer[1 << 20];
int fd = -1;
int other = -1;
FILE* stream;

void open_both() {
  fd = open(file.c_str(), O_RDWR);
  other = open((dir + "/copy").c_str(), O_RDWR | O_CREAT, 0600);
  CHECK(fd >= 0 && other >= 0);
}

int nothing(char const*, struct stat const*, int, FTW*) { return 0; }

void aio_once() {
  aiocb request{};
  request.aio_fildes = fd;
  request.aio_buf = buffer;
  request.aio_nbytes = size;
  CHECK(aio_read(&request) == 0);
  aiocb const* list[] = {&request};
  while (aio_error(&request) == EINPROGRESS) aio_suspend(list, 1, nullptr);
  CHECK(aio_return(&request) == static_cast<ssize_t>(size));
}

void list_once() {
  DIR* d = opendir(dir.c_str());
  CHECK(d);
  while (readdir(d)) {
  }
  CHECK(closedir(d) == 0);
}

void map_once() {
  void* p = mmap(nullptr, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(p != MAP_FAILED && munmap(p, 1 << 16) == 0);
}

void move_once() {
  CHECK(rename((dir + "/a").c_str(), (dir + "/b").c_str()) == 0);
  CHECK(rename((dir + "/b").c_str(), (dir + "/a").c_str()) == 0);
}

void prepare() {
  mkdir(dir.c_str(), 0700);
  mkdir((dir + "/tree").c_str(), 0700);
  for (char const* name : {"/a", "/tree/one", "/tree/two"}) close(make_file(dir + name, 1));
  close(make_file(file, 1 << 20));
}

void line_once() {
  static char* line;
  static size_t room;
  rewind(stream);
  CHECK(getline(&line, &room, stream) > 0);
}

std::map<std::string, std::function<void()>> const calls = {
    {"prepare", prepare},
    {"open", [] { CHECK(close(open(file.c_str(), O_RDONLY)) == 0); }},
    {"stat",
     [] {
       struct stat s;
       CHECK(stat(file.c_str(), &s) == 0);
     }},
    {"miss",
     [] {
       struct stat s;
       CHECK(stat((dir + "/none").c_str(), &s) == -1 && errno == ENOENT);
     }},
    {"pread", [] { CHECK(pread(fd, buffer, size, 0) == static_cast<ssize_t>(size)); }},
    {"stdin", [] { CHECK(pread(0, buffer, size, 0) == static_cast<ssize_t>(size)); }},
    {"pwrite", [] { CHECK(pwrite(other, buffer, size, 0) == static_cast<ssize_t>(size)); }},
    {"fread", [] { CHECK(fread(buffer, 1, size, stream) == size); }},
    {"getc", [] { CHECK(getc(stream) == 'x'); }},
    {"getc_unlocked", [] { CHECK(getc_unlocked(stream) == 'x'); }},
    {"getline", line_once},
    {"fwrite", [] { CHECK(fwrite(buffer, 1, size, stream) == size); }},
    {"fprintf", [] { CHECK(fprintf(stream, "%099d\n", 7) == 100); }},
    {"readdir", list_once},
    {"nftw", [] { CHECK(nftw((dir + "/tree").c_str(), nothing, 8, FTW_PHYS) == 0); }},
    {"glob",
     [] {
       glob_t g{};
       CHECK(glob((dir + "/t*/*").c_str(), 0, nullptr, &g) == 0);
       globfree(&g);
     }},
    {"aio", aio_once},
    {"anonymous", map_once},
    {"sendfile",
     [] {
       off_t at = 0;
       CHECK(sendfile(other, fd, &at, size) == static_cast<ssize_t>(size));
     }},
    {"copy_file_range",
     [] {
       off_t from = 0;
       off_t to = 0;
       CHECK(copy_file_range(fd, &from, other, &to, size, 0) == static_cast<ssize_t>(size));
     }},
    {"rename", move_once},
    {"fsync", [] { CHECK(fsync(fd) == 0); }},
    {"flock", [] { CHECK(flock(fd, LOCK_EX) == 0 && flock(fd, LOCK_UN) == 0); }},
    {"getxattr",
     [] {
       char b[8];
       CHECK(getxattr(file.c_str(), "user.none", b, 8) == -1);
     }},
};
}  // namespace

int main(int argc, char** argv) {
  CHECK(argc >= 4);
  std::string const what = argv[1];
  long const count = atol(argv[2]);
  dir = argv[3];
  file = dir + "/file";
  if (argc > 4) size = static_cast<size_t>(atol(argv[4]));
  CHECK(size <= sizeof buffer && calls.count(what));
  if (what == "pread" || what == "pwrite" || what == "aio" || what == "sendfile" ||
      what == "copy_file_range" || what == "fsync" || what == "flock")
    open_both();
  if (what == "fread" || what[0] == 'g') stream = fopen(file.c_str(), "r");
  if (what == "fwrite" || what == "fprintf") stream = fopen((dir + "/copy").c_str(), "w");
  auto const& call = calls.at(what);
  double const begin = now_s();
  for (long i = 0; i < count; ++i) call();
  if (stream) CHECK(fclose(stream) == 0);
  printf("%.0f\n", (now_s() - begin) * 1000);
  return 0;
}
