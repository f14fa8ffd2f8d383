// SPDX-License-Identifier: Apache-2.0
// What is to be done first passes by work that hangs.
#include "journal/thread_pool.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <future>

using namespace sluice::journal;

namespace {

/// Who reads the mail of a pool does so while it is there.
void hear_all(thread_pool const& pool, mailbox& mail) {
  while (pool.under_way() != 0)
    if (!mail.run()) usleep(1000);
}

}  // namespace

TEST_CASE("thread pool: what comes first is done while all else hangs", "[journal]") {
  mailbox mail;
  std::promise<void> may_go_on;
  std::shared_future<void> const gate = may_go_on.get_future().share();
  std::promise<void> has_run;
  unsigned told = 0;
  thread_pool pool(mail, 4);
  for (unsigned i = 0; i < 10; ++i)
    pool.run([gate] { return gate.wait(), 0; }, [&](int) { ++told; });
  pool.run_first([&] { return has_run.set_value(), 7; },
                 [&](int result) { told += result == 7 ? 100 : 0; });
  has_run.get_future().wait();
  CHECK(pool.under_way() == 11);
  may_go_on.set_value();
  hear_all(pool, mail);
  CHECK(told == 110);
}

TEST_CASE("thread pool: one thread alone does all", "[journal]") {
  mailbox mail;
  unsigned told = 0;
  thread_pool pool(mail, 1);
  for (unsigned i = 0; i < 3; ++i) {
    pool.run([] { return 0; }, [&](int) { ++told; });
    pool.run_first([] { return 0; }, [&](int) { ++told; });
  }
  hear_all(pool, mail);
  CHECK(told == 6);
}
