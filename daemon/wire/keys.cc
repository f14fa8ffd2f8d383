// SPDX-License-Identifier: Apache-2.0
#include "wire/keys.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/error.h"

namespace sluice::wire {

namespace {

constexpr key_role key_roles[] = {{"node", role::node, false},
                                  {"login", role::node, true},
                                  {"relay", role::relay, true},
                                  {"cluster", role::cluster, false},
                                  {"admin", role::admin, false}};

/// A file that others cannot have written. The whole path is the administrator's; a symlink is
/// fine, what it leads to is judged.
std::vector<std::string> lines_of(std::string const& path, unsigned forbidden_mode,
                                  char const* remedy) {
  struct stat st = {};
  if (stat(path.c_str(), &st) != 0)
    throw usage_error(fmt::format("{}: {}; {}", path, std::strerror(errno), remedy));
  if (!S_ISREG(st.st_mode)) throw usage_error(path + ": not a file");
  if (st.st_uid != 0 && st.st_uid != geteuid() && geteuid() != 0)
    throw usage_error(
        fmt::format("{}: belongs to uid {}; chown it to the daemon's user", path, st.st_uid));
  if ((st.st_mode & forbidden_mode) != 0)
    throw usage_error(fmt::format("{}: mode {:o} is open to others; chmod {:o} {}", path,
                                  st.st_mode & 07777, st.st_mode & 0777 & ~forbidden_mode, path));
  std::ifstream file(path);
  if (!file) throw usage_error(fmt::format("{}: {}", path, std::strerror(errno)));
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> words_of(std::string const& line) {
  std::istringstream from(line);
  std::vector<std::string> words;
  for (std::string word; from >> word;) words.push_back(word);
  if (!words.empty() && words[0].starts_with('#')) words.clear();
  return words;
}

constexpr unsigned writable_by_others = 022;

void read_secret(std::string const& path, security& s) {
  auto const lines = lines_of(path, 077, "make keys with `sluiced keys new --dir DIR NAME`");
  for (std::size_t i = 0; i < lines.size(); ++i) {
    auto const words = words_of(lines[i]);
    if (words.empty()) continue;
    auto const k = words.size() == 2 ? key_of_hex(words[1]) : std::nullopt;
    if (words.size() == 2 && words[0] == "name" && is_peer_name(words[1]))
      s.name = words[1];
    else if (k && words[0] == "public")
      s.public_key = *k;
    else if (k && words[0] == "secret")
      s.secret_key = *k;
    else
      throw usage_error(fmt::format(
          "{}:{}: expected `name NAME`, `public KEY` or `secret KEY` (64 hexadecimal digits)", path,
          i + 1));
  }
  if (s.name.empty() || s.public_key == key{} || s.secret_key == key{})
    throw usage_error(path +
                      ": name, public or secret is missing; make new keys with `sluiced "
                      "keys new`");
  char secret_text[41] = {}, public_text[41] = {};
  key derived{};
  zmq_z85_encode(secret_text, s.secret_key.data(), s.secret_key.size());
  if (zmq_curve_public(public_text, secret_text) == 0) zmq_z85_decode(derived.data(), public_text);
  if (derived != s.public_key)
    throw usage_error(path +
                      ": public and secret key do not belong together; make new keys with "
                      "`sluiced keys new`");
}

bool exists(std::string const& path) { return access(path.c_str(), F_OK) == 0; }

}  // namespace

namespace {

std::vector<std::string> list_lines(std::string const& path) {
  return lines_of(path, writable_by_others, "copy it from the machine it belongs to");
}

std::vector<key_line> keys_in(std::vector<std::string> const& lines, std::string const& path) {
  std::vector<key_line> out;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    auto const words = words_of(lines[i]);
    if (words.empty()) continue;
    auto const k = key_of_hex(words[0]);
    if (!k)
      throw usage_error(fmt::format(
          "{}:{}: the first word is not a key (64 hexadecimal digits, not all zero)", path, i + 1));
    key_line line{*k, words.size() > 1 ? words[1] : "", {}};
    if (words.size() > 2) line.who = find_key_role(words[2]);
    if (words.size() < 2 || words.size() > 3 || !is_peer_name(line.name) ||
        (words.size() == 3 && line.who == nullptr))
      throw usage_error(fmt::format(
          "{}:{}: expected `KEY NAME [ROLE]`, a name of letters, digits, '.', '_' and '-', a role "
          "of {}",
          path, i + 1, key_role_names()));
    out.push_back(std::move(line));
  }
  return out;
}

bool is_blank(std::string const& line) {
  return line.find_first_not_of(" \t\r\n\v\f") == std::string::npos;
}

}  // namespace

std::vector<key_line> read_key_lines(std::string const& path) {
  return keys_in(list_lines(path), path);
}

bool speak_alike(security const& a, security const& b) {
  return a.name == b.name && a.secret_key == b.secret_key && a.parent_key == b.parent_key &&
         a.more_parents == b.more_parents;
}

security read_keys(std::string const& dir) {
  security s;
  s.dir = dir;
  read_secret(dir + "/secret", s);
  if (std::string const path = dir + "/parent.pub"; exists(path)) {
    auto const parents = read_key_lines(path);
    if (parents.empty()) throw usage_error(path + ": empty; copy the parent's `public` there");
    s.parent_key = parents[0].id;
    for (std::size_t i = 1; i < parents.size(); ++i) s.more_parents.push_back(parents[i].id);
  }
  std::string const path = dir + "/allowed";
  if (!exists(path)) return s;
  auto const lines = list_lines(path);
  s.has_list = !std::all_of(lines.begin(), lines.end(), is_blank);
  for (key_line const& line : keys_in(lines, path)) {
    if (line.who == nullptr)
      throw usage_error(
          fmt::format("{}: {} has no role; add node or relay to its line", path, line.name));
    allowed_peer const peer = {line.name, line.who->who, line.who->may_ask};
    if (!s.allowed.try_emplace(line.id, peer).second)
      throw usage_error(
          fmt::format("{}: the key of {} is there twice; remove one line", path, line.name));
  }
  return s;
}

key_pair new_key_pair() {
  char public_text[41] = {}, secret_text[41] = {};
  if (zmq_curve_keypair(public_text, secret_text) != 0)
    throw sluice_error("this libzmq was built without CURVE");
  key_pair pair;
  zmq_z85_decode(pair.public_key.data(), public_text);
  zmq_z85_decode(pair.secret_key.data(), secret_text);
  return pair;
}

std::string hex(key const& k) {
  std::string text;
  for (std::uint8_t byte : k) text += fmt::format("{:02x}", byte);
  return text;
}

std::optional<key> key_of_hex(std::string_view text) {
  key k{};
  if (text.size() != 2 * k.size()) return {};
  for (std::size_t i = 0; i < text.size(); ++i) {
    char const c = text[i];
    int const digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return {};
    k[i / 2] = static_cast<std::uint8_t>(k[i / 2] * 16 + digit);
  }
  if (k == key{}) return {};
  return k;
}

key_role const* find_key_role(std::string_view name) {
  for (key_role const& r : key_roles)
    if (r.name == name) return &r;
  return nullptr;
}

std::string_view role_name(allowed_peer const& peer) {
  for (key_role const& r : key_roles)
    if (r.who == peer.who && r.may_ask == peer.may_ask) return r.name;
  return "none";
}

std::string key_role_names() {
  std::string out;
  for (key_role const& r : key_roles) out += (out.empty() ? "" : ", ") + std::string(r.name);
  return out;
}

bool is_peer_name(std::string_view name) {
  constexpr std::string_view good =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  return !name.empty() && name.size() < 64 &&
         name.find_first_not_of(good) == std::string_view::npos;
}

}  // namespace sluice::wire
