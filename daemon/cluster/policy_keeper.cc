// SPDX-License-Identifier: Apache-2.0
#include "cluster/policy_keeper.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/whole_file.h"
#include "policy/change.h"
#include "policy/policy.h"
#include "policy/supply.h"

namespace sluice::cluster {

namespace {

constexpr char heard_file[] = "/policy.json";
constexpr char heard_last[] = "the policy heard last";

std::string hash_text(std::string const& text) {
  return fmt::format("{:016x}", policy::policy_hash(text));
}

}  // namespace

policy_keeper::policy_keeper(runtime::config const& config, runtime::services& services,
                             std::optional<std::string> const& applied)
    : dir_(config.state_dir), services_(services) {
  std::string const from = config.policy.empty() ? heard_last : config.policy;
  if (!config.policy.empty()) file_text_ = policy::read_policy_text(config.policy);
  std::string text = starting_text(applied);
  loaded_s_ = unix_s();
  try {
    if (!text.empty()) site_ = policy::parse_policy(text, from);
  } catch (error const& e) {
    // A file that is wrong is the operator's to mend; what we kept ourselves is only lost.
    if (text == file_text_) throw;
    services_.log.error("kept policy refused", {{"why", e.what()}});
    text = file_text_;
    if (!text.empty()) site_ = policy::parse_policy(text, from);
  }
  text_ = std::move(text);
  note({from});
}

std::string policy_keeper::starting_text(std::optional<std::string> const& applied) {
  if (file_text_.empty()) return read_file(dir_ + heard_file).value_or("");
  std::string text = over(file_text_, applied);
  if (text != file_text_) services_.log.info("policy applied over the socket is in force");
  return text;
}

std::string policy_keeper::as_applied(std::string const& text) const {
  return hash_text(file_text_) + "\n" + text;
}

std::string policy_keeper::over(std::string const& file_text,
                                std::optional<std::string> const& applied) {
  if (!applied) return file_text;
  std::size_t const line = applied->find('\n');
  bool const is_over = line != applied->npos && applied->substr(0, line) == hash_text(file_text);
  return is_over ? applied->substr(line + 1) : file_text;
}

bool policy_keeper::is_over_another(std::optional<std::string> const& applied) const {
  return applied && !file_text_.empty() && over(file_text_, applied) == file_text_;
}

bool policy_keeper::keep_heard(std::string const& text) const {
  return replace_file(dir_ + heard_file, text, {.is_durable = true});
}

void policy_keeper::note(runtime::policy_source const& source) const {
  if (services_.policies == nullptr || text_.empty()) return;
  if (!services_.policies->note(text_, source, loaded_s_))
    services_.log.error("version of the policy is not saved", {{"dir", dir_}});
}

void policy_keeper::use(policy::site site, std::string text, runtime::policy_source const& source) {
  for (auto const& line : policy::needs_restart(site_, site))
    services_.log.warning("waits for a restart", {{"what", line}});
  site_ = std::move(site);
  text_ = std::move(text);
  loaded_s_ = unix_s();
  note(source);
}

std::optional<std::string> policy_keeper::changed_text(std::string const& file) const {
  std::string text = policy::read_policy_text(file);
  policy::parse_policy(text, file);
  if (text == file_text_) return std::nullopt;
  return text;
}

void policy_keeper::follow_file(std::string const& text) { file_text_ = text; }

}  // namespace sluice::cluster
