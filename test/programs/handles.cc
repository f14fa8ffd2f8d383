// SPDX-License-Identifier: Apache-2.0
// handles DIR PLUGIN WHAT: a file written in small pieces, while functions of files are looked up.
// `past`: they are found in libc itself, or a library that prefers its own writes between; prints
// what the files have. `beside`: what is looked up is the program's own way, or another function.
// What dlsym gives depends on who calls, and is printed too.
#include <dlfcn.h>
#include <sys/wait.h>

#include <functional>
#include <map>
#include <string>

#include "check.h"

namespace {

using write_function = ssize_t(int, void const*, size_t);
using plugin_function = int(char const*);

std::string dir;
char const* plugin;

#if defined(__x86_64__)
constexpr char first_version[] = "GLIBC_2.2.5";
#else
constexpr char first_version[] = "GLIBC_2.17";
#endif

void tell(char const* what, char const* text) { printf("%s: %s\n", what, text); }

void put(int fd, char const* what) {
  for (int i = 0; i < 500; ++i) CHECK(write(fd, what, 4) == 4);
}

void* must_open(char const* name, int flags) {
  void* const handle = dlopen(name, flags);
  if (handle == nullptr) tell("dlopen", dlerror());
  CHECK(handle != nullptr);
  return handle;
}

ssize_t write_by(void* function, int fd) {
  CHECK(function != nullptr);
  return reinterpret_cast<write_function*>(function)(fd, "past", 4);
}

/// The library's own write, which may be another than ours.
ssize_t append_by(void* library, std::string const& name) {
  CHECK(library != nullptr);
  void* const append = dlsym(library, "append_past");
  CHECK(append != nullptr);
  return reinterpret_cast<plugin_function*>(append)(name.c_str());
}

using way = std::function<void(int fd, std::string const& name)>;

/// In a process of its own, as nothing waits in it from then on.
void try_way(char const* what, way const& go) {
  std::string const name = dir + "/" + what;
  fflush(stdout);
  pid_t const child = fork();
  if (child == 0) {
    int const fd = open(name.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0600);
    CHECK(fd >= 0);
    put(fd, "one ");
    go(fd, name);
    put(fd, "two ");
    go(fd, name);
    put(fd, "end ");
    _exit(0);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  FILE* const f = fopen(name.c_str(), "r");
  CHECK(f != nullptr);
  char all[16384];
  tell(what, std::string(all, fread(all, 1, sizeof all, f)).c_str());
  fclose(f);
}

void past() {
  try_way("dlsym", [](int fd, auto const&) {
    CHECK(write_by(dlsym(must_open("libc.so.6", RTLD_LAZY), "write"), fd) == 4);
  });
  try_way("dlvsym", [](int fd, auto const&) {
    void* const libc = must_open("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    CHECK(write_by(dlvsym(libc, "write", first_version), fd) == 4);
  });
  try_way("deepbind", [](int, auto const& name) {
    CHECK(append_by(must_open(plugin, RTLD_NOW | RTLD_DEEPBIND), name) == 4);
  });
  try_way("dlmopen", [](int, auto const& name) {
    CHECK(append_by(dlmopen(LM_ID_NEWLM, plugin, RTLD_NOW), name) == 4);
  });
}

void beside() {
  try_way("found", [](int fd, auto const& name) {
    void* const all = must_open(nullptr, RTLD_LAZY);
    CHECK(dlsym(all, "write") == dlsym(RTLD_DEFAULT, "write"));
    CHECK(dlsym(RTLD_NEXT, "write") == dlsym(RTLD_DEFAULT, "write"));
    CHECK(write_by(dlsym(RTLD_NEXT, "write"), fd) == 4);
    CHECK(dlsym(must_open("libc.so.6", RTLD_LAZY), "strtol") != nullptr);
    CHECK(dlmopen(LM_ID_BASE, "libm.so.6", RTLD_LAZY) != nullptr);
    CHECK(append_by(must_open(plugin, RTLD_LAZY), name) == 4);
  });
  CHECK(dlsym(must_open("libm.so.6", RTLD_LAZY), "no_such_function") == nullptr);
  tell("dlsym", dlerror());
  CHECK(dlvsym(RTLD_DEFAULT, "write", "NO_SUCH_VERSION") == nullptr);
  CHECK(dlvsym(must_open("libc.so.6", RTLD_LAZY), "write", "NO_SUCH_VERSION") == nullptr);
  tell("dlvsym", dlerror());
  CHECK(dlopen("no_such_library.so", RTLD_LAZY) == nullptr);
  tell("dlopen", dlerror());
}

}  // namespace

int main(int argc, char** argv) {
  CHECK(argc == 4);
  dir = argv[1], plugin = argv[2];
  std::string(argv[3]) == "past" ? past() : beside();
}
