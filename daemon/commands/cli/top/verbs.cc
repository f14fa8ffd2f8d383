// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/top/verbs.h"

#include <cstring>

#include "base/command_output.h"
#include "base/installed.h"
#include "base/printable.h"
#include "base/quantity.h"

namespace sluice::cli {

namespace {

constexpr command_bounds bounds = {1 << 16, 10'000'000'000, true};

std::vector<std::string> lines_of(std::string const& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t const end = std::min(text.find('\n', at), text.size());
    lines.push_back(printable(text.substr(at, end - at)));
    at = end + 1;
  }
  return lines;
}

}  // namespace

std::vector<std::string> words_of(job_verb verb, std::string const& job, bool is_own) {
  switch (verb) {
    case job_verb::explain:
      if (is_own) return {"stat", job};  // nobody decides about it who could explain
      return {"explain", "--job", job};
    case job_verb::stat:
      return {"stat", job};
    case job_verb::pause:
      return {"pause", job};
    case job_verb::resume:
      return {"resume", job};
    case job_verb::none:
      break;
  }
  return {};
}

std::vector<std::string> told_by(job_source const& source, job_verb verb, std::string const& job,
                                 bool is_own) {
  std::string const program = find_beside("sluice");
  std::vector<std::string> const what = words_of(verb, job, is_own);
  std::vector<std::string> words = {program};
  for (auto const& word : source.options_for(is_own)) words.push_back(word);
  words.insert(words.end(), what.begin(), what.end());
  auto const out = output_of(words, bounds);
  if (out.start_error != 0)
    return {"cannot start " + program + ": " + std::strerror(out.start_error)};
  auto lines = lines_of(out.text);
  if (!out.is_whole) lines.push_back("(the rest is left out)");
  if (lines.empty()) lines.push_back(what[0] + " " + job + ": done");
  return lines;
}

}  // namespace sluice::cli
