// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/top/keys.h"

#include <curses.h>

#include <algorithm>

namespace sluice::cli {

namespace {

constexpr int escape = 27, rub_out = 127, control_h = 8, control_l = 12;
constexpr std::size_t longest_filter = 60;

void type(top_state& state, int key) {
  std::string& filter = state.choice.filter;
  if (key == '\n' || key == '\r' || key == KEY_ENTER) {
    state.is_typing = false;
  } else if (key == escape) {
    filter.clear();
    state.is_typing = false;
  } else if (key == KEY_BACKSPACE || key == rub_out || key == control_h) {
    if (!filter.empty()) filter.pop_back();
  } else if (key >= 32 && key < 127 && filter.size() < longest_filter) {
    filter += static_cast<char>(key);
  }
}

constexpr std::size_t far = static_cast<std::size_t>(-1) / 2;

bool moves(std::size_t& first, std::size_t page, int key) {
  switch (key) {
    case KEY_DOWN:
      ++first;
      return true;
    case KEY_UP:
      first -= std::min<std::size_t>(first, 1);
      return true;
    case KEY_NPAGE:
      first += page;
      return true;
    case KEY_PPAGE:
      first -= std::min(first, page);
      return true;
    case KEY_HOME:
      first = 0;
      return true;
    case KEY_END:
      first = far;
      return true;
    default:
      return false;
  }
}

void choose_order(top_state& state, int key) {
  for (auto const& k : top_keys())
    if (k.order != nullptr && k.key == key) {
      state.choice.sort = k.key;
      state.choice.reversed = false;
    }
}

bool chooses_verb(top_state& state, int key) {
  switch (key) {
    case '\n':
    case '\r':
    case KEY_ENTER:
      state.wanted = job_verb::explain;
      return true;
    case 't':
      state.wanted = job_verb::stat;
      return true;
    case 'p':
      state.wanted = job_verb::pause;
      state.is_asking = true;
      return true;
    default:
      return false;
  }
}

/// A question is there, or what a verb said.
bool answers(top_state& state, int key) {
  if (state.is_asking) {
    if (key != 'y') state.wanted = job_verb::none;
    state.is_asking = false;
    return true;
  }
  if (state.told.empty()) return false;
  if (!moves(state.first_told, state.page, key)) state.told.clear();
  return true;
}

}  // namespace

void top_state::keep_in_view(std::vector<line> const& rows, std::size_t room) {
  page = std::max<std::size_t>(room, 1);
  std::size_t const last = rows.empty() ? 0 : rows.size() - 1;
  if (!is_moved && !job.empty()) {
    auto const at = std::find_if(rows.begin(), rows.end(), [&](line const& row) {
      return row.job == job && row.supply == supply;
    });
    if (at != rows.end()) cursor = static_cast<std::size_t>(at - rows.begin());
  }
  cursor = std::min(cursor, last);
  if (is_moved && cursor > 0 && !rows.empty()) {
    job = rows[cursor].job;
    supply = rows[cursor].supply;
  } else if (is_moved) {
    job.clear();  // the first row is whatever is first
  }
  is_moved = false;
  first_row = std::clamp(first_row, cursor >= page ? cursor - page + 1 : 0, cursor);
  first_told = std::min(first_told, told.size() > page ? told.size() - page : 0);
}

void press(top_state& state, int key) {
  if (key == control_l) {
    clearok(curscr, TRUE);
    return;
  }
  if (state.is_typing) return type(state, key);
  if (state.is_helping && key != 'q') {
    state.is_helping = false;
    return;
  }
  if (answers(state, key)) return;
  if (moves(state.cursor, state.page, key)) {
    state.is_moved = true;
    return;
  }
  switch (key) {
    case 'q':
      state.is_over = true;
      return;
    case '?':
    case 'h':
      state.is_helping = true;
      return;
    case '/':
      state.is_typing = true;
      return;
    case escape:
      state.choice.filter.clear();
      return;
    case 'n':
      state.choice.nodes = !state.choice.nodes;
      return;
    case 'o':
      state.choice.active_only = !state.choice.active_only;
      return;
    case 'r':
      state.choice.reversed = !state.choice.reversed;
      return;
    case ' ':
      state.is_held = !state.is_held;
      return;
    case '+':
      state.interval_s = std::min(state.interval_s * 2, 60.0);
      return;
    case '-':
      state.interval_s = std::max(state.interval_s / 2, 0.1);
      return;
    default:
      if (!chooses_verb(state, key)) choose_order(state, key);
  }
}

}  // namespace sluice::cli
