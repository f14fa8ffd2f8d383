// SPDX-License-Identifier: Apache-2.0
// One JSON object per line and call, as the tracer behind the Frontera data set (Zenodo 17428437)
// writes them: systemcall, timestamp (ISO 8601), pid, tid, node, path or file_path, size,
// return_value. An export of Elasticsearch wraps each in `_source`.
#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <chrono>
#include <nlohmann/json.hpp>

#include "commands/trace/events.h"
#include "commands/trace/paths.h"

namespace sluice::trace {

namespace {

using json = nlohmann::json;

/// So many digits at `at`, which moves past them; -1: there are others.
int digits(std::string_view text, std::size_t& at, std::size_t count) {
  int value = 0;
  if (at + count > text.size()) return -1;
  auto const [end, why] = std::from_chars(text.data() + at, text.data() + at + count, value);
  if (why != std::errc() || end != text.data() + at + count || text[at] == '-') return -1;
  at += count;
  return value;
}

bool take(std::string_view text, std::size_t& at, std::string_view any_of) {
  if (at >= text.size() || any_of.find(text[at]) == any_of.npos) return false;
  ++at;
  return true;
}

/// 2023-10-17T12:34:56.123456, with Z, +01:00 or nothing (then UTC) at the end.
bool iso_seconds(std::string_view text, double& unix_s) {
  std::size_t at = 0;
  int part[6] = {};
  constexpr std::string_view before[] = {"", "-", "-", "T ", ":", ":"};
  for (int i = 0; i < 6; ++i) {
    if (i > 0 && !take(text, at, before[i])) return false;
    if ((part[i] = digits(text, at, i == 0 ? 4 : 2)) < 0) return false;
  }
  using namespace std::chrono;
  auto const day = year{part[0]} / month{static_cast<unsigned>(part[1])} /
                   std::chrono::day{static_cast<unsigned>(part[2])};
  if (!day.ok() || part[3] > 23 || part[4] > 59 || part[5] > 60) return false;
  double fraction = 0;
  if (take(text, at, ".,")) {
    for (double unit = 0.1; at < text.size() && std::isdigit(static_cast<unsigned char>(text[at]));
         unit /= 10)
      fraction += unit * (text[at++] - '0');
  }
  double zone_s = 0;
  if (!take(text, at, "Z") && at < text.size()) {
    double const sign = text[at] == '-' ? -1 : 1;
    if (!take(text, at, "+-")) return false;
    int const hours = digits(text, at, 2);
    take(text, at, ":");
    int const minutes = digits(text, at, 2);
    if (hours < 0 || minutes < 0) return false;
    zone_s = sign * (hours * 3600 + minutes * 60);
  }
  unix_s = static_cast<double>(sys_days(day).time_since_epoch().count()) * 86400 + part[3] * 3600 +
           part[4] * 60 + part[5] + fraction - zone_s;
  return at == text.size();
}

class jsonl_reader {
 public:
  explicit jsonl_reader(convert_options const& options)
      : options_(options), out_(options, "calls as JSON"), filter_(options.below) {}

  void read(std::string const& path) {
    input from(path);
    lines text(from.stream(), from.name());
    text_ = &text;
    out_.begin(text);
    for (std::string_view line; text.next(line);) {
      line = trimmed(line);
      if (line.ends_with(',')) line.remove_suffix(1);  // an array, one element a line
      if (!line.empty() && line != "[" && line != "]") take_line(line);
    }
    text_ = nullptr;
  }

  trace take() { return out_.take(true); }

 private:
  void take_line(std::string_view line) {
    json const value = json::parse(line, nullptr, false);
    if (value.is_discarded()) text_->fail("no JSON: the line was cut, or is of another format");
    if (!value.is_object()) text_->fail("no JSON object; each line is one call");
    auto const source = value.find("_source");
    take_call(source != value.end() && source->is_object() ? *source : value);
  }

  static json const* find(json const& call, std::initializer_list<char const*> names) {
    for (char const* name : names)
      if (auto const found = call.find(name); found != call.end() && !found->is_null())
        return &*found;
    return nullptr;
  }

  static std::string text(json const* value) {
    if (value == nullptr) return {};
    return value->is_string() ? value->get<std::string>() : value->dump();
  }

  /// A number, or a text that is one; -1: neither.
  static double number(json const* value) {
    double number = -1;
    if (value != nullptr && value->is_number()) number = value->get<double>();
    if (value != nullptr && value->is_string() &&
        !to_number(value->get_ref<std::string const&>(), number))
      number = -1;
    return number;
  }

  double time_of(json const& call) const {
    json const* const at = find(call, {"timestamp", "@timestamp", "time"});
    double when = 0;
    if (at == nullptr) text_->fail("the call has no timestamp");
    bool const good = at->is_number()   ? (when = at->get<double>(), true)
                      : at->is_string() ? iso_seconds(at->get_ref<std::string const&>(), when)
                                        : false;
    if (!good || !(when >= 0 && when < 1e11))
      text_->fail(
          fmt::format("timestamp {}: write 2023-10-17T12:34:56.123456, or seconds since 1970",
                      shown(text(at))));
    return when;
  }

  void take_call(json const& call) {
    json const* const name = find(call, {"systemcall", "syscall", "call"});
    if (name == nullptr || !name->is_string())
      text_->fail("the call has no name; it is called systemcall");
    double const when = time_of(call);
    out_.arrive(when);
    if (options_.jobs_by == "pid" || options_.jobs_by == "tid" || options_.jobs_by == "node")
      out_.set_job(options_.jobs_by, text(find(call, {options_.jobs_by.c_str()})));
    std::string const path = text(find(call, {"file_path", "path"}));
    if (!path.empty() ? !filter_.counts(path, "") : !filter_.counts("", "")) return;
    auto const op = find_op(name->get_ref<std::string const&>());
    if (!op) return out_.skip(name->get_ref<std::string const&>().substr(0, 40));
    if (!op_table[*op].counts_bytes()) return out_.count(when, *op);
    json const* const result = find(call, {"return_value"});
    double const bytes = number(result != nullptr ? result : find(call, {"size"}));
    if (bytes > most_count)
      text_->fail(fmt::format("{:g} bytes in one call: more than {:g}", bytes, most_count));
    if (result == nullptr && bytes < 0)
      text_->fail("a read or write needs return_value or size, a number that is not negative");
    out_.transfer(when, op_table[*op].name, bytes < 0 ? 0 : bytes);
  }

  convert_options const& options_;
  events out_;
  path_filter filter_;
  lines const* text_ = nullptr;
};

}  // namespace

trace from_jsonl(files const& from, convert_options const& options) {
  jsonl_reader reader(options);
  for (auto const& path : from) reader.read(path);
  return reader.take();
}

}  // namespace sluice::trace
