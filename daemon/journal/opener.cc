// SPDX-License-Identifier: Apache-2.0
#include "journal/opener.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "base/believed_place.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/keep_only.h"
#include "base/letter.h"
#include "journal/file_disk.h"
#include "journal/hands.h"
#include "journal/left_behind.h"
#include "journal/recovery_mark.h"

namespace sluice::journal {

namespace {

enum class wish : std::uint32_t {
  want,
  keep_only,
  open,
  sync,
  mounting,
  is_marked,
  set_mark,
  hands_left
};

struct question {
  wish what = wish::want;
  std::int32_t flags = 0;
  std::uint8_t fs[16] = {};
  std::int32_t handle_type = 0;
  std::uint32_t handle_bytes = 0;
  char handle[128] = {};
  char mark[128] = {};
  pid_t but = 0;  // of hands_left
};

struct answer {
  std::int32_t error = 0;  // an errno; is_marked: 1 for yes; hands_left: how many
  mount_time mounting;
};

/// What a process of the user's may do.
struct rights {
  uid_t uid;
  gid_t gid;
  std::vector<gid_t> groups;
};

/// While it lives, this thread opens what the user can open, and nothing else.
class user_eyes {
 public:
  explicit user_eyes(rights const& of) {
    setfsgid(of.gid);
    setfsuid(of.uid);
    constexpr auto none = static_cast<uid_t>(-1);
    are_his_ = static_cast<uid_t>(setfsuid(none)) == of.uid &&
               static_cast<gid_t>(setfsgid(none)) == of.gid;
  }
  ~user_eyes() {
    setfsuid(geteuid());
    setfsgid(getegid());
  }
  user_eyes(user_eyes const&) = delete;
  user_eyes& operator=(user_eyes const&) = delete;
  explicit operator bool() const { return are_his_; }

 private:
  bool are_his_ = false;
};

/// Root's side. What it is asked comes from a process that reads a user's bytes. It may wait for
/// the lock of a file or of a directory: doorman.
class opener {
 public:
  opener(int socket, rights user) : socket_(socket), user_(std::move(user)) {}

  void serve() {
    prctl(PR_SET_NAME, opener_name(user_.uid).c_str());
    for (;;) {
      letter<question> asked;
      letter<answer> told;
      if (!asked.take_from(socket_)) return;
      take_up(asked, told);
      if (!told.send_to(socket_)) return;
    }
  }

 private:
  void take_up(letter<question> const& asked, letter<answer>& told) {
    question const& q = asked.words;
    std::array<std::uint8_t, 16> fs = {};
    std::copy(std::begin(q.fs), std::end(q.fs), fs.begin());
    std::string const mark(q.mark, strnlen(q.mark, sizeof q.mark));
    switch (q.what) {
      case wish::want:
        wanted_.insert(fs);
        return;
      case wish::keep_only:
        return files_.keep_only(wanted_);
      case wish::open:
        told.words.error = open_it(q, fs, told);
        return;
      case wish::sync:
        told.words.error = files_.sync(fs);
        return;
      case wish::mounting:
        told.words.mounting = files_.mounting(fs);
        return;
      case wish::is_marked:
        told.words.error = asked.fds[0] && files_.is_marked(asked.fds[0].get(), mark) ? 1 : 0;
        return;
      case wish::set_mark:
        told.words.error =
            is_his(asked.fds[0].get()) ? set_recovery_mark(asked.fds[0].get(), mark) : EPERM;
        return;
      case wish::hands_left:
        break;  // the doorman knows
    }
    told.words.error = EINVAL;
  }

  bool is_his(int fd) const {
    struct stat st = {};
    return fstat(fd, &st) == 0 && st.st_uid == user_.uid &&
           (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode));
  }

  /// 0, or an errno.
  int open_it(question const& q, std::array<std::uint8_t, 16> const& fs, letter<answer>& told) {
    constexpr int may_be = O_ACCMODE | O_PATH | O_DIRECTORY;
    if (q.handle_bytes > sizeof q.handle) return EINVAL;
    int const flags = (q.flags & may_be) | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    file_id const id = {fs, q.handle_type, {q.handle, q.handle_bytes}};
    int const found = files_.open(id, O_PATH);
    if (found < 0) return -found;
    descriptor at(found);
    // A handle without a generation finds whatever has the inode.
    file_id exactly;
    if (int const error = identify(found, exactly, &fs); error != 0) return error;
    if (exactly != id) return ESTALE;
    struct stat st = {};
    if (fstat(at.get(), &st) != 0) return errno;
    if (S_ISDIR(st.st_mode)) return open_directory(fs, found, flags, told);
    if (st.st_uid != user_.uid) return of_somebody_else;
    if (!S_ISREG(st.st_mode)) return S_ISLNK(st.st_mode) ? ELOOP : EINVAL;
    if ((flags & O_PATH) == 0) at = descriptor(open(proc_name(found).c_str(), flags));
    if (!at) return errno;
    // It may have been given away in between.
    if (!is_his(at.get())) return of_somebody_else;
    told.fds[0] = std::move(at);
    return 0;
  }

  int open_directory(std::array<std::uint8_t, 16> const& fs, int directory, int flags,
                     letter<answer>& told) const {
    user_eyes const his(user_);
    if (his) told.fds[0] = descriptor(files_.open_by_name(fs, directory));
    if (!told.fds[0]) return of_somebody_else;
    if ((flags & O_ACCMODE) == O_RDONLY) return 0;
    told.fds[0] = descriptor();
    return EISDIR;
  }

  int socket_;
  rights const user_;
  mounted_home files_;
  std::set<std::array<std::uint8_t, 16>> wanted_;
};

/// Stands between the opener and who asks. It waits for no lock: an opener that does is left to
/// itself (hands.h), and another one takes its place.
/// What stays true: who holds directories of the user's keeps no file from being opened. The kernel
/// takes a directory's lock to open a directory by handle, and none for another file. So an open
/// that is asked for as that of a file only waits where the journal was forged.
class doorman {
 public:
  doorman(int socket, rights const& user, lock_patience const& patience)
      : asker_(socket), user_(user), patience_(patience) {}

  /// Whom nothing is asked ends at once.
  ~doorman() {
    opener_ = descriptor();
    if (pid_ > 0) waitpid(pid_, nullptr, 0);
  }
  doorman(doorman const&) = delete;
  doorman& operator=(doorman const&) = delete;

  void serve() {
    letter<question> asked;
    while (asked.take_from(asker_)) {
      letter<answer> told;
      if (!pass(asked, told) || !told.send_to(asker_)) return;
      asked = {};
    }
  }

 private:
  /// False: that cannot go on.
  bool pass(letter<question>& asked, letter<answer>& told) {
    question const& q = asked.words;
    if (q.what == wish::hands_left) {
      told.words.error = static_cast<int>(hands_left(user_.uid, q.but));
      return true;
    }
    std::string const file = q.what == wish::open ? handle_of(q) : "";
    unsigned* const late = late_of(q);
    if ((told.words.error = why_not(asked, file, late != nullptr)) != 0) return true;
    if (q.what == wish::want || q.what == wish::keep_only) before_.push_back(q);
    if (!has(asked)) return false;
    if (late != nullptr && !is_readable(opener_.get(), patience_ns(*late))) {
      ++*late;
      give_up(file);
      told.words.error = held;
      return true;
    }
    if (!told.take_from(opener_.get())) return false;
    if (is_of_directory(q) && told.fds[0] && !may_others_look_at(told.fds[0].get()))
      private_.insert(file);
    return true;
  }

  /// 0: it may be asked for.
  int why_not(letter<question> const& asked, std::string const& file, bool may_wait) {
    if (held_.contains(file)) return held;
    return !may_wait || left_.is_below(most(asked), pid_) ? 0 : unasked;
  }

  static bool is_of_directory(question const& q) {
    return q.what == wish::open && (q.flags & O_DIRECTORY) != 0;
  }

  /// How many like it waited in vain in this recovery; null: it never waits.
  unsigned* late_of(question const& q) {
    if (q.what == wish::set_mark || is_of_directory(q)) return &late_shared_;
    return q.what == wish::open ? &late_files_ : nullptr;
  }

  /// Who waits for the lock of a directory above can be ended, and is not left. So there is no
  /// bound of these, and many must not take long.
  std::int64_t patience_ns(unsigned late) const {
    return late < patience_.most_shared ? patience_.after(late) : patience_.least_ns;
  }

  /// So many processes may be left behind before that is asked.
  unsigned most(letter<question> const& asked) const {
    question const& q = asked.words;
    bool const is_shared = q.what == wish::set_mark
                               ? may_others_look_at(asked.fds[0].get())
                               : is_of_directory(q) && !private_.contains(handle_of(q));
    return is_shared ? patience_.most_shared : patience_.most_private;
  }

  static std::string handle_of(question const& q) {
    return std::string(reinterpret_cast<char const*>(q.fs), sizeof q.fs) +
           std::string(q.handle, std::min<std::size_t>(q.handle_bytes, sizeof q.handle));
  }

  /// It is given to the opener, after all that it has to know.
  bool has(letter<question>& asked) {
    if (!opener_ && !begin()) return false;
    return asked.send_to(opener_.get());
  }

  bool begin() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return false;
    descriptor mine(ends[0]), its(ends[1]);
    pid_ = fork();
    if (pid_ == 0) be_opener(its.get());
    if (pid_ < 0) return false;
    opener_ = std::move(mine);
    bool is_told = true;
    for (auto const& q : before_) is_told = is_told && tell(q);
    return is_told;
  }

  bool tell(question const& q) {
    letter<question> again{q};
    letter<answer> told;
    return again.send_to(opener_.get()) && told.take_from(opener_.get());
  }

  [[noreturn]] void be_opener(int socket) {
    socket = keep_only(socket);
    try {
      opener(socket, user_).serve();
    } catch (std::exception const&) {
      _exit(exit_sluice);
    }
    _exit(0);
  }

  void give_up(std::string const& file) {
    if (!file.empty()) held_.insert(file);
    left_.add(std::exchange(pid_, 0), patience_.ends_ns);
    opener_ = descriptor();
  }

  int asker_;
  rights const& user_;
  descriptor opener_;
  pid_t pid_ = 0;
  std::vector<question> before_;  // what each opener has to know
  std::set<std::string> held_, private_;
  lock_patience const patience_;
  left_behind left_{[this](pid_t but) { return openers_left(user_.uid, but); }};
  unsigned late_files_ = 0, late_shared_ = 0;
};

/// The user's side.
class asked_home : public home {
 public:
  asked_home(descriptor socket, pid_t opener) : socket_(std::move(socket)), opener_(opener) {}
  ~asked_home() override {
    socket_ = descriptor();  // its end
    waitpid(opener_, nullptr, 0);
  }

  void keep_only(std::set<std::array<std::uint8_t, 16>> const& wanted) override {
    for (auto const& fs : wanted) ask(about(wish::want, fs));
    ask(about(wish::keep_only, {}));
  }

  int open(file_id const& id, int flags) const override {
    question q = about(wish::open, id.fs);
    if (id.handle.size() > sizeof q.handle) return -ESTALE;
    q.flags = flags;
    q.handle_type = id.handle_type;
    q.handle_bytes = static_cast<std::uint32_t>(id.handle.size());
    id.handle.copy(q.handle, sizeof q.handle);
    letter<answer> told = ask(q);
    if (told.words.error != 0) return -told.words.error;
    return told.fds[0] ? fcntl(told.fds[0].get(), F_DUPFD_CLOEXEC, 0) : -EIO;
  }

  int sync(std::array<std::uint8_t, 16> const& fs) const override {
    return ask(about(wish::sync, fs)).words.error;
  }

  mount_time mounting(std::array<std::uint8_t, 16> const& fs) const override {
    return ask(about(wish::mounting, fs)).words.mounting;
  }

  /// The kernel tells the name of what is open to anybody, also below directories that are shut.
  std::string place_of(std::array<std::uint8_t, 16> const& fs, int fd) const override {
    return nameless(fs, fd);
  }

  bool is_marked(int fd, std::string const& mark) const override {
    return ask(about(wish::is_marked, {}, mark), fd).words.error == 1;
  }

  int set_mark(int fd, std::string const& mark, hands& /*by*/) const override {
    return ask(about(wish::set_mark, {}, mark), fd).words.error;
  }

  unsigned left_hands(pid_t but) const override {
    question q = about(wish::hands_left, {});
    q.but = but;
    return static_cast<unsigned>(ask(q).words.error);
  }

 private:
  static question about(wish what, std::array<std::uint8_t, 16> const& fs,
                        std::string const& mark = {}) {
    question q;
    q.what = what;
    std::copy(fs.begin(), fs.end(), std::begin(q.fs));
    mark.copy(q.mark, sizeof q.mark - 1);
    return q;
  }

  letter<answer> ask(question const& q, int fd = -1) const {
    letter<question> asked{q, {descriptor(fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1)}};
    letter<answer> told;
    if (!asked.send_to(socket_.get()) || !told.take_from(socket_.get()))
      throw sluice_error("the process that opens files for this recovery has ended");
    return told;
  }

  descriptor socket_;
  pid_t opener_;
};

[[noreturn]] void become_opener(int socket, rights const& user, lock_patience const& patience) {
  socket = keep_only(socket);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (setgroups(user.groups.size(), user.groups.data()) != 0) _exit(exit_sluice);
  try {
    doorman(socket, user, patience).serve();
  } catch (std::exception const&) {
    _exit(exit_sluice);
  }
  _exit(0);
}

constexpr gid_t nobodys = 65534;

std::vector<gid_t> groups_of(passwd const& user) {
  int count = 64;
  std::vector<gid_t> all(static_cast<std::size_t>(count));
  if (getgrouplist(user.pw_name, user.pw_gid, all.data(), &count) < 0) {
    all.resize(static_cast<std::size_t>(std::max(count, 1)));
    if (getgrouplist(user.pw_name, user.pw_gid, all.data(), &count) < 0) count = 0;
  }
  all.resize(static_cast<std::size_t>(count));
  return all;
}

/// Of one whom nobody knows by name: it must be nobody else's either.
bool is_unknown(gid_t gid) {
  char text[4096];
  group entry = {}, *found = nullptr;
  return getgrgid_r(gid, &entry, text, sizeof text, &found) == 0 && found == nullptr;
}

/// One whom nobody knows by name has no other groups.
rights rights_of(uid_t uid, std::optional<gid_t> wish) {
  std::vector<char> text(4096);
  passwd entry = {}, *found = nullptr;
  int error = 0;
  while ((error = getpwuid_r(uid, &entry, text.data(), text.size(), &found)) == ERANGE)
    text.resize(2 * text.size());
  // He is not unknown, then. Who starts us tries again.
  if (error != 0)
    throw sluice_error(
        fmt::format("the name service does not say who uid {} is: {}", uid, std::strerror(error)));
  if (found == nullptr) return {uid, wish && is_unknown(*wish) ? *wish : nobodys, {}};
  auto groups = groups_of(entry);
  bool const is_his = wish && std::find(groups.begin(), groups.end(), *wish) != groups.end();
  return {uid, is_his ? *wish : entry.pw_gid, std::move(groups)};
}

void take(rights const& of) {
  if (setgroups(of.groups.size(), of.groups.data()) != 0 ||
      setresgid(of.gid, of.gid, of.gid) != 0 || setresuid(of.uid, of.uid, of.uid) != 0)
    throw errno_error(fmt::format("cannot take the rights of uid {}", of.uid));
  // He is not to look into it, for it has descriptors that he could not open himself.
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    throw errno_error("prctl");
}

}  // namespace

std::unique_ptr<home> become_user(uid_t uid, std::optional<gid_t> gid,
                                  lock_patience const& patience) {
  rights const user = rights_of(uid, gid);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    throw errno_error("socketpair");
  descriptor mine(ends[0]), its(ends[1]);
  pid_t const pid = fork();
  if (pid == 0) become_opener(its.get(), user, patience);
  if (pid < 0) throw errno_error("fork");
  its = descriptor();
  auto files = std::make_unique<asked_home>(std::move(mine), pid);
  take(user);
  return files;
}

std::unique_ptr<home> become_owner(std::string const& log, lock_patience const& patience) {
  believe_place(log);
  if (geteuid() != 0) return nullptr;
  descriptor const at(open(log.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat st = {};
  if (!at || why_not_believed(at.get()) || fstat(at.get(), &st) != 0 || st.st_uid == 0)
    return nullptr;  // who opens it as root says why
  keep_doubting();
  return become_user(st.st_uid, {}, patience);
}

}  // namespace sluice::journal
