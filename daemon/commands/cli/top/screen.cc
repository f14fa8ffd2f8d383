// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/top/screen.h"

#include <curses.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "commands/cli/supervise.h"
#include "commands/cli/top/keys.h"
#include "commands/cli/top/verbs.h"
#include "commands/cli/top_loop.h"

namespace sluice::cli {

namespace {

constexpr int answer_ms = 1000;  // keys are not looked at for so long
constexpr short green = 1, yellow = 2, red = 3, cyan = 4;

/// The terminal, drawn on as long as this lives.
class terminal {
 public:
  terminal() : screen_(newterm(nullptr, stdout, stdin)) {
    if (screen_ == nullptr) return;
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    set_escdelay(25);
    curs_set(0);
    if (char const* none = std::getenv("NO_COLOR"); none != nullptr && *none != 0) return;
    if (!has_colors() || start_color() == ERR) return;
    use_default_colors();
    init_pair(green, COLOR_GREEN, -1);
    init_pair(yellow, COLOR_YELLOW, -1);
    init_pair(red, COLOR_RED, -1);
    init_pair(cyan, COLOR_CYAN, -1);
    has_colour_ = true;
  }
  ~terminal() {
    if (screen_ == nullptr) return;
    endwin();
    delscreen(screen_);
  }
  terminal(terminal const&) = delete;
  terminal& operator=(terminal const&) = delete;

  bool works() const { return screen_ != nullptr; }

  attr_t colour(short pair) const { return has_colour_ ? attr_t(COLOR_PAIR(pair)) : A_NORMAL; }

  void follow_size() const {
    winsize size = {};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0)
      resizeterm(size.ws_row, size.ws_col);
  }

 private:
  SCREEN* screen_;
  bool has_colour_ = false;
};

/// Signals as something to poll, so that none is lost between two looks.
class signals {
 public:
  signals() {
    sigemptyset(&mask_);
    for (int s : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH}) sigaddset(&mask_, s);
    sigprocmask(SIG_BLOCK, &mask_, &before_);
    fd_ = signalfd(-1, &mask_, SFD_CLOEXEC | SFD_NONBLOCK);
  }
  ~signals() {
    if (fd_ >= 0) close(fd_);
    sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  signals(signals const&) = delete;
  signals& operator=(signals const&) = delete;

  int fd() const { return fd_; }

  /// The next one; 0 when there is none.
  int next() const {
    signalfd_siginfo info = {};
    return read(fd_, &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
  }

 private:
  sigset_t mask_ = {}, before_ = {};
  int fd_ = -1;
};

attr_t attributes(terminal const& t, line_style style) {
  switch (style) {
    case line_style::title:
      return A_BOLD;
    case line_style::heading:
      return A_REVERSE;
    case line_style::waiting:
      return A_BOLD | t.colour(yellow);
    case line_style::alarm:
      return A_BOLD | t.colour(red);
    case line_style::faint:
      return A_DIM;
    case line_style::supply:
    case line_style::plain:
      break;
  }
  return A_NORMAL;
}

attr_t bar_attributes(terminal const& t, char c) {
  return c == '#' ? t.colour(green) : c == '=' ? t.colour(yellow) : A_NORMAL;
}

void put(terminal const& t, int y, line const& l) {
  if (y < 0 || y >= LINES) return;
  move(y, 0);
  attr_t const all = attributes(t, l.style);
  bool in_bar = false;
  for (char c : l.text) {
    in_bar = l.style == line_style::supply && (c == '[' || (in_bar && c != ']'));
    attrset(in_bar ? bar_attributes(t, c) : all);
    addch(static_cast<unsigned char>(c));
  }
  if (l.style == line_style::heading)
    for (int x = getcurx(stdscr); x < COLS && getcury(stdscr) == y && x != 0; ++x) addch(' ');
  attrset(A_NORMAL);
}

/// What is seen and how it got here.
struct show {
  job_source source;
  top_state state = {};
  picture seen = {};
  bool heard = false;
  std::int64_t heard_ns = 0;
  std::string failure = {};
  std::map<std::string, std::vector<double>> lately = {};  // by job and supply
};

/// Adds this look to each row's trend. Rows that are gone are forgotten.
void remember(show& s) {
  std::map<std::string, std::vector<double>> still;
  for (auto& row : s.seen.streams) {
    std::string const key = job_id(row) + "\n" + row.supply;
    auto lately = std::move(s.lately[key]);
    if (lately.size() == most_lately) lately.erase(lately.begin());
    lately.push_back(row.served);
    row.lately = lately;
    still[key] = std::move(lately);
  }
  s.lately = std::move(still);
}

void look(show& s) {
  try {
    s.seen = read_picture(s.source.look(answer_ms));
    remember(s);
    s.heard = true;
    s.heard_ns = steady_ns();
    s.failure.clear();
  } catch (error const& e) {
    s.failure = e.what();
  }
}

std::string note_of(show const& s) {
  if (s.state.is_held) return "held";
  if (s.failure.empty()) return {};
  double const silent_s = static_cast<double>(steady_ns() - s.heard_ns) / 1e9;
  return s.heard ? fmt::format("no answer for {:.0f} s", silent_s) : s.failure;
}

std::string bottom_line(top_state const& state, std::size_t rows, int room) {
  if (state.is_typing) return "filter: " + state.choice.filter + "_";
  if (state.is_asking)
    return fmt::format("{} {}?  y yes, another key no", words_of(state.wanted, {}, false)[0],
                       state.asked);
  if (!state.told.empty()) return "arrows move, another key: back";
  std::string text = "q quit  ? help  / filter  Enter explain  t calls  p pause";
  if (rows > static_cast<std::size_t>(std::max(room, 0)))
    text += fmt::format("   rows {}-{} of {}", state.first_row + 1,
                        std::min<std::size_t>(rows, state.first_row + unsigned(room)), rows);
  return text;
}

std::string key_name(char key) {
  return key == ' ' ? "space" : key == '\r' ? "Enter" : std::string(1, key);
}

void paint_help(terminal const& t, int y) {
  put(t, y++, {"bars: # served, = granted beyond that, - granted to nobody; rates per second", {}});
  put(t, y++, {"marks: P paused, * changed by an operator; any: no bound is known", {}});
  for (auto const& k : top_keys())
    put(t, y++, {fmt::format("  {:<5}  {}", key_name(k.key), k.what)});
}

/// Lines no longer than the screen is wide, broken between words.
std::vector<std::string> fitted(std::vector<std::string> const& lines, std::size_t width) {
  std::vector<std::string> out;
  for (std::string rest : lines) {
    rest.erase(rest.find_last_not_of(' ') + 1);
    while (width > 8 && rest.size() > width) {
      std::size_t const space = rest.rfind(' ', width);
      std::size_t const end = space == std::string::npos || space < width / 2 ? width : space;
      out.push_back(rest.substr(0, end));
      rest = "    " + rest.substr(rest.find_first_not_of(' ', end));
    }
    out.push_back(rest);
  }
  return out;
}

void paint_told(terminal const& t, top_state const& state, int y) {
  for (std::size_t i = state.first_told; i < state.told.size() && y < LINES - 1; ++i)
    put(t, y++, {state.told[i].substr(0, static_cast<std::size_t>(COLS))});
}

void paint_rows(terminal const& t, top_state const& state, std::vector<line> const& rows, int y) {
  for (std::size_t i = state.first_row; i < rows.size() && y < LINES - 1; ++i, ++y) {
    put(t, y, rows[i]);
    if (i == state.cursor) mvchgat(y, 0, -1, A_REVERSE, 0, nullptr);
  }
}

/// Does what is wanted for the job of the row, or asks first.
void obey(show& s, line const& row) {
  top_state& state = s.state;
  if (state.wanted == job_verb::none) return state.asked.clear();
  if (state.asked.empty()) {
    state.asked = row.job;
    state.asks_own = row.is_own;
    if (state.wanted == job_verb::pause && row.is_paused) state.wanted = job_verb::resume;
  }
  if (state.is_asking && !state.asked.empty()) return;
  state.told = state.asked.empty() ? std::vector<std::string>{"this row is no job"}
                                   : told_by(s.source, state.wanted, state.asked, state.asks_own);
  state.told = fitted(state.told, static_cast<std::size_t>(COLS));
  state.first_told = 0;
  state.is_asking = false;
  state.asked.clear();
  state.wanted = job_verb::none;
}

void paint(terminal const& t, show& s) {
  erase();
  top_source const source = {s.source.words(), clock_text(), note_of(s)};
  auto const frame = draw(s.seen, s.state.choice, source, static_cast<unsigned>(COLS));
  int y = 0;
  for (auto const& l : frame.head)
    if (y < LINES - 3) put(t, y++, l);
  put(t, y++, frame.columns);
  int const room = std::max(LINES - y - 1, 1);
  s.state.keep_in_view(frame.rows, static_cast<std::size_t>(room));
  obey(s, frame.rows.empty() ? line{} : frame.rows[s.state.cursor]);
  if (s.state.is_helping) {
    paint_help(t, y);
  } else if (!s.state.told.empty()) {
    paint_told(t, s.state, y);
  } else {
    paint_rows(t, s.state, frame.rows, y);
  }
  std::string text = bottom_line(s.state, frame.rows.size(), room);
  text.resize(std::min<std::size_t>(text.size(), static_cast<std::size_t>(COLS - 1)));
  put(t, LINES - 1, {text, line_style::faint});
  refresh();
}

/// Waits for a key, a signal or the next look. A signal that ends us, else 0.
int wait(terminal const& t, signals const& caught, show& s, std::int64_t until_ns) {
  std::int64_t const left_ms = (until_ns - steady_ns()) / 1'000'000 + 1;
  pollfd both[] = {{STDIN_FILENO, POLLIN, 0}, {caught.fd(), POLLIN, 0}};
  poll(both, 2, static_cast<int>(std::clamp<std::int64_t>(left_ms, 0, 3'600'000)));
  while (int const signal = caught.next()) {
    if (signal != SIGWINCH) return signal;
    t.follow_size();
  }
  if ((both[0].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) return SIGHUP;
  for (int key = getch(); key != ERR; key = getch()) press(s.state, key);
  return 0;
}

/// The signal that ended it; 0: the user did.
int watch(terminal const& t, signals const& caught, show& s) {
  std::int64_t next_ns = 0;
  while (!s.state.is_over) {
    if (std::int64_t const now_ns = steady_ns(); now_ns >= next_ns) {
      if (!s.state.is_held) look(s);
      next_ns = now_ns + static_cast<std::int64_t>(s.state.interval_s * 1e9);
    }
    paint(t, s);
    double const before_s = s.state.interval_s;
    if (int const signal = wait(t, caught, s, next_ns); signal != 0) return signal;
    if (s.state.interval_s < before_s) next_ns = 0;
  }
  return 0;
}

}  // namespace

bool show_screen(job_source const& source, top_choice const& choice, double interval_s) {
  int signal = 0;
  {
    signals const caught;
    terminal const t;
    if (!t.works()) return false;
    show s = {source};
    s.state.choice = choice;
    s.state.interval_s = interval_s;
    signal = watch(t, caught, s);
  }
  if (signal != 0) end_like({0, signal});
  return true;
}

}  // namespace sluice::cli
