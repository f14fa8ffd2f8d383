// SPDX-License-Identifier: Apache-2.0
#include "segment/journal_row.h"

#include <fmt/format.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

#include "base/clock.h"

namespace sluice::segment {

namespace {

std::string error_text(int error) { return error == 0 ? std::string() : std::strerror(error); }

std::uint64_t mean(std::uint64_t sum, std::uint64_t count) { return count == 0 ? 0 : sum / count; }

char const* state_word(journal_status const& log) {
  if (log.is_refused) return "not recovered";
  if (!log.is_alive) return "silent";
  if (log.log_error != 0) return "failed";
  return log.generation == 0 ? "recovering" : "serving";
}

}  // namespace

double age_s(std::uint64_t since_ns) {
  auto const now_ns = static_cast<std::uint64_t>(steady_ns());
  return since_ns == 0 || since_ns > now_ns ? 0 : static_cast<double>(now_ns - since_ns) / 1e9;
}

nlohmann::ordered_json journal_row(journal_status const& log) {
  return {{"file", log.path},
          {"state", state_word(log)},
          {"why", log.is_alive ? std::string()
                               : fmt::format("not heard of for {:.0f} s", age_s(log.heart_ns))},
          {"pid", log.pid},
          {"generation", log.generation},
          {"room_bytes", log.room_bytes},
          {"used_bytes", log.used_bytes},
          {"batches", log.batches},
          {"batch_mean_bytes", mean(log.batch_bytes, log.batches)},
          {"batch_mean_ns", mean(log.batch_ns, log.batches)},
          {"requests", log.asked},
          {"logged", log.logged},
          {"synced", log.synced},
          {"durable", {{"files", log.files_live}}},
          {"checkpoints", log.checkpoints},
          {"voids", log.voids},
          {"kept_journals", log.kept_logs},
          {"jobs", log.areas},
          {"log_error", error_text(log.log_error)},
          {"home_error", error_text(log.home_error)}};
}

}  // namespace sluice::segment
