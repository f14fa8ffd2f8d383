// SPDX-License-Identifier: Apache-2.0
#include "runtime/dashboard.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <httplib.h>
#include <sys/random.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "runtime/address.h"
#include "runtime/history_rows.h"

namespace sluice::runtime {

namespace {

using nlohmann::json;

constexpr std::size_t most_jobs_shown = 2000;

std::string random_text() {
  unsigned char bytes[24] = {};
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) throw sluice_error("getrandom failed");
  std::string out;
  for (unsigned char b : bytes) out += fmt::format("{:02x}", b);
  return out;
}

/// In a time that does not tell how much of it was right.
bool is_equal(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char differs = 0;
  for (std::size_t i = 0; i < a.size(); ++i) differs |= static_cast<unsigned char>(a[i] ^ b[i]);
  return differs == 0;
}

std::string text_of(json const& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

void protect(httplib::Response& r) {
  r.set_header("Content-Security-Policy",
               "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
               "base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
  r.set_header("X-Content-Type-Options", "nosniff");
  r.set_header("X-Frame-Options", "DENY");
  r.set_header("Referrer-Policy", "no-referrer");
  r.set_header("Cross-Origin-Resource-Policy", "same-origin");
  r.set_header("Cache-Control", "no-store");
}

/// Who may read: by the key in `Authorization: Bearer KEY`. A wrong one is an error: the page must
/// not seem to be empty.
std::optional<history_reader> reader_of(keyring const& keys, httplib::Request const& q) {
  std::string const given = q.get_header_value("Authorization");
  if (given.empty()) return history_reader{};
  constexpr std::string_view before = "Bearer ";
  if (!given.starts_with(before) || !is_loopback(q.remote_addr)) return std::nullopt;
  return keys.owner_of(std::string_view(given).substr(before.size()));
}

char const* sees(history_reader const& who) {
  return who.sees_all ? "all jobs" : who.sees_own ? "own jobs" : "classes";
}

json now_json(history const& past, history_reader const& who) {
  json out = {{"sees", sees(who)},
              {"left_out", past.left_out()},
              {"supplies", json::array()},
              {"classes", json::array()},
              {"jobs", json::array()}};
  history_row row;
  for (std::size_t i = 0; i < past.size(); ++i) {
    if (!past.read(i, who, true, false, row)) continue;
    json one = history_json(row);
    for (char const* key : {"demand", "grant", "served", "waiting", "blocked"})
      one[key] = one[key][0];
    char const* const kind = !row.name.job.empty()         ? "jobs"
                             : !row.name.qos_class.empty() ? "classes"
                                                           : "supplies";
    if (out[kind].size() < most_jobs_shown) out[kind].push_back(std::move(one));
  }
  return out;
}

/// Rows that are the one asked for: `supply`, and `class`, or `job` with `uid`.
json past_json(history const& past, history_reader const& who, httplib::Request const& q) {
  json rows = json::array();
  std::string const job = q.get_param_value("job"), qos_class = q.get_param_value("class");
  std::string const supply = q.get_param_value("supply"), uid = q.get_param_value("uid");
  bool const fine = q.get_param_value("interval") == "1";
  history_row row;
  for (std::size_t i = 0; i < past.size(); ++i) {
    if (!past.read(i, who, fine, false, row) || row.name.job != job) continue;
    if (!supply.empty() && row.name.supply != supply) continue;
    if (job.empty() ? row.name.qos_class != qos_class : std::to_string(row.name.uid) != uid)
      continue;
    if (past.read(i, who, fine, true, row) && row.name.job == job)
      rows.push_back(history_json(row));
  }
  return {{"rows", rows}};
}

/// What a job did, by op: `job` with `uid`.
json ops_json(op_history const& ops, history_reader const& who, httplib::Request const& q) {
  json rows = json::array();
  std::string const job = q.get_param_value("job"), uid = q.get_param_value("uid");
  bool const fine = q.get_param_value("interval") == "1";
  op_row row;
  for (std::size_t i = 0; i < ops.size(); ++i)
    if (ops.read(i, who, fine, row) && row.name.job == job && std::to_string(row.name.uid) == uid)
      rows.push_back(op_json(row));
  return {{"rows", rows}};
}

}  // namespace

void keyring::make_room(uid_t person) {
  std::size_t has = 0;
  auto last = keys_.end();
  for (auto at = keys_.begin(); at != keys_.end(); ++at)
    if (at->second.person == person) ++has, last = at;
  if (has >= most_of_one) keys_.erase(last);
}

std::string keyring::key_of(uid_t uid, uid_t person, bool sees_all) {
  std::lock_guard const hold(lock_);
  auto at = keys_.find(uid);
  if (at == keys_.end()) {
    make_room(person);
    if (keys_.size() >= most_keys) return {};
    at = keys_.emplace(uid, row{random_text(), sees_all, person}).first;
  }
  at->second.sees_all = sees_all;
  return at->second.key;
}

std::optional<history_reader> keyring::owner_of(std::string_view key) const {
  std::lock_guard const hold(lock_);
  std::optional<history_reader> found;
  for (auto const& [uid, of] : keys_)
    if (is_equal(of.key, key)) found = {of.sees_all, true, uid};
  return found;
}

std::string dashboard::url_for(std::string const& metrics_address, uid_t uid, uid_t person,
                               bool sees_all) {
  std::string const key = keys.key_of(uid, person, sees_all);
  if (key.empty()) throw sluice_error("too many users have a key of the dashboard");
  std::string address = metrics_address;
  for (char const* any : {"0.0.0.0:", "[::]:"})
    if (address.starts_with(any)) address = "127.0.0.1:" + address.substr(std::strlen(any));
  return fmt::format("http://{}/#{}", address, key);
}

bool is_own_host(std::string_view host) {
  if (host.starts_with('[')) {
    auto const end = host.find(']');
    if (end == host.npos) return false;
    in6_addr parsed = {};
    return inet_pton(AF_INET6, std::string(host.substr(1, end - 1)).c_str(), &parsed) == 1;
  }
  std::string const name(host.substr(0, host.rfind(':')));
  in_addr parsed = {};
  return name == "localhost" || inet_pton(AF_INET, name.c_str(), &parsed) == 1;
}

void dashboard::serve_on(httplib::Server& http) const {
  using httplib::Request, httplib::Response;
  auto const get = [&http](char const* path, auto const& answer) {
    http.Get(path, [answer](Request const& q, Response& r) {
      protect(r);
      if (q.get_header_value_count("Host") != 1 || !is_own_host(q.get_header_value("Host"))) {
        r.status = 403;
        r.set_content("this page is reached as localhost or by address\n", "text/plain");
        return;
      }
      answer(q, r);
    });
  };
  auto const text = [&get](char const* path, char const* content, char const* type) {
    get(path, [content, type](Request const&, Response& r) { r.set_content(content, type); });
  };
  auto const rows = [&](char const* path, auto const& make) {
    get(path, [this, make](Request const& q, Response& r) {
      auto const who = reader_of(keys, q);
      if (!who) {
        r.status = 401;
        r.set_content("{\"error\": \"this key is not known here\"}\n", "application/json");
        return;
      }
      r.set_content(text_of(make(*who, q)), "application/json");
    });
  };
  get("/favicon.ico", [](Request const&, Response& r) { r.status = 204; });
  text("/", dashboard_page, "text/html; charset=utf-8");
  text("/dashboard/page.css", dashboard_style, "text/css; charset=utf-8");
  text("/dashboard/chart.js", sluice_chart_library, "text/javascript; charset=utf-8");
  text("/dashboard/charts.js", dashboard_charts, "text/javascript; charset=utf-8");
  text("/dashboard/page.js", dashboard_script, "text/javascript; charset=utf-8");
  rows("/dashboard/now.json", [this](history_reader const& who, Request const&) {
    json out = now_json(past, who);
    out["role"] = facts_.role;
    out["name"] = facts_.name;
    out["version"] = facts_.version;
    return out;
  });
  rows("/dashboard/history.json",
       [this](history_reader const& who, Request const& q) { return past_json(past, who, q); });
  rows("/dashboard/ops.json",
       [this](history_reader const& who, Request const& q) { return ops_json(ops, who, q); });
}

}  // namespace sluice::runtime
