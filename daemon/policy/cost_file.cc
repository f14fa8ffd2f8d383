// SPDX-License-Identifier: Apache-2.0
#include "policy/cost_file.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "policy/reading.h"
#include "policy/text_file.h"

namespace sluice::policy {

namespace {

using names = reading::names;
constexpr double most_rate = 1e12;
constexpr std::size_t most_rows = 1000;

/// Keys of what stands behind a cost.
names with_measured(names keys) {
  keys.insert(keys.end(), {"per_s", "spread", "unstable", "p50_us", "p99_us", "threads"});
  return keys;
}

names op_names() {
  names out = {"create"};
  for (auto const& row : core::op_table)
    if (!row.has_bytes) out.emplace_back(row.name);
  return out;
}

class cost_reader : reading {
 public:
  explicit cost_reader(std::string const& file) : reading(file) {}

  cost_file read(node const& root) {
    keys(root, "the cost file",
         {"version", "provenance", "max_vops", "provisionable_vops", "charge", "read", "write",
          "ops", "beside", "interference", "pairs"});
    read_version(root);
    read_rates(root);
    if (node const* n = root.find("charge"))
      out_.by_device = choice(*n, "charge", charge_names()) == 1;
    if (node const* n = root.find("provenance")) read_provenance(*n);
    read_directions(root);
    if (node const* n = root.find("ops")) read_ops(*n);
    if (node const* n = root.find("beside")) read_beside(*n);
    if (node const* n = root.find("interference")) read_grid(*n);
    if (node const* n = root.find("pairs")) read_pairs(*n);
    return std::move(out_);
  }

 private:
  node const& need(node const& n, std::string const& path, char const* key) const {
    node const* found = n.find(key);
    if (found == nullptr) fail(n.at, fmt::format("{} has no \"{}\"", path, key));
    return *found;
  }

  /// 0 when it is not there.
  double optional(node const& n, std::string const& path, char const* key, double most) const {
    node const* found = n.find(key);
    return found == nullptr ? 0 : number(*found, path + "." + key, 0, most);
  }

  double cost(node const& n, std::string const& path) const {
    expect(n, node::number, path);
    if (!(n.value >= least_cost) || n.value > most_cost)
      fail(n.at, fmt::format("{} is {:g} VOP, wanted {:g} to {:g}", path, n.value, least_cost,
                             most_cost));
    return n.value;
  }

  measured how(node const& n, std::string const& path) const {
    measured m;
    m.per_s = optional(n, path, "per_s", most_rate);
    m.spread = optional(n, path, "spread", most_rate);
    if (node const* u = n.find("unstable")) m.is_unstable = boolean(*u, path + ".unstable");
    m.p50_us = optional(n, path, "p50_us", most_rate);
    m.p99_us = optional(n, path, "p99_us", most_rate);
    m.threads = static_cast<unsigned>(optional(n, path, "threads", 1e6));
    return m;
  }

  std::uint64_t size(node const& n, std::string const& path) const {
    expect(n, node::number, path);
    for (unsigned i = 0; i < core::cost_points; ++i)
      if (n.value == static_cast<double>(core::cost_point_bytes(i)))
        return core::cost_point_bytes(i);
    fail(n.at, fmt::format("{} is {:g}, wanted a power of two from 512 to 4194304", path, n.value));
  }

  node const& rows(node const& n, std::string const& path) const {
    expect(n, node::array, path);
    if (n.items.size() > most_rows) fail(n.at, fmt::format("{} has over {} rows", path, most_rows));
    return n;
  }

  void read_version(node const& root) const {
    node const& n = need(root, "the cost file", "version");
    expect(n, node::number, "version");
    if (n.value != cost_file_version)
      fail(n.at, fmt::format("version is {:g}; this sluice reads version {}: calibrate anew",
                             n.value, cost_file_version));
  }

  void read_rates(node const& root) {
    node const& max = need(root, "the cost file", "max_vops");
    out_.max_vops = number(max, "max_vops", 1, most_rate);
    // Where nobody measured what is left when requests meet, half is what Libra's disks left.
    out_.provisionable_vops = out_.max_vops / 2;
    node const* floor = root.find("provisionable_vops");
    if (floor == nullptr) return;
    out_.provisionable_vops = number(*floor, "provisionable_vops", 1, most_rate);
    if (out_.provisionable_vops > out_.max_vops)
      fail(floor->at, fmt::format("provisionable_vops is {:g}, more than max_vops, which is {:g}",
                                  out_.provisionable_vops, out_.max_vops));
  }

  void read_provenance(node const& n);
  void read_directions(node const& root);
  void read_direction(node const& n, std::string const& path, cost_curve (&into)[2]) const;
  cost_point read_point(node const& n, std::string const& path) const;
  cost_curve read_curve(node const& n, std::string const& path) const;
  void read_ops(node const& n);
  void read_beside(node const& n);
  void read_grid(node const& n);
  void read_pairs(node const& n);

  cost_file out_;
};

void cost_reader::read_provenance(node const& n) {
  struct row {
    char const* key;
    std::string provenance::*field;
    bool is_needed;
  };
  static constexpr row table[] = {
      {"path", &provenance::path, false},
      {"device", &provenance::device, true},
      {"fs", &provenance::fs, true},
      {"source", &provenance::source, false},
      {"options", &provenance::options, false},
      {"identity", &provenance::identity, false},
      {"kernel", &provenance::kernel, false},
      {"host", &provenance::host, false},
      {"time", &provenance::time, false},
      {"io", &provenance::io, false},
  };
  names allowed = {"load"};
  for (row const& r : table) allowed.emplace_back(r.key);
  keys(n, "provenance", allowed);
  for (row const& r : table) {
    if (r.is_needed) need(n, "provenance", r.key);
    if (node const* found = n.find(r.key))
      out_.from.*r.field = string(*found, std::string("provenance.") + r.key);
  }
  if (node const* io = n.find("io")) choice(*io, "provenance.io", {"direct", "buffered"});
  out_.from.load = optional(n, "provenance", "load", 1e6);
}

/// `[bytes, cost]`, or an object with what stands behind it.
cost_point cost_reader::read_point(node const& n, std::string const& path) const {
  cost_point point;
  if (n.kind == node::array) {
    if (n.items.size() != 2)
      fail(n.at, fmt::format("{} has {} values, wanted [bytes, cost]", path, n.items.size()));
    point.bytes = size(n.items[0], path + "[0]");
    point.cost = cost(n.items[1], path + "[1]");
    return point;
  }
  keys(n, path, with_measured({"bytes", "cost"}));
  point.bytes = size(need(n, path, "bytes"), path + ".bytes");
  point.cost = cost(need(n, path, "cost"), path + ".cost");
  point.how = how(n, path);
  return point;
}

cost_curve cost_reader::read_curve(node const& n, std::string const& path) const {
  expect(n, node::array, path);
  if (n.items.size() < 2)
    fail(n.at, fmt::format("{} has fewer than two points: give a small and a large size, like "
                           "[[4096, 1], [1048576, 20]]",
                           path));
  cost_curve curve;
  for (std::size_t i = 0; i < n.items.size(); ++i) {
    curve.push_back(read_point(n.items[i], fmt::format("{}[{}]", path, i)));
    if (i > 0 && curve[i].bytes <= curve[i - 1].bytes)
      fail(n.items[i].at, fmt::format("{}[{}] is of {} bytes and comes after {}: sizes must grow",
                                      path, i, curve[i].bytes, curve[i - 1].bytes));
  }
  return curve;
}

void cost_reader::read_direction(node const& n, std::string const& path,
                                 cost_curve (&into)[2]) const {
  if (n.kind == node::array) {
    into[1] = read_curve(n, path);
    return;
  }
  keys(n, path, {"aligned", "unaligned"});
  into[1] = read_curve(need(n, path, "aligned"), path + ".aligned");
  if (node const* u = n.find("unaligned")) into[0] = read_curve(*u, path + ".unaligned");
}

void cost_reader::read_directions(node const& root) {
  node const *r = root.find("read"), *w = root.find("write");
  if (r == nullptr && w == nullptr)
    fail(root.at, "the cost file has neither \"read\" nor \"write\"");
  if (r != nullptr) read_direction(*r, "read", out_.read);
  if (w != nullptr) read_direction(*w, "write", out_.write);
}

void cost_reader::read_ops(node const& n) {
  expect(n, node::object, "ops");
  names const allowed = op_names();
  for (auto const& m : n.members) {
    std::string const path = "ops." + m.key;
    if (m.key == "read" || m.key == "write")
      fail(m.at, fmt::format("{0} moves bytes: \"{0}\" beside \"ops\" has its curve", m.key));
    check_name(m, "op", " in ops", allowed);
    op_cost row;
    row.op = m.key;
    if (m.value.kind == node::number) {
      row.cost = cost(m.value, path);
    } else {
      keys(m.value, path, with_measured({"cost"}));
      row.cost = cost(need(m.value, path, "cost"), path + ".cost");
      row.how = how(m.value, path);
    }
    out_.ops.push_back(row);
  }
}

void cost_reader::read_beside(node const& n) {
  for (std::size_t i = 0; i < rows(n, "beside").items.size(); ++i) {
    node const& item = n.items[i];
    std::string const path = fmt::format("beside[{}]", i);
    keys(item, path, with_measured({"kind", "bytes", "cost"}));
    side_cost row;
    row.kind = side_kinds()[choice(need(item, path, "kind"), path + ".kind", side_kinds())];
    row.bytes = size(need(item, path, "bytes"), path + ".bytes");
    row.cost = cost(need(item, path, "cost"), path + ".cost");
    row.how = how(item, path);
    out_.beside.push_back(row);
  }
}

void cost_reader::read_grid(node const& n) {
  for (std::size_t i = 0; i < rows(n, "interference").items.size(); ++i) {
    node const& item = n.items[i];
    std::string const path = fmt::format("interference[{}]", i);
    keys(item, path, {"readers", "read_bytes", "write_bytes", "vops"});
    interference cell;
    cell.readers = number(need(item, path, "readers"), path + ".readers", 0, 1);
    cell.read_bytes = size(need(item, path, "read_bytes"), path + ".read_bytes");
    cell.write_bytes = size(need(item, path, "write_bytes"), path + ".write_bytes");
    cell.vops = number(need(item, path, "vops"), path + ".vops", 0, most_rate);
    out_.grid.push_back(cell);
  }
}

void cost_reader::read_pairs(node const& n) {
  static names const kinds = {"rr", "ww", "rw"};
  for (std::size_t i = 0; i < rows(n, "pairs").items.size(); ++i) {
    node const& item = n.items[i];
    std::string const path = fmt::format("pairs[{}]", i);
    keys(item, path, {"kind", "bytes", "ratio", "mmr"});
    verified_pair pair;
    pair.kind = kinds[choice(need(item, path, "kind"), path + ".kind", kinds)];
    node const &bytes = need(item, path, "bytes"), &ratio = need(item, path, "ratio");
    expect(bytes, node::array, path + ".bytes");
    expect(ratio, node::array, path + ".ratio");
    if (bytes.items.size() != 2 || ratio.items.size() != 2)
      fail(item.at, path + " is of two tenants: bytes and ratio have two values each");
    for (unsigned k = 0; k < 2; ++k) {
      pair.bytes[k] = size(bytes.items[k], path + ".bytes");
      pair.ratio[k] = number(ratio.items[k], path + ".ratio", 0, most_rate);
    }
    pair.mmr = number(need(item, path, "mmr"), path + ".mmr", 0, 1);
    out_.pairs.push_back(pair);
  }
}

}  // namespace

std::vector<std::string> const& charge_names() {
  static std::vector<std::string> const names = {"requests", "device"};
  return names;
}

std::vector<std::string> const& side_kinds() {
  static std::vector<std::string> const kinds = {
      "sequential_read", "sequential_write",   "append",          "new_file",
      "buffered_read",   "buffered_overwrite", "buffered_append", "direct_unaligned_write"};
  return kinds;
}

cost_file parse_cost_file(std::string_view text, std::string const& name) {
  constexpr std::size_t most_values = 4096;  // users send such texts to a daemon
  return cost_reader(name).read(parse_json(text, name, most_values));
}

cost_file read_cost_file(std::string const& path) { return parse_cost_file(read_text(path), path); }

provenance provenance_of(mount const& m, place const& where) {
  provenance p;
  p.path = where.path;
  p.device = device_text(where.device);
  p.fs = m.type;
  p.source = m.source;
  p.options = m.options;
  if (where.identity != 0) p.identity = fmt::format("{:016x}", where.identity);
  return p;
}

std::string why_other_mount(provenance const& from, mount const& m, place const& where) {
  if (!from.is_known()) return {};
  provenance const here = provenance_of(m, where);
  auto const differs = [](char const* what, std::string const& is, std::string const& was) {
    return fmt::format("{} is {}, and the costs are of {}", what, is.empty() ? "unknown" : is, was);
  };
  if (here.fs != from.fs) return differs("the file system", here.fs, from.fs);
  if (!from.source.empty() && here.source != from.source)
    return differs("what is mounted", here.source, from.source);
  // Devices without a disk of their own (0:N: network, FUSE) are numbered as they are mounted.
  if (!(from.device.starts_with("0:") && here.device.starts_with("0:")) &&
      here.device != from.device)
    return differs("the device", here.device, from.device);
  if (!from.identity.empty() && !here.identity.empty() && here.identity != from.identity)
    return differs("the file system's identity", here.identity, from.identity);
  return {};
}

}  // namespace sluice::policy
