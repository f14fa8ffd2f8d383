// SPDX-License-Identifier: Apache-2.0
// sluice-replay: the command line of `sluice replay`. What it does is in run.cc; the simulation
// of --simulate is in daemon/commands/replay/simulate.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <thread>

#include "base/common_options.h"
#include "base/duration.h"
#include "base/error.h"
#include "base/number.h"
#include "base/program.h"
#include "commands/replay/options.h"
#include "commands/replay/simulate/whatif.h"
#include "core/units.h"

namespace sluice::replay {

namespace {

constexpr char const *load_group = "Load", *sending_group = "Sending", *files_group = "Files";
constexpr unsigned most_threads = 4096;
constexpr unsigned most_loops = 1'000'000;
constexpr double most_scale = 1e9, latest_unix_s = 1e11;

/// The words of the command line that are not yet what they mean.
struct words {
  std::string stagger, warm_up, duration, drain, late;
  std::string io_size, file_size, arrivals = "even", joined;
  std::vector<std::string> classes;
  double start_at = -1;
  unsigned threads_per_op = 0;
};

double seconds(std::string const& text, char const* option) {
  return static_cast<double>(parse_duration(text, option)) / 1e9;
}

std::uint64_t bytes(std::string const& text, char const* option, std::uint64_t most) {
  auto const size = core::parse_amount(text);
  if (!size.ok() || size.value.units == 0 || size.value.units > most)
    throw usage_error(fmt::format("{} {}: {}; write for example 64KiB or 4MiB", option, text,
                                  size.ok() ? "out of range" : size.reason));
  return size.value.units;
}

/// Options below one heading of --help; what a value is called is `type`.
struct group {
  CLI::App& app;
  char const* name;

  template <typename Value>
  CLI::Option* operator()(char const* flag, Value& value, char const* help,
                          char const* type = nullptr) const {
    CLI::Option* const option = app.add_option(flag, value, help)->group(name);
    if (type == nullptr && std::is_arithmetic_v<Value>) type = "N";
    return type == nullptr ? option : option->type_name(type);
  }
};

void add_load(group const& add, options& o, words& w) {
  auto const scale = number_check(1e-9, most_scale);
  add("--time-scale", o.load.time_scale, "seconds of the trace per second; rates stay")
      ->check(scale);
  add("--rate-scale", o.load.rate_scale, "multiply all rates")->check(scale);
  add("--jobs", o.load.jobs, "number of jobs: the trace's first ones, or copies of the full rate")
      ->check(number_check(1u, most_threads));
  add("--only-job", o.only_job, "replay only this job", "NAME");
  add("--loops", o.load.loops, "repeat the trace this many times")
      ->check(number_check(1u, most_loops));
  add("--stagger", w.stagger, "each job begins this much later than the one before", "TIME");
  add("--duration", w.duration, "replay only this much, in time of the replay", "TIME");
  add("--class", w.classes, "QoS class of a job, for {class} and for --simulate", "[JOB=]NAME")
      ->allow_extra_args(false);
}

void add_sending(group const& add, options& o, words& w) {
  auto const threads = number_check(1u, most_threads);
  add("--processes", o.plan.processes, "per job (1)")->check(threads);
  auto* const each = add("--threads", o.plan.threads, "per process, each sending all kinds");
  each->check(threads);
  add("--threads-per-op", w.threads_per_op, "per process and kind (1, unless there are --threads)")
      ->check(threads)
      ->excludes(each);
  add("--max-inflight", o.sending.max_inflight, "most calls of a job under way at once")
      ->check(number_check(1u, 1u << 20));
  add.app
      .add_flag("--closed-loop", o.sending.closed_loop,
                "send the next one when the last has ended, at any time")
      ->group(add.name);
  add("--arrivals", w.arrivals, "spread within an interval: even or poisson")
      ->check(CLI::IsMember({"even", "poisson"}));
  add("--seed", o.sending.seed, "seed of everything random (1)")
      ->check(number_check(std::uint64_t{0}, ~std::uint64_t{0}));
  add("--late", w.late, "operations sent later than this are delayed (10ms)", "TIME");
  add("--warm-up", w.warm_up, "first send this much of the first interval, uncounted", "TIME");
  add("--drain", w.drain, "how long late operations are sent after the end (no end)", "TIME");
  add("--start-at", w.start_at, "when the load begins, in seconds since 1970", "SECONDS")
      ->check(number_check(0.0, latest_unix_s));
  add("--wrap", o.wrap, "start each job under this; {job} and {class} are replaced", "COMMAND");
}

void add_files(group const& add, options& o, words& w) {
  add("--files", o.tree.files, "files per job (1000)")->check(number_check(1u, 1'000'000'000u));
  add("--depth", o.tree.depth, "depth of directories (2)")->check(number_check(0u, 20u));
  add("--fanout", o.tree.fanout, "directories in a directory (8)")
      ->check(number_check(1u, 10'000u));
  add("--io-size", w.io_size, "size of a read or write (that of the trace, or 64KiB)", "BYTES");
  add("--file-size", w.file_size, "size of the files that are read and written (4MiB)", "BYTES");
}

void add_rest(CLI::App& app, options& o, words& w) {
  app.add_option("TRACE", o.trace, "a CSV file (see traces/README.md); - is standard input")
      ->required();
  app.add_option("--target", o.target, "the directory to work in; own files are made and removed")
      ->type_name("DIR");
  app.add_option("-o,--output", o.output, "write the result as JSON; - is standard output")
      ->type_name("FILE");
  app.add_flag("-q,--quiet", o.quiet, "no table, no progress");
  app.add_flag("--simulate", o.simulate, "no I/O: show what --policy would do to this load");
  app.add_option("--policy", o.policy, "the policy to simulate")->type_name("FILE");
  app.add_option("--joined", w.joined)->group("");
}

/// What each word means; throws a usage error.
void understand(options& o, words const& w) {
  if (!w.stagger.empty()) o.load.stagger_s = seconds(w.stagger, "--stagger");
  if (!w.warm_up.empty()) o.plan.warm_up_s = seconds(w.warm_up, "--warm-up");
  if (!w.duration.empty())
    o.load.duration_s = o.plan.duration_s = seconds(w.duration, "--duration");
  if (!w.duration.empty() && o.load.duration_s <= 0) throw usage_error("--duration is 0");
  if (!w.drain.empty()) o.drain_s = seconds(w.drain, "--drain");
  if (!w.late.empty()) o.sending.late_ns = parse_duration(w.late, "--late");
  if (w.start_at >= 0) o.start_at_unix_s = w.start_at;
  o.plan.threads_per_op = w.threads_per_op != 0 ? w.threads_per_op : 1;
  o.plan.read_bytes = o.plan.write_bytes =
      w.io_size.empty() ? 0 : bytes(w.io_size, "--io-size", 1 << 30);
  if (!w.file_size.empty())
    o.tree.file_bytes = bytes(w.file_size, "--file-size", std::uint64_t{1} << 40);
  if (w.arrivals == "poisson") o.sending.kind = arrivals::poisson;
  for (auto const& text : w.classes) {
    auto const at = text.find('=');
    o.classes.emplace_back(at == text.npos ? "" : text.substr(0, at),
                           at == text.npos ? text : text.substr(at + 1));
  }
  if (!w.joined.empty()) {
    joined j;
    if (std::sscanf(w.joined.c_str(), "%d:%d:%d:%u", &j.trace_fd, &j.counters_fd, &j.pipe_fd,
                    &j.job) != 4)
      throw usage_error("--joined is not for people");
    o.join = j;
  }
}

int simulate(CLI::App const& app, options& o, std::vector<std::string> const& classes) {
  for (CLI::Option const* option : app.get_options())
    if (option->count() != 0 &&
        (option->get_group() == sending_group || option->get_group() == files_group))
      throw usage_error(
          fmt::format("{} is about real I/O, and --simulate does none", option->get_name()));
  if (o.policy.empty()) throw usage_error("--simulate needs --policy FILE");
  simulation::options w;
  w.policy_file = o.policy;
  w.trace_file = o.trace;
  w.load = read_load(o);
  w.target = o.target;
  w.classes = classes;
  w.output = o.output;
  w.json = o.output == "-";
  if (w.json) w.output.clear();
  w.quiet = o.quiet;
  return simulation::run(w);
}

int chosen(CLI::App const& app, options& o, words const& w) {
  understand(o, w);
  if (o.simulate) return simulate(app, o, w.classes);
  if (!o.policy.empty())
    throw usage_error(
        "--policy is for --simulate; a real replay runs under "
        "`sluice run --policy FILE --class NAME --`");
  if (o.target.empty()) throw usage_error("--target DIR is needed: the directory to replay in");
  return o.join ? join_replay(o) : replay(o);
}

int run(int argc, char** argv) {
  options o;
  words w;
  common_options common;
  o.argv.assign(argv, argv + argc);
  CLI::App app{"Plays the operations of a trace on a real directory, at the times of the trace.",
               "sluice replay"};
  app.option_defaults()->always_capture_default(false);
  add_rest(app, o, w);
  take_common_options(app, common);
  show_option(app, "--json", "as -o -");
  add_load({app, load_group}, o, w);
  add_sending({app, sending_group}, o, w);
  add_files({app, files_group}, o, w);
  app.footer(
      "  sluice replay traces/abci-like.csv --target /scratch/replay --time-scale 60 "
      "--rate-scale 0.01 --jobs 4\n"
      "  sluice run --limit metadata=2k/s -- sluice replay load.csv --target /scratch -o run.json\n"
      "  sluice replay load.csv --target /scratch --class a=gold --class bronze \\\n"
      "    --wrap 'sluice run --no-summary --job {job} --class {class} --'\n"
      "  sluice replay month.csv --simulate --policy site.json -o whatif.json");
  try {
    app.parse(argc, argv);
  } catch (CLI::CallForHelp const& e) {
    return app.exit(e);
  } catch (CLI::ParseError const& e) {
    throw usage_error(fmt::format("{} (see sluice replay --help)", e.what()));
  }
  if (common.json && o.output.empty()) o.output = "-";
  return chosen(app, o, w);
}

}  // namespace

}  // namespace sluice::replay

int main(int argc, char** argv) {
  return sluice::guarded("sluice", [&] { return sluice::replay::run(argc, argv); });
}
