// SPDX-License-Identifier: Apache-2.0
#include "node/state_files.h"

#include <cstdio>
#include <fstream>
#include <sstream>

namespace sluice::node {

std::optional<std::string> read_state(std::string const& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

bool write_state(std::string const& path, std::string const& text) {
  std::string const fresh = path + ".new";
  std::ofstream out(fresh, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (out && std::rename(fresh.c_str(), path.c_str()) == 0) return true;
  std::remove(fresh.c_str());
  return false;
}

}  // namespace sluice::node
