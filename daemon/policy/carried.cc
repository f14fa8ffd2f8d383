// SPDX-License-Identifier: Apache-2.0
#include "policy/carried.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "policy/cost_file.h"
#include "policy/json_tree.h"

namespace sluice::policy {

namespace {

namespace fs = std::filesystem;

std::string beside(std::string const& file, std::string const& name) {
  return (fs::path(file).parent_path() / name).string();
}

std::size_t offset_of(std::string const& text, position at) {
  std::size_t offset = 0;
  for (unsigned line = 1; line < at.line; ++line) offset = text.find('\n', offset) + 1;
  return offset + at.column - 1;
}

/// One past the closing quote of the string that begins at `from`.
std::size_t end_of_string(std::string const& text, std::size_t from) {
  std::size_t at = from + 1;
  while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
  return std::min(at + 1, text.size());
}

/// How fast and by how many: that is looked at later (policies/drift.h).
measured without_words(measured const& m) {
  measured kept;
  kept.per_s = m.per_s;
  kept.threads = m.threads;
  return kept;
}

cost_file without_words(cost_file c) {
  c.beside.clear();
  c.grid.clear();
  c.pairs.clear();
  for (auto* curves : {&c.read, &c.write})
    for (cost_curve& curve : *curves)
      for (cost_point& point : curve) point.how = without_words(point.how);
  for (op_cost& op : c.ops) op.how = {};
  return c;
}

struct named {
  position at;
  std::string target, file;
};

std::vector<named> cost_files_of(node const& root) {
  std::vector<named> out;
  node const* const targets = root.find("targets");
  if (targets == nullptr) return out;
  for (member const& target : targets->members) {
    node const* const cost = target.value.find("cost");
    if (cost != nullptr && cost->kind == node::string && !is_carried(cost->text))
      out.push_back({cost->at, target.key, cost->text});
  }
  return out;
}

}  // namespace

std::string carried_text(cost_file const& costs) {
  return nlohmann::ordered_json::parse(cost_file_text(without_words(costs))).dump();
}

std::string carry_costs(std::string text, std::string const& file) {
  if (text.find("\"cost\"") == text.npos) return text;
  auto const files = cost_files_of(parse_json(text, file));
  // The last first: the places of the others stay what they are.
  for (auto one = files.rbegin(); one != files.rend(); ++one) try {
      std::size_t const from = offset_of(text, one->at);
      cost_file const costs = read_cost_file(beside(file, one->file));
      std::string const literal = nlohmann::json(carried_text(costs)).dump();
      text.replace(from, end_of_string(text, from) - from, literal);
    } catch (error const& e) {
      throw usage_error(fmt::format("{}:{}:{}: targets.{}.cost: {}", file, one->at.line,
                                    one->at.column, one->target, e.what()));
    }
  return text;
}

}  // namespace sluice::policy
