// SPDX-License-Identifier: Apache-2.0
#include "commands/report/result.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "commands/report/place.h"

namespace sluice::report {

namespace {

using nlohmann::json;

constexpr double ns_per_s = 1e9;
constexpr std::size_t most_rows = 100'000;
constexpr std::size_t most_intervals = 1'000'000;

/// Takes values out of the tree, and knows where it is when one is wrong.
class taker {
 public:
  taker(std::string_view text, std::string const& name) : text_(text), name_(name) {}

  [[noreturn]] void fail(std::string const& what) const {
    std::string const where = path_text(path_);
    throw usage_error(fmt::format("{}:{}: {}{}{}", name_, std::max<std::size_t>(1, line()), where,
                                  where.empty() ? "" : ": ", what));
  }

  /// Calls `take(value)` if the key is there and not null.
  template <typename F>
  void with(json const& object, char const* key, F const& take) {
    auto const at = object.find(key);
    if (at == object.end() || at->is_null()) return;
    path_.emplace_back(key);
    take(*at);
    path_.pop_back();
  }

  template <typename F>
  void each(json const& object, char const* key, F const& take) {
    with(object, key, [&](json const& rows) { items(rows, take); });
  }

  template <typename F>
  void items(json const& rows, F const& take) {
    if (!rows.is_array()) fail(fmt::format("wanted an array, there is {}", kind(rows)));
    if (rows.size() > most_rows) fail(fmt::format("more than {} rows", most_rows));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      path_.emplace_back(i);
      take(rows[i]);
      path_.pop_back();
    }
  }

  void object(json const& value) const {
    if (!value.is_object()) fail(fmt::format("wanted an object, there is {}", kind(value)));
  }
  std::string text(json const& value) const {
    if (!value.is_string()) fail(fmt::format("wanted a string, there is {}", kind(value)));
    return value.get<std::string>();
  }
  /// An amount: neither negative nor beyond what a double counts in.
  double amount(json const& value) const {
    if (!value.is_number()) fail(fmt::format("wanted a number, there is {}", kind(value)));
    double const number = value.get<double>();
    if (!std::isfinite(number) || number < 0 || number > 1e300)
      fail(fmt::format("{} is no amount: wanted a number from 0 on", value.dump()));
    return number;
  }

  void text(json const& object, char const* key, std::string& out) {
    with(object, key, [&](json const& v) { out = text(v); });
  }
  void amount(json const& object, char const* key, double& out, double unit = 1) {
    with(object, key, [&](json const& v) { out = amount(v) / unit; });
  }
  void need(json const& object, char const* key) const {
    if (!object.contains(key)) fail(fmt::format("\"{}\" is missing", key));
  }
  /// An index that is pushed only when something is wrong: there are millions of values.
  [[noreturn]] void fail_at(std::size_t index, std::string const& what) {
    path_.emplace_back(index);
    fail(what);
  }

  static char const* kind(json const& value) {
    switch (value.type()) {
      case json::value_t::null:
        return "null";
      case json::value_t::object:
        return "an object";
      case json::value_t::array:
        return "an array";
      case json::value_t::string:
        return "a string";
      case json::value_t::boolean:
        return "true or false";
      default:
        return "a number";
    }
  }

 private:
  std::size_t line() const { return line_of(text_, path_); }

  std::string_view text_;
  std::string const& name_;
  json_path path_;
};

void take_head(taker& t, json const& top, result& out) {
  t.need(top, "version");
  t.with(top, "version", [&](json const& v) {
    if (t.amount(v) != format_version)
      t.fail(fmt::format("{}: this sluice reads version {}", v.dump(), format_version));
  });
  t.text(top, "kind", out.kind);
  static constexpr std::string_view kinds[] = {"run", "replay", "simulation", "history"};
  if (std::find(std::begin(kinds), std::end(kinds), out.kind) == std::end(kinds))
    t.with(top, "kind", [&](json const&) {
      t.fail(fmt::format("\"{}\" is no kind of result; there are run, replay, simulation, history",
                         out.kind));
    });
  t.text(top, "job", out.job);
  t.each(top, "command", [&](json const& v) { out.command.push_back(t.text(v)); });
  t.amount(top, "elapsed_s", out.elapsed_s);
  t.with(top, "exit", [&](json const& v) {
    t.object(v);
    double code = -1, signal = -1;
    t.amount(v, "code", code);
    t.amount(v, "signal", signal);
    if (code >= 0) out.exit_code = static_cast<int>(std::min(code, 255.0));
    if (signal >= 0) out.exit_signal = static_cast<int>(std::min(signal, 255.0));
  });
  t.with(top, "processes", [&](json const& v) {
    t.object(v);
    t.amount(v, "attached", out.processes);
  });
}

void take_sums(taker& t, json const& top, result& out) {
  t.each(top, "channels", [&](json const& v) {
    t.object(v);
    channel_sum c;
    t.text(v, "name", c.name);
    t.text(v, "unit", c.unit);
    t.text(v, "target", c.target);
    t.amount(v, "rate_per_s", c.rate_per_s);
    t.amount(v, "calls", c.calls);
    t.amount(v, "amount", c.amount);
    t.amount(v, "delayed", c.delayed);
    t.amount(v, "waited_ns", c.waited_s, ns_per_s);
    t.amount(v, "wait_p50_ns", c.wait_p50_s, ns_per_s);
    t.amount(v, "wait_p99_ns", c.wait_p99_s, ns_per_s);
    t.amount(v, "wait_max_ns", c.wait_max_s, ns_per_s);
    t.with(v, "would", [&](json const& would) {
      t.object(would);
      c.is_only_counted = true;
      t.amount(would, "delayed", c.would_delay);
      t.amount(would, "waited_ns", c.would_wait_s, ns_per_s);
    });
    out.channels.push_back(std::move(c));
  });
  t.each(top, "calls", [&](json const& v) {
    t.object(v);
    call_sum c;
    t.text(v, "call", c.call);
    t.text(v, "op", c.op);
    t.text(v, "class", c.cls);
    t.amount(v, "calls", c.calls);
    t.amount(v, "errors", c.errors);
    t.amount(v, "bytes", c.bytes);
    t.amount(v, "delayed", c.delayed);
    t.amount(v, "waited_ns", c.waited_s, ns_per_s);
    out.calls.push_back(std::move(c));
  });
  t.each(top, "paths", [&](json const& v) {
    t.object(v);
    path_sum p;
    t.text(v, "path", p.path);
    t.amount(v, "calls", p.calls);
    t.amount(v, "over", p.over);
    t.amount(v, "bytes", p.bytes);
    t.amount(v, "waited_ns", p.waited_s, ns_per_s);
    t.amount(v, "took_ns", p.took_s, ns_per_s);
    out.paths.push_back(std::move(p));
  });
  t.each(top, "passthrough", [&](json const& v) {
    t.object(v);
    std::pair<std::string, double> p;
    t.text(v, "reason", p.first);
    t.amount(v, "calls", p.second);
    out.passthrough.push_back(std::move(p));
  });
}

void take_small(taker& t, json const& top, result& out) {
  t.with(top, "hints", [&](json const& v) {
    t.object(v);
    hint_sum& h = out.hints.emplace();
#define HINT(name) t.amount(v, #name, h.name);
#include "small.def"
    t.text(v, "why_none", h.why_none);
  });
  t.with(top, "gathered", [&](json const& v) {
    t.object(v);
    gathered_sum& g = out.gathered.emplace();
#define GATHER(name) t.amount(v, #name, g.name);
#include "small.def"
    t.text(v, "why_none", g.why_none);
  });
  t.with(top, "buffered", [&](json const& v) {
    t.object(v);
    buffered_sum& b = out.buffered.emplace();
#define BUFFER(name) t.amount(v, #name, b.name);
#include "small.def"
    t.text(v, "why_none", b.why_none);
  });
}

void take_roles(taker& t, json const& top, result& out) {
  t.each(top, "roles", [&](json const& v) {
    t.object(v);
    role_sum r;
    t.text(v, "role", r.role);
    t.amount(v, "calls", r.calls);
    t.amount(v, "read_bytes", r.read);
    t.amount(v, "written_bytes", r.written);
    t.amount(v, "delayed", r.delayed);
    t.amount(v, "waited_ns", r.waited_s, ns_per_s);
    t.each(v, "sources", [&](json const& s) {
      t.object(s);
      auto& [source, bytes] = r.sources.emplace_back();
      t.text(s, "source", source);
      t.amount(s, "bytes", bytes);
    });
    out.roles.push_back(std::move(r));
  });
}

/// By a sample. Reports had it as `calls` before.
constexpr char const* estimate = "estimated_calls";

void take_times(taker& t, json const& top, result& out) {
  t.each(top, "times", [&](json const& v) {
    t.object(v);
    time_sum s;
    t.text(v, "target", s.target);
    t.text(v, "op", s.op);
    t.amount(v, v.contains(estimate) ? estimate : "calls", s.calls);
    t.amount(v, "samples", s.samples);
    t.amount(v, "took_ns", s.took_s, ns_per_s);
    t.amount(v, "took_p50_ns", s.took_p50_s, ns_per_s);
    t.amount(v, "took_p99_ns", s.took_p99_s, ns_per_s);
    t.amount(v, "took_max_ns", s.took_max_s, ns_per_s);
    out.times.push_back(std::move(s));
  });
  t.each(top, "sizes", [&](json const& v) {
    t.object(v);
    size_sum s;
    t.text(v, "target", s.target);
    t.text(v, "op", s.op);
    t.each(v, "steps", [&](json const& step) {
      t.object(step);
      auto& [below, calls] = s.steps.emplace_back();
      t.amount(step, "below", below);
      t.amount(step, step.contains(estimate) ? estimate : "calls", calls);
    });
    out.sizes.push_back(std::move(s));
  });
}

void take_values(taker& t, json const& values, std::vector<double>& out) {
  if (!values.is_array()) t.fail(fmt::format("wanted an array, there is {}", taker::kind(values)));
  if (values.size() > most_intervals) t.fail(fmt::format("more than {} intervals", most_intervals));
  out.reserve(values.size());
  for (json const& v : values) {
    if (v.is_null()) {
      out.push_back(unknown);
      continue;
    }
    double const number = v.is_number() ? v.get<double>() : -1;
    if (!(number >= 0 && number <= 1e300))
      t.fail_at(out.size(),
                v.is_number()
                    ? fmt::format("{} is no amount: wanted a number from 0 on", v.dump())
                    : fmt::format("wanted a number or null, there is {}", taker::kind(v)));
    out.push_back(number);
  }
}

series take_series(taker& t, json const& v) {
  t.object(v);
  series row;
  t.text(v, "job", row.job);
  static constexpr std::pair<char const*, subject> subjects[] = {
      {"op", subject::op}, {"supply", subject::supply}, {"channel", subject::channel}};
  for (auto const& one : subjects)
    t.with(v, one.first, [&](json const& name) {
      if (row.about != subject::job) t.fail("a row has one of op, supply, channel");
      row.about = one.second;
      row.name = t.text(name);
    });
  t.need(v, "what");
  t.text(v, "what", row.what);
  t.text(v, "unit", row.unit);
  t.need(v, "values");
  t.with(v, "values", [&](json const& values) { take_values(t, values, row.values); });
  return row;
}

void take_timeline(taker& t, json const& v, timeline& out) {
  t.object(v);
  t.with(v, "start_unix_s", [&](json const& s) { out.start_unix_s = t.amount(s); });
  t.amount(v, "interval_s", out.interval_s);
  if (!(out.interval_s >= 1e-6 && out.interval_s <= 1e9))
    t.fail(fmt::format("interval_s {} is no length of time", out.interval_s));
  std::size_t total = 0;
  t.each(v, "rows", [&](json const& row) {
    out.rows.push_back(take_series(t, row));
    out.intervals = std::max(out.intervals, out.rows.back().values.size());
    total += out.rows.back().values.size();
    if (total > most_values) t.fail(fmt::format("more than {} values in all", most_values));
  });
}

void take_rest(taker& t, json const& top, result& out) {
  t.with(top, "timeline", [&](json const& v) { take_timeline(t, v, out.time); });
  t.each(top, "jobs", [&](json const& v) {
    t.object(v);
    job_row j;
    t.text(v, "job", j.job);
    t.text(v, "class", j.qos_class);
    t.text(v, "user", j.user);
    t.amount(v, "started_s", j.started_s);
    t.amount(v, "ended_s", j.ended_s);
    t.with(v, "finished", [&](json const& b) {
      if (!b.is_boolean()) t.fail(fmt::format("wanted true or false, there is {}", t.kind(b)));
      j.finished = b.get<bool>();
    });
    out.jobs.push_back(std::move(j));
  });
  t.each(top, "rules", [&](json const& v) {
    t.object(v);
    rule_row r;
    t.text(v, "channel", r.channel);
    t.text(v, "text", r.text);
    t.text(v, "file", r.file);
    t.text(v, "unit", r.unit);
    t.amount(v, "line", r.line);
    t.amount(v, "rate_per_s", r.rate_per_s);
    out.rules.push_back(std::move(r));
  });
  t.each(top, "facts", [&](json const& v) {
    std::vector<std::string> pair;
    t.items(v, [&](json const& word) { pair.push_back(t.text(word)); });
    if (pair.size() != 2) t.fail("a fact is a pair: what, value");
    out.facts.emplace_back(std::move(pair[0]), std::move(pair[1]));
  });
}

struct file_closer {
  void operator()(std::FILE* f) const {
    if (f != stdin) std::fclose(f);
  }
};

std::string read_text(std::string const& path) {
  std::unique_ptr<std::FILE, file_closer> const f(path == "-" ? stdin
                                                              : std::fopen(path.c_str(), "re"));
  if (!f) throw usage_error(fmt::format("{}: {}", path, std::strerror(errno)));
  std::string text;
  char part[1 << 16];
  for (std::size_t got = 1; got > 0;) {
    got = std::fread(part, 1, sizeof part, f.get());
    text.append(part, got);
    if (text.size() > most_bytes)
      throw usage_error(fmt::format("{}: longer than {} MiB", path, most_bytes >> 20));
  }
  if (std::ferror(f.get())) throw usage_error(fmt::format("{}: {}", path, std::strerror(errno)));
  return text;
}

}  // namespace

result parse_result(std::string_view text, std::string const& name) {
  if (text.empty()) throw usage_error(name + ":1: the file is empty");
  json const top = json::parse(text.begin(), text.end(), nullptr, false);
  if (top.is_discarded()) {
    syntax_error const e = find_syntax_error(text);
    throw usage_error(fmt::format("{}:{}:{}: not JSON: {}", name, e.line, e.column, e.what));
  }
  taker t(text, name);
  if (!top.is_object())
    t.fail(fmt::format("not a result of sluice: wanted an object, there is {}", taker::kind(top)));
  result out;
  out.file = name;
  take_head(t, top, out);
  take_sums(t, top, out);
  take_small(t, top, out);
  take_roles(t, top, out);
  take_times(t, top, out);
  take_rest(t, top, out);
  return out;
}

result read_result(std::string const& path) {
  return parse_result(read_text(path), path == "-" ? "standard input" : path);
}

}  // namespace sluice::report
