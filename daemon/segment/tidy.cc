// SPDX-License-Identifier: Apache-2.0
#include "segment/tidy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "base/foreign_file.h"
#include "base/rights.h"
#include "segment/run_dir.h"

namespace sluice::segment {

namespace {

namespace fs = std::filesystem;

/// From now on its user has it by what he has open, and by nothing else. By its name, in a folder
/// where nobody else gives any: to open it a lease could keep us from.
bool is_ours_now(std::string const& path) {
  struct stat st = {};
  if (lstat(path.c_str(), &st) != 0) return errno == ENOENT;
  if (!S_ISREG(st.st_mode)) return true;
  if (st.st_uid == geteuid()) return true;
  bool is_taken = false;
  with_rights([&] { is_taken = lchown(path.c_str(), geteuid(), getegid()) == 0; });
  return is_taken && chmod(path.c_str(), 0600) == 0;
}

/// True: nobody can write it but we.
bool is_let_go(std::string const& path) {
  foreign_file const file = open_foreign(path, O_RDONLY, any_owner);
  if (!file) return file.error != EWOULDBLOCK;  // he holds a lease on it
  // A read lease is for files that nobody has open for writing. EAGAIN: somebody has.
  if (fcntl(file.fd.get(), F_SETLEASE, F_RDLCK) != 0) return errno != EAGAIN;
  fcntl(file.fd.get(), F_SETLEASE, F_UNLCK);
  return true;
}

/// He may have given it a name of his own, outside, where the file would stay as ours: then it is
/// emptied. False: something keeps us from it.
bool is_nothing_elsewhere(std::string const& path, nlink_t own_names) {
  struct stat st = {};
  if (lstat(path.c_str(), &st) != 0 || st.st_nlink <= own_names) return true;
  foreign_file const file = open_foreign(path, O_RDWR, any_owner);
  return file ? ftruncate(file.fd.get(), 0) == 0 : file.error == ENOENT;
}

/// True: for all files in it.
template <class Test>
bool for_files(std::string const& dir, Test&& test) {
  bool are_all = true;
  std::error_code failed;
  for (fs::directory_iterator at(dir, failed); !failed && at != fs::directory_iterator();
       at.increment(failed))
    if (at->symlink_status(failed).type() == fs::file_type::regular)
      are_all = test(at->path().string()) && are_all;
  return are_all;
}

/// False: its user has mounted something over one of the names. The links below stay, for what is
/// there to be cut back.
bool is_removed(std::string const& dir) {
  std::error_code failed;
  if (own_links(dir) == dir || for_files(dir, [](std::string const& path) {
        return unlink(path.c_str()) == 0 || errno == ENOENT;
      }))
    fs::remove_all(dir, failed);
  struct stat st = {};
  return lstat(dir.c_str(), &st) != 0 && errno == ENOENT;
}

}  // namespace

tidied tidy(std::string const& dir, tidy_task const& task) {
  bool const keeps_order = task.is_over && !task.has_let_go;
  std::string const hidden = dir + "/" + file_name_over("order"), own = own_links(dir);
  std::string const order = own == dir ? hidden : own + "/order";
  if (task.is_over) std::rename((dir + "/order").c_str(), hidden.c_str());
  bool const are_ours = task.is_over && for_files(own, [&](std::string const& path) {
                          return (path == order && keeps_order) || is_ours_now(path);
                        });
  cut const done = cut_back(dir, task.sizes);
  tidied out = {done.had_grown, done.is_leased};
  std::error_code failed;
  out.are_ours = are_ours && !(keeps_order && fs::exists(order, failed));
  if (!out.are_ours || out.is_leased || !for_files(own, is_let_go)) return out;
  nlink_t const own_names = own == dir ? 1 : 2;
  if (!for_files(own, [&](auto const& path) { return is_nothing_elsewhere(path, own_names); }))
    return out;
  out.is_gone = is_removed(dir);
  return out;
}

}  // namespace sluice::segment
