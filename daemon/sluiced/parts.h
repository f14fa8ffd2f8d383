// SPDX-License-Identifier: Apache-2.0
// What main takes from the roles and from the wire, as far as it is here.
#pragma once

#include <memory>

#include "control/config.h"
#include "control/services.h"
#include "policy/error.h"
#include "wire/keys.h"
#include "wire/socket.h"

namespace sluice::sluiced {

using run_function = int (*)(control::config const&, control::services&);

run_function function_of(control::role_kind role);

#if __has_include("wire/context.h")
using wire::keys_main;
using wire::make_context;
using wire::read_keys;
#else
inline std::unique_ptr<int> make_context() { return nullptr; }
inline wire::security read_keys(std::string const& dir) {
  throw sluice_error(dir + ": keys are not built in");
}
inline int keys_main(int, char**) { throw sluice_error("keys are not built in"); }
#endif

}  // namespace sluice::sluiced
