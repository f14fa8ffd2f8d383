// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/top_loop.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/on_stderr.h"
#include "base/program.h"
#include "commands/cli/report.h"

namespace sluice::cli {

namespace {

void print_lines(std::vector<line> const& lines) {
  for (auto const& l : lines) fmt::print("{}\n", l.text);
}

void print_picture(global_options const& global, top_choice const& choice, job_source& source) {
  nlohmann::json const answer = source.look(patient_ms);
  if (global.json) {
    fmt::print("{}\n", json(answer).dump(-1, ' ', false, json::error_handler_t::replace));
    return;
  }
  top_source const from = {source.words(), clock_text(), {}};
  auto const frame = draw(read_picture(answer), choice, from, 0);
  print_lines(frame.head);
  print_lines({frame.columns});
  print_lines(frame.rows);
}

}  // namespace

std::string clock_text() {
  std::time_t const now = std::time(nullptr);
  std::tm local = {};
  char text[16] = {};
  if (localtime_r(&now, &local) != nullptr) std::strftime(text, sizeof text, "%H:%M:%S", &local);
  return text;
}

top_choice choice_of(top_options const& options) {
  top_choice choice;
  choice.sort = sort_key(options.sort);
  choice.nodes = options.nodes;
  choice.filter = options.filter;
  return choice;
}

int print_pictures(global_options const& global, top_options const& options, job_source& source) {
  top_choice const choice = choice_of(options);
  bool heard = false;
  for (long printed = 0; options.count == 0 || printed < options.count;) {
    if (heard) {
      std::this_thread::sleep_for(std::chrono::duration<double>(options.interval_s));
      if (!global.json) fmt::print("\n");
    }
    try {
      print_picture(global, choice, source);
      heard = true;
      ++printed;
    } catch (error const& e) {
      if (!heard) throw;
      on_stderr("sluice: {}\n", e.what());
    }
    flush_output();
  }
  return 0;
}

}  // namespace sluice::cli
