// SPDX-License-Identifier: Apache-2.0
#include "segment/memory_server.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <map>
#include <memory>

#include "base/error.h"
#include "base/guard.h"
#include "base/keep_only.h"

namespace sluice::segment {

namespace {

class mapped_file {
 public:
  mapped_file(int fd, std::size_t bytes)
      : at_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)), bytes_(bytes) {
    if (at_ == MAP_FAILED) throw sluice_error("no memory to map that of jobs");
  }
  ~mapped_file() { munmap(at_, bytes_); }
  mapped_file(mapped_file const&) = delete;
  mapped_file& operator=(mapped_file const&) = delete;
  void* at() const { return at_; }

 private:
  void* at_;
  std::size_t bytes_;
};

class held_region {
 public:
  held_region(region_kind kind, int file, int copy)
      : kind_(kind),
        memory_(file, bytes_of(kind)),
        copy_(copy, bytes_of(kind)),
        guard_(memory_.at(), bytes_of(kind)) {
    if (!guard_.is_held()) throw sluice_error("too much memory of jobs is mapped");
  }

  bool is_broken() const { return guard_.is_broken(); }

  void change(memory_change const& c) {
    if (is_broken()) return;
    if (kind_ == region_kind::segment) apply(at<abi::segment>(), c);
    if (kind_ == region_kind::after) apply(at<abi::after_area>(), c);
  }

  void copy(std::uint32_t parts) {
    if (is_broken()) return;
    if (kind_ == region_kind::segment)
      copy_parts(at<abi::segment>(), *static_cast<abi::segment*>(copy_.at()), parts);
    else
      std::memcpy(copy_.at(), memory_.at(), bytes_of(kind_));
  }

 private:
  template <class Area>
  foreign<Area>& at() const {
    return *static_cast<foreign<Area>*>(memory_.at());
  }

  region_kind kind_;
  mapped_file memory_, copy_;
  guarded_memory guard_;
};

/// Of one owner's memory.
class memory_server {
 public:
  explicit memory_server(int socket) : socket_(socket) {}

  /// Until the loop is gone, or lets go of all.
  void serve() {
    while (true) {
      letter<memory_words> l;
      if (!l.take_from(socket_)) return;
      heed(l);
    }
  }

 private:
  void heed(letter<memory_words> const& l) {
    memory_words const& w = l.words;
    switch (w.what) {
      case memory_order::hold:
        regions_[w.region] = std::make_unique<held_region>(w.kind, l.fds[0].get(), l.fds[1].get());
        break;
      case memory_order::let_go:
        regions_.erase(w.region);
        break;
      case memory_order::change:
        if (auto const at = regions_.find(w.region); at != regions_.end())
          at->second->change(w.change);
        break;
      case memory_order::look:
        look(w);
    }
  }

  void look(memory_words const& w) {
    letter<memory_answer> answer = {};
    for (unsigned i = 0; i < std::min(w.count, most_looked_at); ++i) {
      auto const at = regions_.find(w.looks[i].region);
      if (at == regions_.end()) continue;
      at->second->copy(w.looks[i].parts);
      if (at->second->is_broken()) answer.words.broken[answer.words.count++] = at->first;
    }
    if (!answer.send_to(socket_)) throw sluice_error("the loop does not hear");
  }

  int socket_;
  std::map<std::uint32_t, std::unique_ptr<held_region>> regions_;
};

[[noreturn]] void be_server(int socket) {
  socket = keep_only(socket);
  prctl(PR_SET_NAME, "sluiced-memory");
  install_guard();
  try {
    memory_server(socket).serve();
  } catch (std::exception const&) {
    _exit(exit_sluice);
  }
  _exit(0);
}

}  // namespace

void make_memory_servers(int socket, std::function<void()> const& settle) {
  prctl(PR_SET_NAME, "sluiced-memory");
  socket = keep_only(socket);
  signal(SIGCHLD, SIG_IGN);  // nobody asks how they ended
  try {
    settle();
    while (true) {
      letter<std::uint32_t> l;
      if (!l.take_from(socket)) break;
      pid_t const pid = fork();
      if (pid == 0) be_server(l.fds[0].release());
      letter<bool> made{.words = pid > 0};
      if (!made.send_to(socket)) break;
    }
  } catch (std::exception const&) {
    _exit(exit_sluice);
  }
  _exit(0);
}

}  // namespace sluice::segment
