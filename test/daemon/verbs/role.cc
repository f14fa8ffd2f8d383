// SPDX-License-Identifier: Apache-2.0
// Who may do what at a daemon's socket.
#include "verbs/role.h"

#include <unistd.h>

#include <catch2/catch.hpp>

using namespace sluice;

TEST_CASE("nobody is an operator from afar, whatever uid a node names", "[verbs]") {
  uid_t const self = geteuid();
  local::peer const root = {0, 0, 1, -1}, own = {self, 0, 1, -1}, other = {self + 7, 7, 1, -1};
  local::peer const root_afar = {0, 0, 0, -1, {}, 0, true}, owner_afar = {7, 7, 0, -1, {}, 0, true};
  CHECK(local::is_operator(root));
  CHECK(local::is_operator(own));
  CHECK_FALSE(local::is_operator(other));
  CHECK_FALSE(local::is_operator(root_afar));
  CHECK_FALSE(local::is_operator({self, 0, 0, -1, {}, 0, true}));
  verbs::job_name const theirs = {7, "work"};
  CHECK(verbs::may_see(owner_afar, theirs));
  CHECK_FALSE(verbs::may_see(root_afar, theirs));
  CHECK(verbs::may_see(root, theirs));
}

TEST_CASE("a job that is gone is seen by nobody, one without an owner by operators", "[verbs]") {
  verbs::job_name job = {7, "work"};
  job.has_owner = false;
  CHECK(verbs::may_see({0, 0, 1, -1}, job));
  CHECK_FALSE(verbs::may_see({7, 7, 1, -1}, job));
  job.is_visible = false;
  CHECK_FALSE(verbs::may_see({0, 0, 1, -1}, job));
}
