// SPDX-License-Identifier: Apache-2.0
#include "cluster/change_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/boot_id.h"
#include "base/error.h"
#include "base/whole_file.h"
#include "wire/message.h"

namespace sluice::cluster {

namespace {

constexpr char overrides_file[] = "/overrides.json", applied_file[] = "/applied-policy";

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

verbs::override_book change_files::book_of(change_texts const& texts) {
  if (!texts.overrides) return {};
  return verbs::override_book::from_text(*texts.overrides, wire::job_key, boot_id());
}

/// The next change replaces a book, so it is kept under another name. An applied policy stays where
/// it is: perhaps it can be read at the next start.
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
  found.texts = {text_of(overrides_file, found), text_of(applied_file, found)};
  try {
    found.book = book_of(found.texts);
  } catch (error const& e) {
    if (!may_set_aside) throw;
    found.lost.push_back({e.what(), set_aside(dir_ + overrides_file)});
    found.texts.overrides.reset();
  }
  return found;
} catch (error const& e) {
  found_changes none;
  none.trouble = e.what();
  return none;
}

bool change_files::write(change_texts const& texts, bool with_applied) const {
  file_terms const terms = {.is_durable = true, .writer = writer_};
  if (!replace_file(dir_ + overrides_file, texts.overrides.value_or(""), terms)) return false;
  if (!with_applied) return true;
  std::string const path = dir_ + applied_file;
  if (texts.applied) return replace_file(path, *texts.applied, terms);
  return unlink(path.c_str()) == 0 || errno == ENOENT;
}

}  // namespace sluice::cluster
