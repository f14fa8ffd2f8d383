// SPDX-License-Identifier: Apache-2.0
// build: -static
// keep_asking [--no-heart] [--all] [--take-back] FOLDER...: what a hostile user does with the areas
// of his own jobs. No library is loaded into it. A question stands in the `after` area of each job,
// with --all as many as it has room for: a new one as soon as the last has its answer. With
// --no-heart the `order` areas say that there is a journal, and that nobody serves it. With
// --take-back a question is asked anew while the daemon has it. It says `asked` when the daemon has
// taken all, and `refused N` when it has refused all N times.
#include <sys/mman.h>

#include <algorithm>
#include <vector>

#include "abi/after_area.h"
#include "abi/order_area.h"
#include "check.h"

using namespace sluice;

namespace {

template <class Area>
Area& map(std::string const& path) {
  int const fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  CHECK(fd >= 0);
  void* const at = mmap(nullptr, sizeof(Area), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(at != MAP_FAILED);
  close(fd);
  return *static_cast<Area*>(at);
}

class asker {
 public:
  asker(abi::after_slot& slot, bool takes_back) : slot_(slot), takes_back_(takes_back) {}

  void turn() {
    abi::after_slot& s = slot_;
    std::uint32_t const word = s.word.load();
    auto const is = static_cast<abi::after_state>(word & 7);
    taken_ += is == abi::after_state::taken;
    if (is == abi::after_state::posted) return;
    if (is == abi::after_state::taken && !takes_back_) return;
    if (is == abi::after_state::done && s.result.load() != 0) ++refused_;
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    s.rule = 0;
    s.pid = static_cast<std::uint32_t>(getpid());
    s.since_ns = static_cast<std::uint64_t>(t.tv_sec * 1'000'000'000 + t.tv_nsec);
    s.word = abi::word_of((word >> 3) + 1, abi::after_state::posted);
  }
  bool was_taken() const { return taken_ >= (takes_back_ ? 20 : 1); }
  unsigned refused() const { return refused_; }

 private:
  abi::after_slot& slot_;
  bool takes_back_;
  unsigned taken_ = 0;
  unsigned refused_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  int first = 1;
  auto const is = [&](char const* flag) {
    bool const found = first < argc && strcmp(argv[first], flag) == 0;
    first += found ? 1 : 0;
    return found;
  };
  bool const has_no_heart = is("--no-heart"), are_all = is("--all");
  bool const takes_back = is("--take-back");
  std::vector<asker> askers;
  std::vector<abi::order_area*> orders;
  for (int i = first; i < argc; ++i) {
    auto& area = map<abi::after_area>(std::string(argv[i]) + "/after");
    for (unsigned slot = 0; slot < (are_all ? abi::after_slots : 1); ++slot)
      askers.emplace_back(area.slot[slot], takes_back);
    if (has_no_heart) orders.push_back(&map<abi::order_area>(std::string(argv[i]) + "/order"));
  }
  CHECK(!askers.empty());
  bool has_said_asked = false;
  for (unsigned said = 0;; nap_ms(1)) {
    for (abi::order_area* const o : orders) {
      o->head.generation = 1;
      o->head.incarnation = 0;
    }
    for (asker& a : askers) a.turn();
    bool const is_asked =
        std::all_of(askers.begin(), askers.end(), [](asker const& a) { return a.was_taken(); });
    unsigned least = ~0u;
    for (asker const& a : askers) least = std::min(least, a.refused());
    if (is_asked && !has_said_asked) puts("asked");
    has_said_asked = is_asked;
    for (; said < least; ++said) printf("refused %u\n", said + 1);
    fflush(stdout);
  }
}
