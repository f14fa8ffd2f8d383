// SPDX-License-Identifier: Apache-2.0
// One thread that makes the journal durable and answers the requests: while it waits for the disk
// the loop reads and appends the next ones, so one flush serves all that came meanwhile. What stays
// true: 0 is answered only after the flush, and only if by then no program has synced that inode
// without us, and nobody has written it where we do not see or did not note it.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "journal/area.h"
#include "journal/late_looks.h"
#include "journal/pacing.h"
#include "journal/thread_pool.h"
#include "journal/writer.h"

namespace sluice::journal {

struct awaited {
  std::uint64_t lsn = 0;
  request asked = {};                  // answered by the thread when `from` is set
  std::vector<place> places = {};      // where native or bypass forbids a 0
  std::function<void(int)> then = {};  // in the loop, with commit's result
  late_looks::look_ptr look = {};      // of its file, where that was left for now
  std::function<void()> anew = {};     // in the loop, not answered: the look has found something
};

class commits {
 public:
  commits(writer& log, mailbox& to, late_looks& looks);
  ~commits();
  commits(commits const&) = delete;
  commits& operator=(commits const&) = delete;

  void push(awaited a);
  /// `then`: in the loop, with commit's result; none: nobody waits for it.
  void push(std::uint64_t lsn, std::function<void(int)> then = {});
  bool is_idle() const;
  /// What a batch takes, smoothed.
  std::uint64_t batch_ns() const;

 private:
  using lock = std::unique_lock<std::mutex>;
  void serve();
  void gather(lock& held);
  void finish(awaited& a, int failed);

  writer& log_;
  mailbox& to_;
  late_looks& looks_;
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<awaited> queue_;
  bool is_over_ = false, is_busy_ = false;
  std::size_t enough_ = 1;  // so many in the queue wake the thread
  gathering gathering_;
  std::thread thread_;
};

}  // namespace sluice::journal
