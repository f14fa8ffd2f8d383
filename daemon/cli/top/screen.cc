// SPDX-License-Identifier: Apache-2.0
#include "cli/top/screen.h"

#include <curses.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include "cli/supervise.h"
#include "cli/top/keys.h"
#include "cli/top_loop.h"
#include "policy/error.h"
#include "segment/segment_file.h"

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
  daemon_at daemon;
  top_state state;
  picture seen;
  bool heard = false;
  std::int64_t heard_ns = 0;
  std::string failure;
};

void look(show& s) {
  try {
    s.seen = read_picture(ask_top(s.daemon, answer_ms));
    s.heard = true;
    s.heard_ns = segment::monotonic_ns();
    s.failure.clear();
  } catch (error const& e) {
    s.failure = e.what();
  }
}

std::string note_of(show const& s) {
  if (s.state.is_held) return "held";
  if (s.failure.empty()) return {};
  double const silent_s = static_cast<double>(segment::monotonic_ns() - s.heard_ns) / 1e9;
  return s.heard ? fmt::format("no answer for {:.0f} s", silent_s) : s.failure;
}

std::string bottom_line(top_state const& state, std::size_t rows, int room) {
  if (state.is_typing) return "filter: " + state.choice.filter + "_";
  std::string text = "q quit  ? help  / filter  n nodes  o active  r reverse";
  if (rows > static_cast<std::size_t>(std::max(room, 0)))
    text += fmt::format("   rows {}-{} of {}", state.first_row + 1,
                        std::min<std::size_t>(rows, state.first_row + unsigned(room)), rows);
  return text;
}

void paint_help(terminal const& t, int y) {
  put(t, y++, {"bars: # served, = granted beyond that, - granted to nobody; rates per second", {}});
  put(t, y++, {"marks: P paused, * changed by an operator; any: no bound is known", {}});
  for (auto const& k : top_keys())
    put(t, y++, {fmt::format("  {}  {}", k.key == ' ' ? '_' : k.key, k.what), {}});
}

void paint(terminal const& t, show& s) {
  erase();
  top_source const source = {daemon_words(s.daemon), clock_text(), note_of(s)};
  auto const frame = draw(s.seen, s.state.choice, source, static_cast<unsigned>(COLS));
  int y = 0;
  for (auto const& l : frame.head)
    if (y < LINES - 3) put(t, y++, l);
  put(t, y++, frame.columns);
  int const room = std::max(LINES - y - 1, 1);
  s.state.keep_in_view(frame.rows.size(), static_cast<std::size_t>(room));
  if (s.state.is_helping) {
    paint_help(t, y);
  } else {
    for (std::size_t i = s.state.first_row; i < frame.rows.size() && y < LINES - 1; ++i)
      put(t, y++, frame.rows[i]);
  }
  std::string text = bottom_line(s.state, frame.rows.size(), room);
  text.resize(std::min<std::size_t>(text.size(), static_cast<std::size_t>(COLS - 1)));
  put(t, LINES - 1, {text, line_style::faint});
  refresh();
}

/// Waits for a key, a signal or the next look. A signal that ends us, else 0.
int wait(terminal const& t, signals const& caught, show& s, std::int64_t until_ns) {
  std::int64_t const left_ms = (until_ns - segment::monotonic_ns()) / 1'000'000 + 1;
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
    if (std::int64_t const now_ns = segment::monotonic_ns(); now_ns >= next_ns) {
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

bool show_screen(daemon_at const& daemon, top_choice const& choice, double interval_s) {
  int signal = 0;
  {
    signals const caught;
    terminal const t;
    if (!t.works()) return false;
    show s;
    s.daemon = daemon;
    s.state.choice = choice;
    s.state.interval_s = interval_s;
    signal = watch(t, caught, s);
  }
  if (signal != 0) end_like({0, signal});
  return true;
}

}  // namespace sluice::cli
