// SPDX-License-Identifier: Apache-2.0
#include "commands/replay/job_processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/on_stderr.h"
#include "base/program.h"

namespace sluice::replay {

namespace {

constexpr std::int64_t patience_ns = 2'000'000'000;  // a call that is under way may end
constexpr std::size_t fds_first = 64;                // open before the first close
constexpr std::size_t fds_most = 1024;

/// Descriptors a pool may hold besides those of the threads.
std::size_t room_for_fds(std::size_t threads) {
  rlimit most = {};
  getrlimit(RLIMIT_NOFILE, &most);
  most.rlim_cur = most.rlim_max;
  setrlimit(RLIMIT_NOFILE, &most);
  std::size_t const kept = 64 + 4 * threads;
  return most.rlim_cur > kept + 2 ? std::min<std::size_t>(fds_most, most.rlim_cur - kept) : 2;
}

void open_some(work_place& place, std::size_t most) {
  std::string file;
  for (std::size_t i = 0; i < std::min(fds_first, most / 2); ++i) {
    file_name(place.leaves, i % place.where.shape.files, file);
    int const fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    place.fds.put(fd);
  }
}

/// Until all threads have ended, or the one who started us is gone.
void watch(shared_counters& book, std::vector<unsigned> const& workers, int pipe_fd) {
  auto ended = [&](unsigned w) { return book.worker(w).ended.load(std::memory_order_acquire); };
  while (!std::all_of(workers.begin(), workers.end(), ended)) {
    pollfd at = {pipe_fd, 0, 0};
    if (poll(&at, 1, 20) > 0) {
      book.head().stop.store(true);
      sleep_until(steady_ns() + 20'000'000);
    }
  }
}

int run_process(options const& o, plan const& p, shared_counters& book, unsigned job,
                unsigned process, int pipe_fd) {
  process_page& page = book.process(job * p.processes + process);
  page.pid.store(getpid());
  std::vector<unsigned> mine;
  for (unsigned w = 0; w < p.workers.size(); ++w)
    if (p.workers[w].job == job && p.workers[w].process == process) mine.push_back(w);
  counters_head const& head = book.head();
  working_in const there(open_own(head.root, head.root_device, head.root_inode).get());
  names const where{o.tree};
  std::size_t const room = room_for_fds(mine.size());
  work_place place(where, job, room);
  place.read_bytes = o.plan.read_bytes;
  place.write_bytes = o.plan.write_bytes;
  place.opens_create = p.has(job, core::op::unlink);
  if (p.has(job, core::op::close)) open_some(place, room);
  {
    std::vector<std::jthread> threads;
    for (unsigned const w : mine)
      threads.emplace_back([&, w] { sender(p, w, book, place, o.sending).run(); });
    watch(book, mine, pipe_fd);
  }
  page.ended.store(true, std::memory_order_release);
  return 0;
}

std::string own_path() {
  char path[4096];
  ssize_t const n = readlink("/proc/self/exe", path, sizeof path);
  return n > 0 ? std::string(path, static_cast<std::size_t>(n)) : "sluice-replay";
}

[[noreturn]] void become_wrapped(options const& o, std::string const& job, joined const& j) {
  std::vector<std::string> words = wrap_words(o.wrap, job, o.class_of(job));
  words.push_back(own_path());
  words.insert(words.end(), o.argv.begin() + 1, o.argv.end());
  words.push_back(fmt::format("--joined={}:{}:{}:{}", j.trace_fd, j.counters_fd, j.pipe_fd, j.job));
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  on_stderr("sluice: cannot execute {}: {}\n", words[0], std::strerror(errno));
  _exit(exit_missing);
}

/// The terminal and the one who started us tell the first process; it tells us.
void ignore_signals() {
  for (int const s : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) std::signal(s, SIG_IGN);
}

}  // namespace

std::vector<std::string> split_words(std::string const& text) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char const c = text[i];
    if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      word += text[++i];
      in_word = true;
    } else if (quote != 0) {
      if (c == quote)
        quote = 0;
      else
        word += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
      in_word = true;
    } else if (c == ' ' || c == '\t' || c == '\n') {
      if (in_word) words.push_back(std::move(word));
      word.clear();
      in_word = false;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (quote != 0) throw usage_error(fmt::format("--wrap: a quote {} is not closed", quote));
  if (in_word) words.push_back(std::move(word));
  return words;
}

std::vector<std::string> wrap_words(std::string const& wrap, std::string const& job,
                                    std::string const& qos_class) {
  std::vector<std::string> words = split_words(wrap);
  for (auto& word : words)
    for (auto const& [key, value] :
         {std::pair<std::string, std::string>{"{job}", job}, {"{class}", qos_class}})
      for (auto at = word.find(key); at != word.npos; at = word.find(key, at + value.size()))
        word.replace(at, key.size(), value);
  return words;
}

int run_job(options const& o, plan const& p, shared_counters& book, unsigned job, int pipe_fd) {
  ignore_signals();
  if (p.processes == 1) return run_process(o, p, book, job, 0, pipe_fd);
  std::vector<pid_t> children;
  for (unsigned i = 0; i < p.processes; ++i) {
    pid_t const pid = fork();
    if (pid == 0)
      _exit(guarded("sluice", [&] { return run_process(o, p, book, job, i, pipe_fd); }));
    if (pid < 0) {
      on_stderr("sluice: cannot start a process: {}\n", std::strerror(errno));
      book.head().stop.store(true);
      break;
    }
    children.push_back(pid);
  }
  int worst = children.size() == p.processes ? 0 : exit_sluice;
  for (pid_t const pid : children) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) worst = exit_sluice;
  }
  return worst;
}

job_processes::job_processes(options const& o, plan const& p, shared_counters& book, int trace_fd)
    : book_(book) {
  int ends[2];
  if (pipe(ends) != 0) throw sluice_error("cannot make a pipe");
  pipe_fd_ = ends[1];
  std::fflush(nullptr);
  for (unsigned job = 0; job < p.jobs.size(); ++job) {
    pid_t const pid = fork();
    if (pid == 0) {
      close(pipe_fd_);
      ignore_signals();
      if (!o.wrap.empty()) become_wrapped(o, p.jobs[job], {trace_fd, book.fd(), ends[0], job});
      // What it throws ends here: the own directory is not for this process to remove.
      _exit(guarded("sluice", [&] { return run_job(o, p, book, job, ends[0]); }));
    }
    if (pid < 0) break;
    members_.push_back({pid, p.jobs[job], false});
  }
  close(ends[0]);
  if (members_.size() != p.jobs.size()) {
    int const why = errno;
    stop();
    throw sluice_error(fmt::format("cannot start a process: {}", std::strerror(why)));
  }
}

job_processes::~job_processes() {
  stop();
  if (pipe_fd_ >= 0) close(pipe_fd_);
}

std::string job_processes::look() {
  std::string why;
  for (member& m : members_) {
    int status = 0;
    if (m.gone || waitpid(m.pid, &status, WNOHANG) != m.pid) continue;
    m.gone = true;
    if (WIFSIGNALED(status))
      why = fmt::format("a process of {} was ended by signal {}", m.job, WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
      why = fmt::format("the processes of {} ended with status {}", m.job, WEXITSTATUS(status));
  }
  return why;
}

bool job_processes::is_gone() const {
  return std::all_of(members_.begin(), members_.end(), [](member const& m) { return m.gone; });
}

void job_processes::stop() {
  book_.head().stop.store(true);
  std::int64_t const until_ns = steady_ns() + patience_ns;
  while (!is_gone() && steady_ns() < until_ns) {
    look();
    if (!is_gone()) sleep_until(steady_ns() + 5'000'000);
  }
  if (is_gone()) return;
  for (unsigned i = 0; i < book_.shape().processes; ++i) {
    process_page& page = book_.process(i);
    if (int const pid = page.pid.load(); pid > 0 && !page.ended.load()) kill(pid, SIGKILL);
  }
  for (member& m : members_) {
    if (m.gone) continue;
    kill(m.pid, SIGKILL);
    while (waitpid(m.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    m.gone = true;
  }
}

}  // namespace sluice::replay
