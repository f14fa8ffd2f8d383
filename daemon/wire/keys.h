// SPDX-License-Identifier: Apache-2.0
// CURVE keys on disk, one folder per daemon, all lines of text, keys in hexadecimal:
//
//   secret      0600: our name, public and secret key       made by `sluiced keys new`
//   public      our public key and name, to be given away
//   parent.pub  the `public` of the parent; of several parents one line each, in the order of their
//               addresses, or one line for all
//   allowed     the peers that may connect: key, name, role     kept by `sluiced keys allow`
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wire/message.h"

namespace sluice::wire {

using key = std::array<std::uint8_t, 32>;

struct allowed_peer {
  std::string name;
  role who;
  bool may_ask = false;  // it says who its users are: a login node, or a relay of such
};

struct security {
  std::string dir;   // of the files
  std::string name;  // ours
  key public_key{}, secret_key{};
  key parent_key{};               // all zero: none given
  std::vector<key> more_parents;  // keys of the second, third … address; empty: the same
  std::map<key, allowed_peer> allowed;
  bool has_list = false;  // `allowed` has a line, if only a comment: somebody wrote it
};

/// They are the same towards parents: own pair, own name, keys of the parents.
bool speak_alike(security const& a, security const& b);

/// Throws a usage error that names file, line and remedy (modes, missing, malformed, zero keys).
security read_keys(std::string const& dir);

/// `sluiced keys …`: makes, allows, revokes, lists and checks keys. Throws sluice::error.
int keys_main(int argc, char** argv);

struct key_pair {
  key public_key{}, secret_key{};
};
key_pair new_key_pair();

std::string hex(key const& k);
std::optional<key> key_of_hex(std::string_view text);  // none for all zero too
/// What a key may be allowed as: node, login (a node that asks for its users), relay …
struct key_role {
  std::string_view name;
  role who;
  bool may_ask;
};
key_role const* find_key_role(std::string_view name);
std::string_view role_name(allowed_peer const& peer);
std::string key_role_names();  // node, login, relay …
/// Names are file names, labels and words of a line: letters, digits, '.', '_', '-'; up to 63.
bool is_peer_name(std::string_view name);

/// One line `KEY NAME [ROLE]`, as in `public`, `parent.pub` and `allowed`.
struct key_line {
  key id{};
  std::string name;
  key_role const* who = nullptr;
};
/// The lines of a file that are no comments; throws a usage error at the first wrong one.
std::vector<key_line> read_key_lines(std::string const& path);

}  // namespace sluice::wire
