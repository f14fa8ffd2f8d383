// SPDX-License-Identifier: Apache-2.0
// Lustre's counters only grow; a trace is the difference of two snapshots, spread over the time
// between them. A file holds one snapshot or many. The forms (5.2 of the operations manual, and
// what servers since 2.15 print):
//   mdt.scratch-MDT0000.md_stats=                  (left out by lctl get_param -n)
//   snapshot_time             1322494486.123456 secs.usecs
//   open                      2049 samples [usecs] 39 1239 191256 27343170
//   job_stats:
//   - job_id:          dd.4854
//     snapshot_time:   1322494486
//     open:            { samples:           1, unit:  reqs }
// What stays true: the first snapshot of a counter counts nothing; one that went back was reset,
// and counts from zero.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/error.h"
#include "commands/trace/events.h"

namespace sluice::trace {

namespace {

constexpr std::size_t most_series = 1u << 20;
constexpr double jitter = 0.1;  // of an interval: what a snapshot may be late

/// One counter of one server and job, as it was seen last.
struct series {
  double when_s = 0, value = 0;
};

/// When a server was looked at: the latest time of this snapshot and of the one before. 0: none.
struct look {
  double before_s = 0, now_s = 0;
};

struct difference {
  double from_s, to_s;
  std::string job, mdt;
  unsigned op;
  double amount;
};

/// The value after `key:` within { }, up to the comma.
std::string_view field(std::string_view braces, std::string_view key) {
  for (std::size_t at = 0; (at = braces.find(key, at)) != braces.npos; at += key.size()) {
    bool const begins =
        at == 0 || braces[at - 1] == ' ' || braces[at - 1] == ',' || braces[at - 1] == '{';
    std::string_view rest = braces.substr(at + key.size());
    if (!begins || !rest.starts_with(':')) continue;
    rest.remove_prefix(1);
    return trimmed(rest.substr(0, rest.find_first_of(",}")));
  }
  return {};
}

class lustre_reader {
 public:
  explicit lustre_reader(convert_options const& options) : options_(options) {}

  void read(std::string const& path) {
    input from(path);
    lines text(from.stream(), from.name());
    text_ = &text;
    sources_ += (sources_.empty() ? "" : ", ") + job_of_file(from.name());
    mdt_.clear();
    job_.clear();
    when_s_ = 0;
    in_jobs_ = false;
    for (std::string_view line; text.next(line);) take_line(line);
    text_ = nullptr;
    if (!text.is_whole()) text.fail("the last line does not end: the file was cut");
  }

  trace take();

 private:
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> form, Args&&... args) const {
    text_->fail(fmt::format(form, std::forward<Args>(args)...));
  }

  void take_line(std::string_view line) {
    std::string_view text = trimmed(line);
    if (text.empty() || text.starts_with('#') || text == "---") return;
    auto const equals = text.find("stats=");
    if (equals != text.npos) {
      new_source(text.substr(0, equals));
      text = trimmed(text.substr(equals + 6));
      if (text.empty()) return;
    }
    if (text == "job_stats:" || text == "job_stats: []") {
      in_jobs_ = true;
      job_.clear();
      begin_look(0);
    } else if (text.starts_with("- job_id:")) {
      in_jobs_ = true;
      when_s_ = 0;
      name_job(trimmed(text.substr(9)));
    } else if (in_jobs_) {
      job_line(text);
    } else {
      md_line(text);
    }
  }

  /// mdt.scratch-MDT0000.md_
  void new_source(std::string_view name) {
    name.remove_prefix(std::min(name.find('.') + 1, name.size()));
    name = name.substr(0, name.find('.'));
    if (char const* why = refuse_name(name)) fail("the server {} {}", shown(name), why);
    mdt_ = name;
    when_s_ = 0;
    in_jobs_ = false;
    job_.clear();
  }

  void name_job(std::string_view name) {
    if (name.size() >= 2 && name.front() == '"' && name.back() == '"')
      name = name.substr(1, name.size() - 2);
    if (name.empty()) fail("the job has no name: the line was cut");
    if (char const* why = refuse_name(name)) fail("the job {} {}", shown(name), why);
    job_ = name;
  }

  /// `open 2049 samples [usecs] 39 1239 191256 27343170`
  void md_line(std::string_view text) {
    auto const words = words_of(text, text.size());
    if (words[0] == "snapshot_time") return set_time(words.size() > 1 ? words[1] : "");
    if (words[0] == "start_time" || words[0] == "elapsed_time") return;
    bool const good = words.size() > 3 && words[2] == "samples" && words[3].starts_with('[');
    bool const bytes = good && words[3] == "[bytes]";
    if (good && (!bytes || words.size() > 6))
      take_counter(words[0], words[1], bytes ? words[6] : "");
    else
      fail("{}: no line of md_stats or job_stats; was it cut?", shown(text));
  }

  /// `open: { samples: 1, unit: reqs }`
  void job_line(std::string_view text) {
    auto const colon = text.find(':');
    if (colon == text.npos) fail("{}: no line of job_stats; was it cut?", shown(text));
    std::string_view const name = text.substr(0, colon);
    std::string_view const value = trimmed(text.substr(colon + 1));
    if (name == "snapshot_time") return set_time(value.substr(0, value.find(' ')));
    if (name == "start_time" || name == "elapsed_time" || name == "hist") return;
    if (!value.starts_with('{') || !value.ends_with('}'))
      fail("{}: the braces do not close; was the line cut?", name);
    bool const bytes = field(value, "unit") == "bytes";
    take_counter(name, field(value, "samples"), bytes ? field(value, "sum") : "");
  }

  void set_time(std::string_view text) {
    double when = 0;
    if (!to_number(text, when) || when <= 0 || when > 1e11)
      fail("snapshot_time is {}; it is seconds since 1970", shown(text));
    auto& server = looks_[mdt_];
    if (!in_jobs_) begin_look(when);
    auto& latest = latest_s_[{mdt_, job_}];
    if (when < latest)
      fail("snapshot_time {:.3f} after {:.3f}: out of order; give the files in order of time", when,
           latest);
    latest = when_s_ = when;
    server.now_s = std::max(server.now_s, when);
  }

  /// Each md_stats begins with its time; without names of servers several would look like one.
  void begin_look(double when) {
    auto& server = looks_[mdt_];
    if (!in_jobs_ && server.now_s != 0 && std::abs(when - server.now_s) < 0.2)
      fail("two snapshots of {} within 0.2 s: of several servers? run lctl get_param without -n",
           mdt_.empty() ? "one server" : mdt_);
    server.before_s = server.now_s;
  }

  double number(std::string_view name, std::string_view text) const {
    double value = 0;
    if (!to_number(text, value)) fail("{}: the count is {}; was the line cut?", name, shown(text));
    if (value < 0) fail("{} is {}: a counter is never negative", name, text);
    if (value > most_count) fail("{} is {}: more than {:g}", name, text, most_count);
    return value;
  }

  void take_counter(std::string_view name, std::string_view samples, std::string_view sum) {
    if (when_s_ == 0) fail("{} before any snapshot_time; was the beginning cut?", shown(name));
    double const count = number(name, samples);
    bool const of_bytes = name == "read_bytes" || name == "write_bytes";
    auto const op = find_op(name);
    // `rename` has these already; calls that read or write are told by their bytes
    if (!op || (op_table[*op].counts_bytes() && !of_bytes)) {
      if (name.size() < 40 && skipped_.size() < 100) skipped_.emplace(name);
      return;
    }
    add(*op, of_bytes ? number(name, sum) : count);
  }

  void add(unsigned op, double value) {
    auto const key = std::make_tuple(mdt_, job_, op);
    double const before_s = looks_[mdt_].before_s;
    auto found = series_.find(key);
    if (found == series_.end()) {
      if (series_.size() == most_series) fail("more than {} counters", most_series);
      // New since the look before, or the first look of all.
      series const born = before_s != 0 ? series{before_s, 0} : series{when_s_, value};
      found = series_.emplace(key, born).first;
    }
    auto& last = found->second;
    bool const reset = value < last.value;
    resets_ += reset;
    double const amount = reset ? value : value - last.value;
    // A job's own time stands still while it does nothing.
    double const from = std::max(last.when_s, std::min(before_s, when_s_));
    last = {when_s_, value};
    if (amount > 0 && differences_.size() == most_cells)
      fail("too many differences; split the files");
    if (amount > 0 || when_s_ > from)
      differences_.push_back({from, when_s_, options_.jobs_by == "job" ? job_ : "",
                              options_.jobs_by == "mdt" ? mdt_ : "", op, amount});
  }

  double typical_interval() const {
    std::vector<double> lengths;
    for (auto const& d : differences_)
      if (d.to_s > d.from_s) lengths.push_back(d.to_s - d.from_s);
    if (lengths.empty()) return 0;
    auto const middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
    std::nth_element(lengths.begin(), middle, lengths.end());
    return std::max(1.0, std::round(*middle));
  }

  convert_options const& options_;
  lines const* text_ = nullptr;
  std::string mdt_, job_, sources_;
  bool in_jobs_ = false;
  double when_s_ = 0;  // of the snapshot that is being read; 0: not told yet
  std::map<std::pair<std::string, std::string>, double> latest_s_;  // by server and job
  std::map<std::string, look> looks_;                               // by server
  std::map<std::tuple<std::string, std::string, unsigned>, series> series_;
  std::vector<difference> differences_;
  std::set<std::string> skipped_;
  unsigned long resets_ = 0;
};

/// Differences as long as the interval keep whole numbers: snapshots that are a little late are
/// moved to their place. Others are spread.
trace lustre_reader::take() {
  if (differences_.empty())
    throw usage_error(
        fmt::format("{}: one snapshot only; two or more are needed to see a difference", sources_));
  double const interval_s = options_.interval_s > 0 ? options_.interval_s : typical_interval();
  timeline line(interval_s > 0 ? interval_s : 1, options_.intervals_max);
  double first_s = differences_[0].from_s;
  for (auto const& d : differences_) first_s = std::min(first_s, d.from_s);
  for (auto const& d : differences_) {
    std::string const& name = !d.job.empty() ? d.job : !d.mdt.empty() ? d.mdt : options_.job;
    double from = d.from_s - first_s, to = d.to_s - first_s;
    double const place = std::round(from / interval_s) * interval_s;
    bool const fits = std::abs(to - from - interval_s) <= jitter * interval_s &&
                      std::abs(from - place) <= jitter * interval_s;
    if (fits) from = to = place;
    if (char const* why = line.over(from, to, name, d.op, d.amount)) throw usage_error(why);
  }
  trace t = line.take(false);
  t.start_unix_s = first_s;
  t.facts.emplace_back("provenance", "counters of Lustre, converted by sluice trace convert from " +
                                         sources_.substr(0, 300));
  t.facts.emplace_back("synthetic", "no");
  if (!skipped_.empty())
    t.facts.emplace_back("note", fmt::format("not counted: {}", fmt::join(skipped_, " ")));
  if (resets_ != 0)
    t.facts.emplace_back("note", fmt::format("{} counters went back (a restart, or cleared): they "
                                             "were taken to have begun at 0",
                                             resets_));
  return t;
}

}  // namespace

trace from_lustre(files const& from, convert_options const& options) {
  lustre_reader reader(options);
  for (auto const& path : from) reader.read(path);
  return reader.take();
}

}  // namespace sluice::trace
