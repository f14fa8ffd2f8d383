// SPDX-License-Identifier: Apache-2.0
#include "cluster/change_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/boot_id.h"
#include "base/error.h"
#include "base/whole_file.h"
#include "wire/message.h"

namespace sluice::cluster {

namespace {

constexpr char overrides_file[] = "/overrides.json";
constexpr char applied_file[] = "/applied-policy";  // of an earlier version, which knew no terms

/// Throws sluice_error where it is not what file_of() writes, or an earlier version.
kept_changes kept_in(std::string const& text) try {
  auto const whole = nlohmann::json::parse(text);
  kept_changes kept = {whole.value("term", kept_changes::earlier_version),
                       whole.value("writer", ""), text, std::nullopt};
  if (auto const at = whole.find("applied"); at != whole.end()) kept.applied.emplace(*at);
  if (kept.term < 0 || kept.term > kept_changes::last_term)
    throw sluice_error(fmt::format("changes by hand cannot be read: term {}", kept.term));
  change_files::book_of(kept);
  return kept;
} catch (nlohmann::json::exception const& e) {
  throw sluice_error(fmt::format("changes by hand cannot be read: {}", e.what()));
}

}  // namespace

bool change_files::is_empty() const {
  auto const is_there = [&](char const* name) { return access((dir_ + name).c_str(), F_OK) == 0; };
  return !is_there(overrides_file) && !is_there(applied_file);
}

/// Who may write there decides for all jobs. NFS asks its server for names only after the directory
/// was opened; before, it may remember that a file was not there.
descriptor change_files::open_directory() const {
  descriptor dir(open(dir_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat st = {};
  if (!dir || fstat(dir.get(), &st) != 0)
    throw sluice_error(fmt::format("{}: {}", dir_, std::strerror(errno)));
  if (st.st_uid != geteuid() || (st.st_mode & 0022) != 0)
    throw sluice_error(fmt::format(
        "{}: it must belong to uid {} and be writable by nobody else (now uid {}, mode {:o})", dir_,
        geteuid(), st.st_uid, st.st_mode & 07777));
  return dir;
}

verbs::override_book change_files::book_of(kept_changes const& kept) {
  if (kept.text.empty()) return {};
  return verbs::override_book::from_text(kept.text, wire::job_key, boot_id());
}

/// The next change replaces a book, so it is kept under another name. An applied policy of an
/// earlier version stays where it is.
std::optional<std::string> change_files::text_of(char const* name, found_changes& found) const try {
  return read_kept(dir_ + name);
} catch (error const& e) {
  if (is_shared()) throw;
  bool const is_book = name == overrides_file;
  found.lost.push_back({e.what(), is_book ? set_aside(dir_ + name) : dir_ + name});
  return std::nullopt;
}

found_changes change_files::read(bool may_set_aside) const try {
  found_changes found;
  descriptor const dir = is_shared() ? open_directory() : descriptor();
  auto const text = text_of(overrides_file, found);
  try {
    if (text) found.kept = kept_in(*text);
  } catch (error const& e) {
    if (!may_set_aside) throw;
    found.lost.push_back({e.what(), set_aside(dir_ + overrides_file)});
  }
  if (found.kept.term > kept_changes::earlier_version) return found;
  found.kept.applied = text_of(applied_file, found);
  if (found.kept.applied) found.kept.term = kept_changes::earlier_version;
  return found;
} catch (error const& e) {
  found_changes none;
  none.trouble = e.what();
  return none;
}

kept_changes change_files::file_of(verbs::override_book const& book,
                                   std::optional<std::string> applied, std::int64_t term) const {
  nlohmann::json more = {{"term", term}, {"writer", writer_}};
  if (applied) more["applied"] = *applied;
  return {term, writer_, book.to_text(boot_id(), std::move(more)), std::move(applied)};
}

/// One that cannot be read is no reason to write nothing.
bool change_files::may_replace(kept_changes const& kept, std::string const& over) const try {
  auto const text = read_kept(dir_ + overrides_file);
  if (!text || *text == over) return true;
  kept_changes const there = kept_in(*text);
  return there.writer == writer_ && there.term <= kept.term;
} catch (error const&) {
  return true;
}

change_files::written change_files::write(kept_changes const& kept, std::string const& over) const {
  bool is_overtaken = false;
  file_terms const terms = {.is_durable = true, .writer = writer_, .may_replace = [&] {
                              is_overtaken = is_shared() && !may_replace(kept, over);
                              return !is_overtaken;
                            }};
  bool const is_written = replace_file(dir_ + overrides_file, kept.text, terms);
  if (is_overtaken) return written::overtaken;
  if (!is_written) return written::no;
  unlink((dir_ + applied_file).c_str());  // what it said is in the other one now
  return written::yes;
}

}  // namespace sluice::cluster
