// SPDX-License-Identifier: Apache-2.0
#include "commands/calibrate/show.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/output_file.h"
#include "base/quantity.h"
#include "commands/calibrate/options.h"
#include "commands/report/page.h"
#include "commands/report/words.h"

namespace sluice::calibrate {

namespace {

using report::plain;
constexpr std::size_t label_width = 12, column_width = 18;

/// `1.04`, `1.04~` with a mark, `(1.04)` not measured.
std::string cell(charge const& c) {
  std::string const words = cost_words(c.cost);
  if (!c.is_measured) return "(" + words + ")";
  return fmt::format("{}{:1}", words, c.mark());
}

struct column {
  std::string title;
  std::vector<charge> const* charges;
};

/// A title of a file is its end, which differs.
std::string end_of(std::string const& text) {
  std::string const safe = plain(text);
  return safe.size() < column_width ? safe : "…" + safe.substr(safe.size() - column_width + 2);
}

std::string table(std::string const& title, std::vector<column> const& columns) {
  std::string out = fmt::format("\n{:<{}}", title, label_width);
  for (column const& c : columns) out += fmt::format("{:>{}}", c.title, column_width);
  out += "\n";
  for (std::size_t i = 0; i < columns[0].charges->size(); ++i) {
    out += fmt::format("{:>{}}", (*columns[0].charges)[i].label, label_width - 2) + "  ";
    for (column const& c : columns)
      out += fmt::format("{:>{}}", cell((*c.charges)[i]), column_width);
    out += "\n";
  }
  return out;
}

std::string tables_of_one(digest const& d) {
  std::vector<column> curves;
  for (auto const& c : d.curves) curves.push_back({c.name, &c.charges});
  std::string out = table("VOP of one", curves) + table("operation", {{"VOP", &d.ops}});
  if (!d.costs.beside.empty()) out += "\nbeside the curves\n";
  for (auto const& s : d.costs.beside)
    out += fmt::format("  {:<22}{:>8}{:>{}}{}\n", s.kind, size_words(s.bytes), cost_words(s.cost),
                       column_width - 1 - label_width + 10, s.how.is_unstable ? "~" : " ");
  return out;
}

std::string tables_beside(std::vector<digest> const& all) {
  std::string out;
  std::vector<column> columns;
  for (std::size_t k = 0; k < all[0].curves.size(); ++k) {
    columns.clear();
    for (digest const& d : all) columns.push_back({end_of(d.file), &d.curves[k].charges});
    out += fmt::format("\n{}", all[0].curves[k].name) + table("size", columns);
  }
  columns.clear();
  for (digest const& d : all) columns.push_back({end_of(d.file), &d.ops});
  return out + "\noperations" + table("operation", columns);
}

using ordered = nlohmann::ordered_json;

ordered row_of(charge const& c) {
  ordered row = {{"cost", c.cost}, {"measured", c.is_measured}};
  if (c.how.per_s > 0) row["per_s"] = c.how.per_s;
  if (c.how.is_unstable) row["unstable"] = true;
  if (c.is_of_processor) row["of_processor"] = true;
  return row;
}

ordered row_of(digest const& d) {
  ordered curves = ordered::object(), ops = ordered::object(), pairs = ordered::array();
  for (auto const& curve : d.curves)
    for (charge const& c : curve.charges) curves[curve.name][std::to_string(c.bytes)] = row_of(c);
  for (charge const& c : d.ops) ops[c.label] = row_of(c);
  for (auto const& p : d.costs.pairs)
    pairs.push_back({{"kind", p.kind}, {"bytes", p.bytes}, {"ratio", p.ratio}, {"mmr", p.mmr}});
  return {{"file", d.file},
          {"fs", d.costs.from.fs},
          {"device", d.costs.from.device},
          {"time", d.costs.from.time},
          {"max_vops", d.costs.max_vops},
          {"provisionable_vops", d.costs.provisionable_vops},
          {"curves", curves},
          {"ops", ops},
          {"pairs", pairs},
          {"sentences", d.said}};
}

}  // namespace

std::string text_of(std::vector<digest> const& all) {
  std::string out;
  for (digest const& d : all) {
    out += plain(d.file) + "\n";
    for (auto const& line : d.said) out += "  " + plain(line, 1000) + "\n";
  }
  out += all.size() == 1 ? tables_of_one(all[0]) : tables_beside(all);
  return out + "\n" + legend + "\n";
}

std::string json_of(std::vector<digest> const& all) {
  ordered out = ordered::array();
  for (digest const& d : all) out.push_back(row_of(d));
  return out.dump(2, ' ', false, ordered::error_handler_t::replace) + "\n";
}

std::string summary_of(policy::cost_file const& c, std::string const& file) {
  std::string out = plain(file) + "\n";
  for (auto const& line : digest_of(c, file).said) out += "  " + plain(line, 1000) + "\n";
  return out;
}

int show(show_options const& o) {
  std::vector<digest> all;
  for (auto const& file : o.files) all.push_back(digest_of(policy::read_cost_file(file), file));
  if (o.html.empty()) {
    fmt::print("{}", o.json ? json_of(all) : text_of(all));
    return 0;
  }
  output_file to(o.html);
  to.stream() << page_of(all, report::make_nonce());
  to.commit();
  return 0;
}

}  // namespace sluice::calibrate
