// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "ask_daemon.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static long now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000L + t.tv_nsec / 1000000L;
}

// A full queue of a daemon that hangs is EAGAIN at once: nothing here waits but poll.
static int open_socket(char const* run_dir) {
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  int const length = snprintf(at.sun_path, sizeof at.sun_path, "%s/sluiced.sock", run_dir);
  if (length < 0 || (size_t)length >= sizeof at.sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  int const fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  if (connect(fd, (struct sockaddr*)&at, sizeof at) == 0) return fd;
  int const why = errno;
  close(fd);
  errno = why;
  return -1;
}

static ssize_t receive(int fd, long until_ms, char* answer, size_t size) {
  while (1) {
    ssize_t const got = recv(fd, answer, size - 1, 0);
    if (got > 0) return got;
    if (got == 0) errno = ECONNRESET;
    if (got == 0 || (errno != EAGAIN && errno != EINTR)) return -1;
    long const left_ms = until_ms - now_ms();
    struct pollfd p = {fd, POLLIN, 0};
    if (left_ms <= 0 || (poll(&p, 1, (int)left_ms) == 0)) {
      errno = ETIMEDOUT;
      return -1;
    }
  }
}

int sluice_ask(char const* run_dir, char const* request, int budget_ms, char* answer, size_t size) {
  long const until_ms = now_ms() + budget_ms;
  int const fd = open_socket(run_dir);
  if (fd < 0) return -1;
  ssize_t got = -1;
  // Sent is as good as said: the daemon reads it even if it is too slow for us.
  if (send(fd, request, strlen(request), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
    got = receive(fd, until_ms, answer, size);
  int const why = errno;
  close(fd);
  errno = why;
  if (got < 0) return -1;
  answer[got] = 0;
  return 0;
}

// Behind the closing quote of the string that begins at `at`.
static char const* end_of_string(char const* at) {
  for (++at; *at != 0 && *at != '"'; ++at)
    if (*at == '\\' && at[1] != 0) ++at;
  return *at == '"' ? at + 1 : at;
}

static char unescaped(char c) {
  switch (c) {
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case 'b':
    case 'f':
    case 'r':
    case 'u':
      return '?';
    default:
      return c;
  }
}

static int copy_string(char const* at, char* out, size_t size) {
  size_t used = 0;
  for (++at; *at != 0 && *at != '"'; ++at) {
    char c = *at;
    if (c == '\\' && at[1] != 0) c = unescaped(*++at);
    if (used + 1 >= size) return -1;
    out[used++] = c;
  }
  out[used] = 0;
  return *at == '"' ? 0 : -1;
}

int sluice_text_at(char const* json, char const* key, char* out, size_t size) {
  int depth = 0;
  size_t const length = strlen(key);
  for (char const* at = json; *at != 0;) {
    if (*at == '{' || *at == '[') ++depth;
    if (*at == '}' || *at == ']') --depth;
    if (*at != '"') {
      ++at;
      continue;
    }
    char const* const end = end_of_string(at);
    int const is_key = depth == 1 && (size_t)(end - at) == length + 2 &&
                       strncmp(at + 1, key, length) == 0 && *end == ':';
    if (is_key) return end[1] == '"' ? copy_string(end + 1, out, size) : -1;
    at = end;
  }
  return -1;
}

static int is_plain(char c) { return (unsigned char)c >= 32 && c != '"' && c != '\\' && c != 127; }

// Bytes of the character of UTF-8 that begins at `at`; 0: none does.
static size_t character_at(char const* at) {
  static struct {
    unsigned char first, last, second_from, second_to;
    size_t bytes;
  } const rows[] = {{0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
                    {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3},
                    {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
                    {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};
  unsigned char const* const byte = (unsigned char const*)at;
  if (byte[0] < 0x80) return 1;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    if (byte[0] < rows[i].first || byte[0] > rows[i].last) continue;
    if (byte[1] < rows[i].second_from || byte[1] > rows[i].second_to) return 0;
    for (size_t k = 2; k < rows[i].bytes; ++k)
      if ((byte[k] & 0xc0) != 0x80) return 0;
    return rows[i].bytes;
  }
  return 0;
}

void sluice_put_text(char* json, size_t size, char const* key, char const* text) {
  size_t used = strlen(json);
  if (used + strlen(key) + strlen(text) + 8 > size) return;
  used += (size_t)snprintf(json + used, size - used, ",\"%s\":\"", key);
  while (*text != 0) {
    size_t const bytes = is_plain(*text) ? character_at(text) : 0;
    if (bytes == 0) json[used++] = '_';
    for (size_t i = 0; i < bytes; ++i) json[used++] = text[i];
    text += bytes == 0 ? 1 : bytes;
  }
  json[used++] = '"';
  json[used] = 0;
}
