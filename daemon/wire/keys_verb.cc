// SPDX-License-Identifier: Apache-2.0
// `sluiced keys …`: the only writer of the keys folder. A file appears whole, in one rename, and
// belongs to whom the folder belongs, so that root can keep the keys of a daemon that is not root.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/common_options.h"
#include "base/error.h"
#include "wire/keys.h"

namespace sluice::wire {

namespace {

struct command_line {
  std::string dir = "/etc/sluice/keys";
  std::string name;
  std::string public_key;  // a file, or the key itself
  std::string who = "node";
  bool replace = false;
};

[[noreturn]] void fail(std::string const& what) {
  throw sluice_error(fmt::format("{}: {}", what, std::strerror(errno)));
}

/// The folder, locked against a second `sluiced keys` while it lives.
class folder {
 public:
  explicit folder(std::string dir)
      : dir_(std::move(dir)), fd_(open(dir_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (fd_ < 0) fail(dir_);
    while (flock(fd_, LOCK_EX) != 0)
      if (errno != EINTR) fail("cannot lock " + dir_);
  }
  ~folder() { close(fd_); }
  folder(folder const&) = delete;
  folder& operator=(folder const&) = delete;

  std::string path(char const* file) const { return dir_ + "/" + file; }
  bool has(char const* file) const { return access(path(file).c_str(), F_OK) == 0; }

  void write(char const* file, std::string const& text, mode_t mode) const {
    std::string const fresh = fmt::format(".{}.{}", file, getpid());
    int const fd =
        openat(fd_, fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) fail("cannot write in " + dir_);
    struct stat st = {};
    bool good = fstat(fd_, &st) == 0 && fchmod(fd, mode) == 0;
    if (good && geteuid() == 0) good = fchown(fd, st.st_uid, st.st_gid) == 0;
    for (std::size_t at = 0; good && at < text.size();) {
      ssize_t const n = ::write(fd, text.data() + at, text.size() - at);
      good = n > 0 || (n < 0 && errno == EINTR);
      if (n > 0) at += static_cast<std::size_t>(n);
    }
    good = good && fsync(fd) == 0;
    int const why = errno;
    close(fd);
    errno = why;
    if (!good || renameat(fd_, fresh.c_str(), fd_, file) != 0) {
      int const reason = errno;
      unlinkat(fd_, fresh.c_str(), 0);
      errno = reason;
      fail("cannot write " + path(file));
    }
    fsync(fd_);
  }

 private:
  std::string dir_;
  int fd_;
};

void require_name(std::string const& name) {
  if (!is_peer_name(name))
    throw usage_error(
        fmt::format("name \"{}\": use up to 63 letters, digits, '.', '_' and '-'", name));
}

int new_keys(command_line const& line) {
  require_name(line.name);
  mode_t const before = umask(077);
  std::error_code failed;
  std::filesystem::create_directories(line.dir, failed);
  umask(before);
  if (failed) throw sluice_error(fmt::format("cannot make {}: {}", line.dir, failed.message()));
  folder const at(line.dir);
  if (at.has("secret") && !line.replace)
    throw usage_error(at.path("secret") +
                      " is there already; --replace makes new keys, and everybody who allowed or "
                      "trusted the old ones must be told");
  key_pair const pair = new_key_pair();
  at.write("secret",
           fmt::format("# whoever reads this file is {0}\nname {0}\npublic {1}\nsecret {2}\n",
                       line.name, hex(pair.public_key), hex(pair.secret_key)),
           0600);
  at.write("public", fmt::format("{} {}\n", hex(pair.public_key), line.name), 0644);
  fmt::print("{} {}\n", hex(pair.public_key), line.name);
  return 0;
}

std::string text_of(std::vector<key_line> const& lines) {
  std::string text = "# key, name, role of the peers that may connect (sluiced keys allow)\n";
  for (key_line const& l : lines)
    text += fmt::format("{} {} {}\n", hex(l.id), l.name, l.who == nullptr ? "node" : l.who->name);
  return text;
}

key_line peer_of(std::string const& given) {
  if (auto const k = key_of_hex(given)) return {*k, "", {}};
  auto const lines = read_key_lines(given);
  if (lines.size() != 1) throw usage_error(given + ": expected one line, the `public` of the peer");
  return lines[0];
}

int allow(command_line const& line) {
  require_name(line.name);
  key_role const* const who = find_key_role(line.who);
  if (who == nullptr)
    throw usage_error(fmt::format("{} is no role: {}", line.who, key_role_names()));
  key_line peer = peer_of(line.public_key);
  if (!peer.name.empty() && peer.name != line.name)
    throw usage_error(
        fmt::format("{} holds the key of {}, not of {}", line.public_key, peer.name, line.name));
  peer.name = line.name;
  peer.who = who;
  folder const at(line.dir);
  std::vector<key_line> lines;
  bool is_new = true;
  if (at.has("allowed")) lines = read_key_lines(at.path("allowed"));
  for (key_line& l : lines) {
    if (l.id == peer.id && l.name != peer.name)
      throw usage_error(fmt::format("{} has this key already; one key, one name", l.name));
    if (l.name != peer.name) continue;
    is_new = false;
    l = peer;
  }
  if (is_new) lines.push_back(peer);
  at.write("allowed", text_of(lines), 0644);
  fmt::print("{} may connect as {}{}; a running daemon reads it on SIGHUP\n", peer.name, who->name,
             is_new ? "" : ", with this key only");
  return 0;
}

int revoke(command_line const& line) {
  folder const at(line.dir);
  auto lines = at.has("allowed") ? read_key_lines(at.path("allowed")) : std::vector<key_line>();
  if (std::erase_if(lines, [&](key_line const& l) { return l.name == line.name; }) == 0)
    throw usage_error(fmt::format("{}: no line for {}", at.path("allowed"), line.name));
  at.write("allowed", text_of(lines), 0644);
  fmt::print("{} may no longer connect; a running daemon reads it on SIGHUP\n", line.name);
  return 0;
}

int list(command_line const& line) {
  security const s = read_keys(line.dir);
  fmt::print("{:8} {:20} {}\n", "own", s.name, hex(s.public_key));
  std::string const path = line.dir + "/parent.pub";
  if (s.parent_key != key{})
    for (key_line const& parent : read_key_lines(path))
      fmt::print("{:8} {:20} {}\n", "parent", parent.name, hex(parent.id));
  for (auto const& [k, peer] : s.allowed)
    fmt::print("{:8} {:20} {}\n", role_name(peer), peer.name, hex(k));
  return 0;
}

int check(command_line const& line) {
  security const s = read_keys(line.dir);
  fmt::print("{}: keys of {}, {}, {} peer{} allowed\n", line.dir, s.name,
             s.parent_key == key{} ? "no parent.pub (a cluster needs none)" : "a parent's key",
             s.allowed.size(), s.allowed.size() == 1 ? "" : "s");
  return 0;
}

CLI::App* add(CLI::App& app, char const* name, char const* purpose, command_line& line,
              int (*verb)(command_line const&), std::function<int()>& chosen) {
  CLI::App* const sub = app.add_subcommand(name, purpose);
  sub->add_option("--dir", line.dir, "the keys folder")->type_name("DIR")->capture_default_str();
  sub->callback([&line, verb, &chosen] { chosen = [&line, verb] { return verb(line); }; });
  return sub;
}

void add_verbs(CLI::App& app, command_line& line, std::function<int()>& chosen) {
  auto const name = [&line](CLI::App* sub, char const* what) {
    sub->add_option("NAME", line.name, what)->required();
  };
  auto* make =
      add(app, "new", "make a key pair: DIR/secret and DIR/public", line, new_keys, chosen);
  name(make, "of the daemon these keys are for");
  make->add_flag("--replace", line.replace, "even if there are keys");
  auto* let = add(app, "allow", "let a peer connect to the daemon of DIR", line, allow, chosen);
  let->add_option("--role", line.who, "what it may say: " + key_role_names())
      ->capture_default_str();
  name(let, "of the peer; a key it had before counts no more");
  let->add_option("PUBLIC", line.public_key, "its `public`, or the key in it")->required();
  name(add(app, "revoke", "no longer let a peer connect", line, revoke, chosen), "of the peer");
  add(app, "list", "show whose keys are in DIR", line, list, chosen);
  add(app, "check", "say whether a daemon could start with DIR", line, check, chosen);
}

}  // namespace

int keys_main(int argc, char** argv) {
  command_line line;
  std::function<int()> chosen;
  CLI::App app("Keys of the daemons: who is who, and who may connect to whom.", "sluiced keys");
  app.require_subcommand(1);
  common_options common;
  take_common_options(app, common);
  add_verbs(app, line, chosen);
  app.footer(
      "On the controller:  sluiced keys new --dir /etc/sluice/keys-cluster ctl\n"
      "On each node:       sluiced keys new --dir /etc/sluice/keys n1\n"
      "                    copy the controller's `public` to /etc/sluice/keys/parent.pub\n"
      "On the controller:  sluiced keys allow --dir /etc/sluice/keys-cluster --role node n1 "
      "n1.public\n"
      "                    systemctl reload sluiced-cluster");
  try {
    app.parse(argc, argv);
  } catch (CLI::Success const& e) {
    return app.exit(e);
  } catch (CLI::ParseError const& e) {
    throw usage_error(fmt::format("{}; see sluiced keys --help", e.what()));
  }
  return chosen();
}

}  // namespace sluice::wire
