// SPDX-License-Identifier: Apache-2.0
// The forms of a line (strace 6.1):
//   PID SECONDS.MICROS name(arguments) = result <duration>
//   PID SECONDS.MICROS name(arguments <unfinished ...>
//   PID SECONDS.MICROS <... name resumed>arguments) = result <duration>
//   PID SECONDS.MICROS --- SIGNAL … ---      PID SECONDS.MICROS +++ exited with 0 +++
// The PID is missing while there is one process, and is written [pid N] on a terminal. A name in <>
// after a descriptor has its own < and > escaped, but a device adds its numbers in a second pair.
#include "commands/trace/strace_line.h"

#include <algorithm>
#include <charconv>

#include "commands/trace/lines.h"

namespace sluice::trace {

namespace {

constexpr std::string_view unfinished = "<unfinished ...>";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/// The place after a quoted string that begins at `at`; npos when it does not end.
std::size_t skip_quoted(std::string_view text, std::size_t at) {
  for (++at; at < text.size(); ++at) {
    if (text[at] == '\\')
      ++at;
    else if (text[at] == '"')
      return at + 1;
  }
  return text.npos;
}

/// The same for the name of a descriptor, with the pairs inside.
std::size_t skip_name(std::string_view text, std::size_t at) {
  int depth = 0;
  for (; at < text.size(); ++at) {
    if (text[at] == '\\')
      ++at;
    else if (text[at] == '<')
      ++depth;
    else if (text[at] == '>' && --depth == 0)
      return at + 1;
  }
  return text.npos;
}

/// `3<` or `AT_FDCWD<` begin a name; `1<<2` and `a < b` do not.
bool begins_name(std::string_view text, std::size_t at) {
  if (text[at] != '<' || at == 0 || at + 1 >= text.size() || text[at + 1] == '<') return false;
  return is_digit(text[at - 1]) || text.substr(0, at).ends_with("AT_FDCWD");
}

/// The first place outside quotes, names and brackets where `stop` is; npos: there is none.
template <typename Stop>
std::size_t find_outside(std::string_view text, Stop stop) {
  int depth = 0;
  for (std::size_t at = 0; at < text.size();) {
    char const c = text[at];
    if (depth == 0 && stop(c)) return at;
    if (c == '"') {
      at = skip_quoted(text, at);
    } else if (begins_name(text, at)) {
      at = skip_name(text, at);
    } else {
      if (c == '(' || c == '[' || c == '{') ++depth;
      if (c == ')' || c == ']' || c == '}') --depth;
      ++at;
    }
  }
  return text.npos;
}

char const* take_pid(std::string_view& text, strace_line& line) {
  bool const boxed = text.starts_with("[pid ");
  if (boxed) text = trimmed(text.substr(5));
  auto const [end, why] = std::from_chars(text.data(), text.data() + text.size(), line.pid);
  auto const length = static_cast<std::size_t>(end - text.data());
  if (why != std::errc() || length >= text.size())
    return "neither a process nor a time begins the line: was it cut?";
  if (boxed && text[length] != ']') return "[pid does not end";
  if (text[length] == '.' || text[length] == ':') {  // it was the time already
    line.pid = 0;
    return nullptr;
  }
  text = trimmed(text.substr(length + (boxed ? 1 : 0)));
  return nullptr;
}

char const* take_time(std::string_view& text, strace_line& line) {
  auto const end = text.find(' ');
  auto const word = text.substr(0, end);
  if (word.find(':') != word.npos) return "the time has no date; run strace with -ttt";
  if (end == text.npos || word.find('.') == word.npos || !to_number(word, line.unix_s))
    return "no time in seconds: the line was cut, or strace ran without -ttt";
  if (line.unix_s < 0 || line.unix_s > 1e11) return "the time is out of range";
  text = trimmed(text.substr(end));
  return nullptr;
}

/// `arguments) = result`, or `arguments <unfinished ...>`.
char const* take_call(std::string_view text, strace_line& line) {
  constexpr char const* cut = "the call does not end: the line was cut";
  if (text.ends_with(unfinished)) {
    if (line.is == strace_line::kind::resumed) return nullptr;
    line.is = strace_line::kind::begun;
    line.arguments = trimmed(text.substr(0, text.size() - unfinished.size()));
    return nullptr;
  }
  auto const close = find_outside(text, [](char c) { return c == ')'; });
  if (close == text.npos) return cut;
  line.arguments = text.substr(0, close);
  std::string_view const rest = trimmed(text.substr(close + 1));
  if (!rest.starts_with("= ") || rest.size() < 3) return cut;
  line.result = trimmed(rest.substr(2));
  return nullptr;
}

char const* take_resumed(std::string_view text, strace_line& line) {
  constexpr std::string_view resumed = " resumed>";
  auto const end = text.find(resumed);
  if (end == text.npos) return "<... without resumed>: the line was cut";
  line.name = text.substr(0, end);
  line.is = strace_line::kind::resumed;
  return take_call(text.substr(end + resumed.size()), line);
}

}  // namespace

char const* parse(std::string_view text, strace_line& line) {
  line = {};
  text = trimmed(text);
  if (text.starts_with("strace: ") || text.starts_with("Process ")) return nullptr;
  if (char const* why = take_pid(text, line)) return why;
  if (char const* why = take_time(text, line)) return why;
  if (text.starts_with("--- ") || text.starts_with("+++ ")) return nullptr;
  if (text.starts_with("<... ")) return take_resumed(text.substr(5), line);
  std::size_t const name =
      static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_word) - text.begin());
  if (name == 0 || name == text.size() || text[name] != '(')
    return "no call: the line was cut, or is not strace's";
  line.is = strace_line::kind::call;
  line.name = text.substr(0, name);
  return take_call(text.substr(name + 1), line);
}

strace_descriptor descriptor_of(std::string_view argument) {
  auto const open = argument.find('<');
  if (open == argument.npos || !begins_name(argument, open) || !argument.ends_with('>')) return {};
  std::string_view path = argument.substr(open + 1, argument.size() - open - 2);
  if (path.ends_with('>')) path = path.substr(0, path.find('<'));  // </dev/null<char 1:3>>
  return {true, path};
}

std::string_view take_argument(std::string_view& arguments) {
  auto const comma = find_outside(arguments, [](char c) { return c == ','; });
  std::string_view const first = trimmed(arguments.substr(0, comma));
  arguments = comma == arguments.npos ? std::string_view() : arguments.substr(comma + 1);
  return first;
}

std::string unquoted(std::string_view argument) {
  std::string out;
  if (!argument.starts_with('"')) return out;
  for (std::size_t at = 1; at < argument.size() && argument[at] != '"'; ++at) {
    if (argument[at] != '\\' || at + 1 == argument.size()) {
      out += argument[at];
      continue;
    }
    char const c = argument[++at];
    if (c >= '0' && c <= '7') {  // up to three octal digits
      unsigned value = 0;
      for (int i = 0; i < 3 && at < argument.size() && argument[at] >= '0' && argument[at] <= '7';
           ++i)
        value = value * 8 + static_cast<unsigned>(argument[at++] - '0');
      --at;
      out += static_cast<char>(value);
    } else {
      out += c == 'n' ? '\n' : c == 't' ? '\t' : c;
    }
  }
  return out;
}

}  // namespace sluice::trace
