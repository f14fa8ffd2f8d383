// SPDX-License-Identifier: Apache-2.0
#include "policy/order.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "base/suggest.h"
#include "core/durations.h"
#include "core/glob.h"

namespace sluice::policy {

namespace {

using core::most_glob_bytes;
constexpr std::string_view stream_words[] = {"process", "job", "thread", "path"};  // in order

}  // namespace

void parse_order(std::string_view word, std::string const& where, target_spec& target) {
  if (word != "durable" && word != "ordered")
    throw usage_error(fmt::format("{}: \"{}\" is no order{}; \"durable\" and \"ordered\" are",
                                  where, word,
                                  did_you_mean(std::string(word), {"durable", "ordered"})));
  target.durable = true;
  target.ordered = word == "ordered";
}

void parse_stream(std::string_view word, std::string const& where, target_spec& target) {
  auto const* const at = std::find(std::begin(stream_words), std::end(stream_words), word);
  if (at == std::end(stream_words))
    throw usage_error(
        fmt::format("{}: \"{}\" is no stream{}; process, job, thread and path are", where, word,
                    did_you_mean(std::string(word), {"process", "job", "thread", "path"})));
  target.stream = static_cast<order_stream>(at - stream_words);
}

std::string_view word_of(order_stream stream) {
  return stream_words[static_cast<std::size_t>(stream)];
}

namespace {

std::string read_glob(reading const& r, node const& n, char const* key, std::string const& path) {
  node const* const glob = n.find(key);
  if (glob == nullptr)
    r.fail(n.at, fmt::format("{} has no \"{}\": write {{\"write\": GLOB, \"durable\": GLOB}}", path,
                             key));
  std::string const here = fmt::format("{}.{}", path, key);
  std::string text = r.string(*glob, here);
  if (text.empty() || text.size() > most_glob_bytes)
    r.fail(glob->at, fmt::format("{} must have 1 to {} bytes", here, most_glob_bytes));
  return text;
}

}  // namespace

after_spec read_after(reading const& r, node const& n, std::string const& path) {
  r.keys(n, path, {"write", "durable", "patience"});
  after_spec out;
  out.write = read_glob(r, n, "write", path);
  out.durable = read_glob(r, n, "durable", path);
  if (out.write == out.durable)
    r.fail(n.at, path + ": \"write\" and \"durable\" are the same: nothing comes after itself");
  if (node const* patience = n.find("patience"))
    out.patience_ns = r.duration(*patience, path + ".patience", second_ns, 3600 * second_ns);
  return out;
}

std::string after_in_words(after_spec const& after) {
  return fmt::format(
      "a call that writes or names files like {} waits until all that the job wrote to files like "
      "{} is durable on all its nodes; after {:g} s it fails with EIO",
      after.write, after.durable, static_cast<double>(after.patience_ns) / 1e9);
}

target_spec parse_order_target(std::string_view text) {
  std::string const where = fmt::format("--order {}", text);
  auto const at = text.find('@');
  if (at == std::string_view::npos || at + 1 == text.size())
    throw usage_error(where + ": write durable@DIR or ordered@DIR, or ordered:STREAM@DIR");
  target_spec target;
  std::string_view const word = text.substr(0, at);
  auto const colon = word.find(':');
  parse_order(word.substr(0, colon), where, target);
  if (colon != word.npos) parse_stream(word.substr(colon + 1), where, target);
  target.path = target.name = std::string(text.substr(at + 1));
  target.origin = where;
  return target;
}

}  // namespace sluice::policy
