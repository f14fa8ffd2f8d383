// SPDX-License-Identifier: Apache-2.0
// Cost files as a page, with the style, colours and rules of `sluice report`: text of a file
// reaches it only through html(), and what differs by colour differs by dash too.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/quantity.h"
#include "commands/calibrate/show.h"
#include "commands/report/chart.h"
#include "commands/report/page.h"
#include "commands/report/words.h"

namespace sluice::calibrate {

namespace {

using report::html;

constexpr char const* strokes[] = {"solid", "dashed", "dotted", "dashdot"};
constexpr double left = 72, right = 36, top = 44, height = 260, below = 34;

struct axes {
  double width, low, high;  // of the drawing; the decades of the costs

  double x(std::size_t point) const {
    return left + (width - left - right) * static_cast<double>(point) / (core::cost_points - 1);
  }
  double y(double cost) const {
    double const at = std::clamp(std::log10(std::max(cost, 1e-9)), low, high);
    return top + height * (1 - (at - low) / (high - low));
  }
};

axes axes_of(digest const& d, double width) {
  axes a = {width, 9, -9};
  for (auto const& curve : d.curves)
    for (charge const& c : curve.charges) {
      a.low = std::min(a.low, std::floor(std::log10(c.cost)));
      a.high = std::max(a.high, std::ceil(std::log10(c.cost)));
    }
  if (a.high <= a.low) a.high = a.low + 1;
  return a;
}

std::string grid_of(axes const& a) {
  // Numbers of few digits have room at the left, whatever the costs are.
  std::string out = fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"label\">VOP</text>\n",
                                left - 8, top - 12);
  for (double decade = a.low; decade <= a.high; ++decade) {
    double const y = a.y(std::pow(10, decade));
    out += fmt::format(
        "<path d=\"M{:.1f} {:.1f}H{:.1f}\" class=\"grid\"/>"
        "<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"label\">{:g}</text>\n",
        left, y, a.width - right, left - 8, y + 4, std::pow(10, decade));
  }
  for (unsigned i = 0; i < core::cost_points; i += 3)
    out += fmt::format(
        "<path d=\"M{0:.1f} {1:.1f}v5\" class=\"axis\"/>"
        "<text x=\"{0:.1f}\" y=\"{2:.1f}\" class=\"tick\">{3}</text>\n",
        a.x(i), top + height, top + height + 18, size_words(core::cost_point_bytes(i)));
  return out;
}

std::string line_of(axes const& a, curve_digest const& curve, char const* stroke) {
  std::string d, dots;
  for (std::size_t i = 0; i < curve.charges.size(); ++i) {
    charge const& c = curve.charges[i];
    d += fmt::format("{}{:.1f} {:.1f}", i == 0 ? 'M' : 'L', a.x(i), a.y(c.cost));
    if (c.is_measured)
      dots += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"><title>{} {}: {} VOP{}</title></circle>\n",
          a.x(i), a.y(c.cost), c.how.is_unstable ? "4.5" : "2.5", curve.name, c.label,
          cost_words(c.cost), c.how.is_unstable ? ", unstable" : "");
  }
  return fmt::format("<path d=\"{}\" class=\"line {}\"/>\n", d, stroke) + dots;
}

std::string chart_of(digest const& d, double width) {
  axes const a = axes_of(d, width);
  std::string out = fmt::format(
      "<svg class=\"chart\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"cost by "
      "size\">\n",
      width, top + height + below);
  out += grid_of(a);
  for (std::size_t k = 0; k < d.curves.size(); ++k) {
    double const x = left + 150 * static_cast<double>(k);
    out += line_of(a, d.curves[k], strokes[k]) +
           fmt::format(
               "<path d=\"M{:.1f} 8.5h26\" class=\"line {}\"/>"
               "<text x=\"{:.1f}\" y=\"12\" class=\"small\">{}</text>\n",
               x, strokes[k], x + 30, d.curves[k].name);
  }
  return out + "</svg>\n";
}

std::string cells(charge const& c) {
  std::string const words = cost_words(c.cost);
  if (!c.is_measured) return fmt::format("<td><span class=\"soft\">({})</span></td>", words);
  return fmt::format(
      "<td title=\"{}\">{} {}</td>",
      c.how.per_s > 0
          ? html(fmt::format("{}/s, rounds differ by {:.0f} %",
                             short_number(c.how.per_s, core::unit_kind::ops), c.how.spread * 100))
          : std::string("by hand"),
      words, c.mark());
}

std::string table_around(std::string const& head, std::string const& rows) {
  return rows.empty() ? rows
                      : "<div class=\"scroll\"><table><thead><tr>" + head +
                            "</tr></thead><tbody>\n" + rows + "</tbody></table></div>\n";
}

std::string head(std::initializer_list<char const*> titles) {
  std::string out;
  for (char const* t : titles) out += fmt::format("<th>{}</th>", t);
  return out;
}

std::string said_of(digest const& d) {
  std::string out = fmt::format("<h1>{}</h1>\n<div class=\"said\">\n", html(d.file));
  for (auto const& line : d.said) out += fmt::format("<p>{}</p>\n", html(line, 1000));
  return out + "</div>\n";
}

std::string curves_of(digest const& d) {
  std::string rows;
  for (std::size_t i = 0; i < d.curves[0].charges.size(); ++i) {
    rows += fmt::format("<tr><td>{}</td>", d.curves[0].charges[i].label);
    for (auto const& curve : d.curves) rows += cells(curve.charges[i]);
    rows += "</tr>\n";
  }
  return "<figure>" + chart_of(d, 760) +
         "<figcaption>VOP of one request by its size; both axes in powers. A dot was measured, a "
         "large dot is unstable.</figcaption></figure>\n" +
         table_around(head({"size", "read", "write", "read, unaligned", "write, unaligned"}), rows);
}

std::string ops_of(digest const& d) {
  double most = 0;
  for (charge const& c : d.ops) most = std::max(most, c.cost);
  std::string rows;
  for (charge const& c : d.ops)
    rows += fmt::format("<tr><td>{}</td>{}<td>{}</td></tr>\n", c.label, cells(c),
                        report::bar(most > 0 ? c.cost / most : 0, 0));
  return table_around(head({"operation", "VOP", ""}), rows);
}

std::string sides_of(digest const& d) {
  std::string rows;
  for (auto const& s : d.costs.beside)
    rows += fmt::format("<tr><td>{}</td><td>{}</td><td>{}{}</td></tr>\n", html(s.kind),
                        size_words(s.bytes), cost_words(s.cost), s.how.is_unstable ? " ~" : "");
  return table_around(head({"kind", "size", "VOP"}), rows);
}

std::string grid_table(digest const& d) {
  std::string rows;
  for (auto const& c : d.costs.grid)
    rows += fmt::format(
        "<tr><td>{:.0f} % readers</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
        c.readers * 100, c.readers > 0 ? size_words(c.read_bytes) : "-",
        c.readers < 1 ? size_words(c.write_bytes) : "-", short_number(c.vops, core::unit_kind::ops),
        report::bar(c.vops / d.costs.max_vops, c.vops < d.costs.provisionable_vops ? 1 : 0));
  return table_around(head({"threads", "read", "write", "VOP/s in all", "of the most"}), rows);
}

std::string pairs_of(digest const& d) {
  std::string rows;
  for (auto const& p : d.costs.pairs)
    rows +=
        fmt::format("<tr><td>{} {} and {}</td><td>{:.2f}</td><td>{:.2f}</td><td>{:.2f}</td></tr>\n",
                    html(p.kind), size_words(p.bytes[0]), size_words(p.bytes[1]), p.ratio[0],
                    p.ratio[1], p.mmr);
  return table_around(head({"pair", "first got", "second got", "worse by better"}), rows);
}

std::string origin_of(digest const& d) {
  auto const& p = d.costs.from;
  std::pair<char const*, std::string const&> const facts[] = {
      {"path", p.path},     {"device", p.device},   {"file system", p.fs},
      {"source", p.source}, {"options", p.options}, {"identity", p.identity},
      {"kernel", p.kernel}, {"host", p.host},       {"time", p.time},
      {"I/O", p.io}};
  std::string rows;
  for (auto const& [what, value] : facts)
    if (!value.empty())
      rows += fmt::format("<tr><td>{}</td><td class=\"left\">{}</td></tr>\n", what, html(value));
  return table_around("<th></th><th class=\"left\"></th>", rows);
}

struct section {
  char const* title;
  std::string (*of)(digest const&);
};

constexpr section sections[] = {
    {"", said_of},
    {"What a request costs", curves_of},
    {"What an operation costs", ops_of},
    {"Other kinds of requests", sides_of},
    {"When readers and writers meet", grid_table},
    {"Two tenants, each held to half of the floor", pairs_of},
    {"Where it comes from", origin_of},
};

}  // namespace

std::string page_of(std::vector<digest> const& all, std::string const& nonce) {
  std::string body, titles;
  for (digest const& d : all) titles += (titles.empty() ? "" : ", ") + d.file;
  for (section const& part : sections) {
    std::string inside;
    bool has_some = false;
    for (digest const& d : all) {
      std::string const one = part.of(d);
      has_some = has_some || !one.empty();
      inside += all.size() == 1 ? one : "<div>" + one + "</div>\n";
    }
    if (!has_some) continue;
    body += "<section>\n";
    if (*part.title != '\0') body += fmt::format("<h2>{}</h2>\n", part.title);
    body += (all.size() == 1 ? inside : "<div class=\"beside\">\n" + inside + "</div>\n") +
            "</section>\n";
  }
  body += fmt::format("<footer><p>Made by sluice cost show. {}.</p></footer>\n", legend);
  return report::page_around(body, titles, all.size() > 1, nonce);
}

}  // namespace sluice::calibrate
