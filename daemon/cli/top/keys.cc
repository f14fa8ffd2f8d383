// SPDX-License-Identifier: Apache-2.0
#include "cli/top/keys.h"

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

bool moves(top_state& state, int key) {
  std::size_t& first = state.first_row;
  switch (key) {
    case KEY_DOWN:
      ++first;
      return true;
    case KEY_UP:
      first -= std::min<std::size_t>(first, 1);
      return true;
    case KEY_NPAGE:
      first += state.page;
      return true;
    case KEY_PPAGE:
      first -= std::min(first, state.page);
      return true;
    case KEY_HOME:
      first = 0;
      return true;
    case KEY_END:
      first = static_cast<std::size_t>(-1) / 2;
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

}  // namespace

void top_state::keep_in_view(std::size_t rows, std::size_t room) {
  page = std::max<std::size_t>(room, 1);
  first_row = std::min(first_row, rows > page ? rows - page : 0);
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
  if (moves(state, key)) return;
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
      choose_order(state, key);
  }
}

}  // namespace sluice::cli
