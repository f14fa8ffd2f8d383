// SPDX-License-Identifier: Apache-2.0
// The daemon of durable targets: one loop takes the requests of all areas, decides (file_state) and
// appends; one thread commits (commits); a thread_pool syncs home files, and checkpoints.
// What stays true: all knowledge of files belongs to the loop. The heart beats in it, so a loop
// that hangs makes a silent daemon. Pages are taken from an area before the file is read. Data that
// became durable at home by itself is revoked before it is acknowledged.
#pragma once

#include <unistd.h>

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "journal/at_once.h"
#include "journal/commits.h"
#include "journal/file_state.h"
#include "journal/held_file.h"
#include "journal/notices.h"
#include "journal/slots.h"
#include "journal/thread_pool.h"
#include "journal/told.h"
#include "journal/write_home.h"

namespace sluice::journal {

/// What keeps the answers right. The crash test switches each off and must see data lost.
struct service_rules {
  rules log;
  bool revokes = true;        // what became durable at home is not replayed over
  bool tells_removed = true;  // a file that was removed for good is not made again
  bool sees_foreign = true;   // what others wrote is synced with what the program wrote
  bool awaits_looks = true;   // the same where the look is made while the journal is flushed
  bool tells_apart = true;    // files that had one inode number after the other
  bool tells_births = true;   // files that had one name after the other
  // Not of that kind: a test that is about new files in the journal wants all of them there.
  bool learns_directories = true;
  std::uint64_t checkpoint_every_ns = 5'000'000'000;   // nor is this, while something is live
  std::uint64_t rests_after_ns = 0;                    // nor this: see rests_after()
  std::uint64_t flush_bytes = home_pace::flush_bytes;  // nor this: 0 for each file, or for all
  /// Nor this: what takes longer to look at is looked at while the journal is flushed.
  std::uint64_t look_at_once_ns = 8'000;
};

struct service_counts {
  std::uint64_t asked = 0, synced = 0, logged = 0, checkpoints = 0;
  std::uint64_t rests = 0;  // how often it let go of all files
};

class service {
 public:
  /// `s` is in force on `d`, and nothing counts after its head.
  service(disk& d, superblock const& s, service_rules const& keep = {});
  service(service const&) = delete;
  service& operator=(service const&) = delete;

  /// When nobody has asked for so long, no file is held, and programs have nothing to note. 0:
  /// never.
  void rests_after(std::uint64_t idle_ns) { rests_after_ns_ = idle_ns; }
  /// Told of each file that is held, before the journal has anything of it.
  using tell_file = std::function<void(int fd, struct stat const& st)>;
  void on_hold(tell_file tell) { on_hold_ = std::move(tell); }
  /// Told when the journal has nothing, and no file is held any more, of all that it was told of.
  void on_let_go(std::function<void()> tell) { on_let_go_ = std::move(tell); }
  /// For the areas that come from now on.
  void log_is_at(log_place place) { log_place_ = std::move(place); }
  /// From now on it is served. One left behind by a daemon that was killed is taken over.
  void add(std::unique_ptr<area> a);
  void remove(std::string const& path);
  std::vector<std::string> areas() const;

  /// A turn of the loop: at most until something is there or it is time for the heart.
  void turn();
  /// What is asked from now on is done at home, and the journal runs empty. True: it has, and
  /// nobody is served any more. False for good when `failed()`.
  bool end();
  /// Nonzero: home or journal cannot be written, the journal has to be kept.
  int failed() const { return home_error_ != 0 ? home_error_.load() : log_.failed(); }
  /// A program could not wait for us and said that the journal is void, and may have marked it:
  /// end(), and begin a new generation. Until then nothing is acknowledged.
  bool wants_anew() const;
  service_counts const& counts() const { return counts_; }
  /// What people are told, into the areas and the status.
  void publish(abi::order_status& to) const;

 private:
  using file_ptr = std::shared_ptr<held_file>;
  using directory_ptr = std::shared_ptr<held_directory>;
  struct found {  // of one request
    struct stat st = {};
    bool is_ctime_proof = false;  // of st
    noted what;
    page_ranges known;  // where it is asked what others wrote
    bool looks_later = false;
    birth born;
    directory_ptr in;  // it was opened, and seen, by its name there
    std::string name;
    bool may_have_list = true;  // of access control
    std::uint64_t flags = 0;
    file_seen seen;
  };

  // service.cc: the loop
  void gather();
  void take_over(request const& r);
  /// Recovery has the rights of the journal's user.
  bool is_ours(struct stat const& st) const { return user_ == 0 || st.st_uid == user_; }
  void wait();
  void keep_time();
  void answer(request const& r, int result) { r.from->answer(r, result); }
  bool is_live(held_file const& f) const { return f.last_lsn > head_; }
  bool anything_live() const { return content_lsn_ > head_; }
  bool is_quiet() const;
  /// For a request: a checkpoint, which is a job of the pool as well, does not count.
  bool is_syncing_home() const { return pool_.under_way() > (is_checkpointing_ ? 1U : 0U); }
  int heard_of(int error);
  int lost_at_home(int error);
  void leave_log();

  // service_checkpoint.cc: how the journal gets room
  void want_checkpoint();
  void want_tidying(std::uint64_t ranges_min);
  void begin_pass(bool is_last);
  void let_leave(std::uint64_t ranges_min);
  void have_left(bool are_clean);
  void pass_written();
  void checkpointed(int error);
  using mount_ptr = std::shared_ptr<held_mount>;
  using mounts = std::vector<mount_ptr>;
  bool hold_mount(held_file const& f, struct stat const& st);
  bool is_kept(request const& r, int fd, struct stat const& st);
  bool is_in_order(request const& r, int fd, struct stat const& st);
  bool is_bypassed(file_key const& key) const;
  void forget_directories();
  mounts all_mounts() const;
  int sync_mounts(mounts const& all);
  struct home_sync {  // of records before `up_to`
    std::uint64_t up_to = 0;
    mounts on;
    bool is_all = true;  // of those; else of these:
    std::vector<file_ptr> files;
    std::vector<directory_ptr> directories;
  };
  home_sync what_to_sync();
  int sync_held(home_sync const& what);
  mounts mounts_of(home_sync const& what) const;
  mount_ptr mount_of(held_inode const& i) const;
  static int sync_inode(held_inode const& i, mount_ptr const& on);
  void leave_behind(file_ptr const& f, directory_ptr const& in);
  void free_orphans();

  // service_files.cc: files and directories
  void on_file(request const& r);
  void pass(request const& r);
  void on_directory(request const& r);
  void on_sync_all(request const& r);
  file_ptr hold(request const& r, found& now);
  bool open_shown(request const& r, held_file& f, found& now);
  bool open_beside_last(request const& r, held_file& f, found& now);
  descriptor open_directory(std::string const& path, held_file const& f);
  directory_ptr hold_directory(std::string const& path, held_file const& f,
                               std::string const& name);
  void act(file_ptr const& f, request const& r, found now);
  bool see(held_file& f, found& now);
  void look(held_file& f, request const& r, found& now);
  std::uint64_t flags_of(held_inode const& i);
  bool nobody_syncs_alone() const;
  bool is_foreign(held_file& f, found& now);
  static page_ranges known_pages(held_file const& f, found const& now);
  bool may_look_later(held_file const& f, found const& now) const;
  void await(file_ptr const& f, request const& r, found& now, std::vector<place> places);
  void go_on(file_ptr const& f);
  void settle(file_ptr const& f, found const& now);
  std::vector<place> const& places_of(held_inode const& i);
  void raise_logged(held_inode const& i, area& asked, bool& good);
  void take(held_inode const& i, noted& to);
  void make_room(request const& r);
  void drop(file_ptr const& f);
  void watch(held_inode const& i);
  bool is_watched(held_inode const& i);
  void learn(held_file const& f, request const& r, found const& now);
  void rest();
  using files = std::vector<file_ptr>;
  files removed_from(directory_ptr const& d) const;
  files gone_among(file_key& behind, std::size_t count) const;
  void sweep_some();
  void tidy_up();
  void tell_whether_resting();
  bool tell_removed(files gone, files const& surely);
  void let_go(files removed);
  void let_go_of_replaced(held_file const& f, directory_ptr const& in);
  void finish(file_ptr const& f, request const& r);
  void answer_closed();
  void name_synced(directory_ptr const& d, request const& r, bool heals, files const& surely);
  void forget_name(held_file& f);

  // service_log.cc: what is written
  bool write_log(file_ptr const& f, request const& r, found& now, way how);
  bool write_pages(held_file& f, found const& now, std::uint64_t& lsn);
  bool is_free_before(std::string const& name, std::uint64_t born_ns) const;
  bool name_first(held_file& f, request const& r, found const& now, directory_ptr& unknown,
                  std::uint64_t& lsn);
  int put(record const& r, std::uint64_t& lsn);
  void sync_home(file_ptr const& f, request const& r, found const& now,
                 directory_ptr const& with = {});
  void ask_again();
  void synced(file_ptr const& f, request const& r, found const& now, std::uint64_t below,
              int error);
  void revoke(file_ptr const& f, request const& r, std::uint64_t below, bool heals);
  void heal(std::shared_ptr<held_inode> const& i, std::function<void()> then);

  std::atomic<int> home_error_ = 0;
  std::map<std::uint64_t, mount_ptr> mounts_;                 // by device
  std::map<std::uint64_t, std::uint64_t> of_users_until_ns_;  // the same: mounted by users
  tell_file on_hold_;
  std::function<void()> on_let_go_;
  service_rules const keep_;
  uid_t const user_ = geteuid();
  writer log_;
  superblock super_;
  std::uint64_t incarnation_;
  std::uint64_t const began_ns_;
  std::vector<std::unique_ptr<area>> areas_, retired_;
  std::uint64_t areas_are_ = 1;  // another version with each that comes or goes
  std::mutex areas_mutex_;       // of areas_: whoever changes it, and threads that are not the loop
  std::map<file_key, file_ptr> files_;
  std::size_t look_again_at_ = 0;  // so many files, when room for them was made last
  file_key swept_to_ = {};
  std::map<file_key, directory_ptr> directories_;
  std::string last_path_;  // of last_directory_, when it was opened
  directory_ptr last_directory_;
  std::map<std::pair<file_key, std::string>, held_file*> names_;
  std::vector<request> asked_;
  std::vector<std::byte> read_;                // scratch: of a file, on its way into the journal
  std::vector<std::function<void()>> parked_;  // until there is room
  std::vector<request> sync_all_;              // until the checkpoint after next
  std::vector<std::pair<std::weak_ptr<held_file>, request>> closing_;  // until that is closed
  bool is_ending_ = false, is_log_left_ = false;
  log_place log_place_;
  std::uint64_t head_ = 0, content_lsn_ = 0, unlinked_lsn_ = 0;  // the last such record's
  std::uint64_t unheld_lsn_ = 0;    // up to there are records of what is held no more
  std::vector<file_ptr> orphans_;   // removed, and live
  std::vector<file_ptr> replaced_;  // removed, and to be closed
  std::map<directory_ptr, std::uint64_t> left_in_;  // others of those: where from, up to there
  std::uint64_t now_ns_ = 0, beaten_ns_ = 0, noted_ns_ = 0, swept_ns_ = 0, tidied_ns_ = 0;
  std::uint64_t checkpoint_ns_ = 0;
  std::uint64_t rests_after_ns_, asked_ns_ = 0;
  std::uint64_t woken_ns_ = 0;  // CLOCK_REALTIME; 0: nobody has rested yet
  bool is_resting_ = false;
  std::uint64_t asked_again_ns_ = 0;
  service_counts counts_;
  told told_;
  notices notices_;

  mailbox mail_;
  bool is_checkpointing_ = false;
  bool wants_another_ = false;
  bool is_syncing_ = false;  // of a checkpoint: its last step
  // A checkpoint: pages are written home in passes, then what is left is synced. A tidying writes
  // the pages of files that have them in too many ranges, and nothing else.
  bool is_tidying_ = false;
  unsigned passes_ = 0;
  std::vector<written_home> leaving_;
  home_writer home_writer_;

  // Threads, last: they end first.
  late_looks looks_;
  commits commits_;
  thread_pool pool_;  // whose checkpoint asks commits_
};

}  // namespace sluice::journal
