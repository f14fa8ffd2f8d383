// SPDX-License-Identifier: Apache-2.0
// Names compared and cut in whole words agree with a byte-wise reference, also where a string ends
// at the end of its page.
#include "libinterpose/core/path_text.h"

#include <sys/mman.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <string>

using namespace sluice::core;

namespace {

// A page with an unreadable one after it.
struct page_end {
  char* memory = static_cast<char*>(
      mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  page_end() {
    REQUIRE(memory != MAP_FAILED);
    REQUIRE(mprotect(memory + 4096, 4096, PROT_NONE) == 0);
  }
  ~page_end() { munmap(memory, 8192); }
  char* put(std::string const& text) const {
    char* const at = memory + 4096 - text.size() - 1;
    std::memcpy(at, text.c_str(), text.size() + 1);
    return at;
  }
};

std::string random_text(std::mt19937& r, std::size_t size, char const* letters) {
  std::string text(size, ' ');
  for (char& c : text) c = letters[r() % std::strlen(letters)];
  return text;
}

}  // namespace

TEST_CASE("texts of any length are compared to the last byte", "[path_text]") {
  std::mt19937 r(1);
  page_end const left, right;
  for (unsigned length = 1; length < 200; ++length) {
    std::string const text = random_text(r, length, "ab/");
    CHECK(equal(left.put(text), right.put(text), length));
    for (unsigned i = 0; i < length; ++i) {
      std::string other = text;
      other[i] = 'c';
      if (equal(left.put(text), right.put(other), length)) FAIL(length << " at " << i);
    }
  }
}

namespace {

// By the byte: `path` is `directory` and one name.
bool lies_in(std::string const& path, std::string const& directory) {
  if (path.compare(0, directory.size(), directory) != 0) return false;
  std::string const name = path.substr(directory.size());
  return !name.empty() && name.find('/') == std::string::npos && name != "." && name != "..";
}

}  // namespace

TEST_CASE("a name in a directory is told from all others, wherever its text lies", "[path_text]") {
  std::mt19937 r(3);
  page_end const memory;
  int found = 0;
  for (unsigned i = 0; i < 300'000; ++i) {
    std::string directory = random_text(r, 1 + r() % 60, "ab/.") + "/";
    std::string path = r() % 8 == 0 ? random_text(r, r() % 90, "ab/.") : directory;
    path += random_text(r, r() % (i % 50 == 0 ? 255 : 40), i % 3 ? "xyz." : "x/.");
    if (!path.empty() && r() % 4 == 0) path[r() % path.size()] ^= 1;
    path = path.c_str();
    char text[200] = {};
    std::memcpy(text + block_size, directory.data(), directory.size());
    auto const length = static_cast<unsigned>(directory.size());
    std::string roomy(16 + r() % 16, '/');
    std::size_t const from = roomy.size() - r() % 16;
    roomy = roomy.substr(0, from) + path + '\0' + "/x";
    bool const at_end = is_name_in(memory.put(path), text + block_size, length);
    bool const inside = is_name_in(roomy.c_str() + from, text + block_size, length);
    bool const wanted = lies_in(path, directory);
    // A short name with a dot in front is looked at more closely elsewhere.
    bool const is_hidden = path.size() == length + 2 && path[length] == '.';
    if (at_end != inside || (at_end != wanted && !is_hidden) || (at_end && !wanted))
      FAIL("'" << path << "' in '" << directory << "': " << at_end << inside << wanted);
    found += at_end;
  }
  CHECK(found > 50'000);
}

TEST_CASE("a plain name has no slash and is no dots", "[path_text]") {
  std::mt19937 r(2);
  page_end const memory;
  for (unsigned i = 0; i < 200'000; ++i) {
    std::string const text = random_text(r, 1 + r() % 40, i % 2 ? "x/." : "xyz.wvu\xaf\x2e/");
    auto const from = static_cast<unsigned>(r() % text.size());
    std::string const name = text.substr(from);
    bool const plain = name != "." && name != ".." && name.find('/') == std::string::npos;
    // A short name that begins with a dot may be called dots: it takes the long way.
    bool const found = is_plain_name(memory.put(text), from, static_cast<unsigned>(text.size()));
    if (found && !plain) FAIL(text << " from " << from);
    if (!found && plain && !(name[0] == '.' && name.size() <= 2)) FAIL(text << " from " << from);
  }
  CHECK_FALSE(is_plain_name("a/", 2, 2));
}

TEST_CASE("a path is cut at its directory", "[path_text]") {
  struct row {
    char const* path;
    unsigned last, directory;
  };
  for (row const& want :
       {row{"/a/b", 3, 2}, row{"/a", 1, 1}, row{"a", 0, 0}, row{"a//b//", 3, 1}, row{"/a/..", 3, 5},
        row{"/a/.b", 3, 2}, row{"..", 0, 2}, row{"/", 1, 1}, row{"//a", 2, 1}}) {
    INFO(want.path);
    scanned_path const found = scan(want.path);
    CHECK(found.length == std::strlen(want.path));
    CHECK(found.last == want.last);
    CHECK(found.directory == want.directory);
  }
}

TEST_CASE("hashes differ by length and by every byte", "[path_text]") {
  std::string text(20, 'a');
  std::uint64_t const whole = hash_of(text.data(), 20);
  CHECK(hash_of(text.data(), 19) != whole);
  for (char& c : text) {
    c = 'b';
    CHECK(hash_of(text.data(), 20) != whole);
    c = 'a';
  }
}
