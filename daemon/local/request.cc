// SPDX-License-Identifier: Apache-2.0
#include "local/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

namespace sluice::local {

namespace {

constexpr int most_deep = 8;
constexpr std::size_t most_values = 4096;        // others wait while they are built
constexpr std::size_t room = most_bytes - 2048;  // for what stands beside the rows

std::string dumped(json const& answer) {
  return answer.dump(-1, ' ', false, json::error_handler_t::replace);
}

/// Of text that is no JSON the parser says so.
void check_shape(std::string_view text) {
  int depth = 0;
  std::size_t values = 0;
  bool is_in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char const c = text[i];
    if (c == '"') is_in_string = !is_in_string;
    if (is_in_string && c == '\\') ++i;
    if (is_in_string) continue;
    bool const opens = c == '[' || c == '{';
    if (opens && ++depth > most_deep) throw usage_error("the request is nested too deeply");
    if (c == ']' || c == '}') --depth;
    if ((opens || c == ',') && ++values > most_values)
      throw usage_error(fmt::format("the request has more than {} values", most_values));
  }
}

json const* find(json const& request, char const* key) {
  auto const at = request.find(key);
  return at == request.end() || at->is_null() ? nullptr : &*at;
}

}  // namespace

json later() { return json(json::value_t::discarded); }

std::string refusal_text(std::string const& why, int status) {
  return dumped(json{{"error", why}, {"status", status}});
}

std::string answer_text(handler const& h, peer const& who, char const* bytes, std::size_t size,
                        std::size_t most) {
  try {
    json const answer = h(who, parse_request(bytes, size));
    if (answer.is_discarded()) return {};
    std::string text = dumped(answer);
    if (text.size() <= most) return text;
    return refusal_text("the answer is too large: ask for fewer with \"most\"", exit_sluice);
  } catch (error const& e) {
    return refusal_text(e.what(), is_for_asker(e.status()) ? e.status() : exit_sluice);
  } catch (std::exception const& e) {
    return refusal_text(fmt::format("sluiced failed on this request: {}", e.what()), exit_sluice);
  }
}

json parse_request(char const* data, std::size_t size) {
  check_shape({data, size});
  // Without a callback: the library's parser then looks at all that a parent has, after each child.
  json request = json::parse(data, data + size, nullptr, false);
  if (!request.is_object()) throw usage_error("the request is not a JSON object");
  text_of(request, "verb");
  return request;
}

std::string text_of(json const& request, char const* key) {
  auto text = text_if(request, key);
  if (!text) throw usage_error(fmt::format("the request has no \"{}\"", key));
  return *std::move(text);
}

std::optional<std::string> text_if(json const& request, char const* key) {
  json const* const at = find(request, key);
  if (at == nullptr) return std::nullopt;
  if (!at->is_string()) throw usage_error(fmt::format("\"{}\" must be a string", key));
  return at->get<std::string>();
}

std::optional<std::int64_t> whole_if(json const& request, char const* key, std::int64_t least,
                                     std::int64_t most) {
  json const* const at = find(request, key);
  if (at == nullptr) return std::nullopt;
  bool const whole = at->is_number_integer();
  bool const large = at->is_number_unsigned() &&
                     at->get<std::uint64_t>() > std::uint64_t(std::numeric_limits<int64_t>::max());
  if (!whole || large || at->get<std::int64_t>() < least || at->get<std::int64_t>() > most)
    throw usage_error(fmt::format("\"{}\" must be a whole number from {} to {}", key, least, most));
  return at->get<std::int64_t>();
}

bool flag_of(json const& request, char const* key, bool otherwise) {
  json const* const at = find(request, key);
  if (at == nullptr) return otherwise;
  if (!at->is_boolean()) throw usage_error(fmt::format("\"{}\" must be true or false", key));
  return at->get<bool>();
}

page::page(json& answer, json const& request) : answer_(answer) {
  constexpr std::int64_t any = 1'000'000'000;
  from_ = static_cast<std::size_t>(whole_if(request, "from", 0, any).value_or(0));
  most_ = static_cast<std::size_t>(whole_if(request, "most", 1, any).value_or(any));
  answer_["next"] = nullptr;
  bytes_ = dumped(answer_).size();
}

bool page::add(char const* key, json row) {
  std::size_t const size = dumped(row).size() + 1;
  if (taken_ == most_ || (taken_ > 0 && bytes_ + size > room)) {
    answer_["next"] = at_ - 1;
    return false;
  }
  bytes_ += size;
  ++taken_;
  answer_[key].push_back(std::move(row));
  return true;
}

}  // namespace sluice::local
