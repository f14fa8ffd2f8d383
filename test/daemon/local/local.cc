// SPDX-License-Identifier: Apache-2.0
// The local socket: what is asked is answered, who asks is who the kernel says, and nobody can hold
// the daemon: not by silence, not by size, not by numbers.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "lib/scratch.h"
#include "local/address.h"
#include "local/attachment.h"
#include "local/closer.h"
#include "local/local.h"
#include "local/request.h"

namespace local = sluice::local;
using local::json;

namespace {

struct scratch : sluice::test::scratch {
  std::string socket() const { return dir + "/" + local::socket_name; }
};

/// Serves in a thread until it goes out of scope; its clock can be pushed forward.
struct serving {
  std::unique_ptr<local::server> at;
  std::atomic<bool> over = false;
  std::atomic<std::int64_t> now_ns = 0;
  std::thread loop;
  serving(std::string const& path, local::handler h, unsigned mode = 0600)
      : at(local::server::open(path, mode, std::move(h))), loop([this] { run(); }) {}
  ~serving() {
    over = true;
    loop.join();
  }
  void run() {
    while (!over) {
      pollfd p = {at->fd(), POLLIN, 0};
      poll(&p, 1, 5);
      at->serve(now_ns);
    }
  }
};

sluice::descriptor raw(std::string const& path) {
  local::address const to(path);
  sluice::descriptor s(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  REQUIRE(connect(s.get(), to.get(), sizeof to.name) == 0);
  return s;
}

/// What comes back for these bytes; null when the daemon hung up.
json exchange(int socket, std::string const& bytes) {
  if (send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) return nullptr;
  std::vector<char> buffer(local::most_bytes);
  ssize_t const got = recv(socket, buffer.data(), buffer.size(), 0);
  return got <= 0 ? json(nullptr) : json::parse(buffer.data(), buffer.data() + got);
}

json echo(local::peer const& who, json const& request) {
  return {{"uid", who.uid}, {"pid", who.pid}, {"said", local::text_of(request, "verb")}};
}

}  // namespace

TEST_CASE("a request is answered, with the kernel's word for who asked", "[local]") {
  scratch const s;
  serving const d(s.socket(), echo);
  uid_t by = 12345;
  json const answer = local::ask(s.socket(), {{"verb", "hello"}}, 2000, &by);
  CHECK(answer["uid"] == getuid());
  CHECK(answer["pid"] == getpid());
  CHECK(answer["said"] == "hello");
  CHECK(by == getuid());
}

TEST_CASE("an answer may come later, and only to who asked", "[local]") {
  scratch const s;
  auto const server =
      local::server::open(s.socket(), 0600, [](local::peer const& who, json const& r) -> json {
        CHECK(who.ticket != 0);
        CHECK_FALSE(who.is_afar);
        return r["verb"] == "slow" ? local::later() : json{{"ticket", who.ticket}};
      });
  auto const first = raw(s.socket()), second = raw(s.socket());
  auto const say = [&](sluice::descriptor const& to, std::string const& verb) {
    std::string const bytes = json{{"verb", verb}}.dump();
    REQUIRE(send(to.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0);
    for (int i = 0; i < 3; ++i) server->serve(0);
  };
  auto const heard = [](sluice::descriptor const& from) -> std::string {
    char bytes[256];
    ssize_t const got = recv(from.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    return got < 0 ? "nothing" : std::string(bytes, static_cast<std::size_t>(got));
  };
  say(first, "ask");
  auto const ticket = json::parse(heard(first))["ticket"].get<std::uint64_t>();
  say(first, "slow");
  say(second, "slow");
  CHECK(heard(first) == "nothing");
  server->reply(ticket + 1000, "nobody");
  server->reply(ticket, R"({"a": 1})");
  server->reply(ticket, R"({"a": 2})");
  CHECK(heard(first) == R"({"a": 1})");
  CHECK(heard(first) == "nothing");
  CHECK(heard(second) == "nothing");
  say(first, "ask");
  CHECK(json::parse(heard(first))["ticket"] == ticket);
  say(second, "ask");  // a second question before the first is answered
  CHECK(heard(second).empty());
}

TEST_CASE("the daemon's error comes back as it was thrown", "[local]") {
  scratch const s;
  serving const d(s.socket(), [](local::peer const&, json const& r) -> json {
    if (r["verb"] == "usage") throw sluice::usage_error("no such job");
    if (r["verb"] == "broken") throw std::runtime_error("out of luck");
    return r.at("absent");
  });
  auto const status = [&](char const* verb) {
    try {
      local::ask(s.socket(), {{"verb", verb}}, 2000);
    } catch (sluice::error const& e) {
      return e.status();
    }
    return 0;
  };
  CHECK(status("usage") == sluice::exit_usage);
  CHECK(status("broken") == sluice::exit_sluice);
  CHECK(status("other") == sluice::exit_sluice);
}

TEST_CASE("no daemon, a dead one and a silent one are told apart", "[local]") {
  scratch const s;
  CHECK_THROWS_AS(local::ask(s.socket(), {{"verb", "x"}}, 100), local::no_daemon);
  auto first = local::server::open(s.socket(), 0600, echo);
  CHECK_THROWS_AS(local::ask(s.socket(), {{"verb", "x"}}, 50), local::no_answer);
  CHECK_THROWS_WITH(local::server::open(s.socket(), 0600, echo), Catch::Contains("another"));
  // Its file stays behind when it is killed; the next one takes it over.
  std::filesystem::rename(s.socket(), s.socket() + ".kept");
  first.reset();
  std::filesystem::rename(s.socket() + ".kept", s.socket());
  CHECK_THROWS_AS(local::ask(s.socket(), {{"verb", "x"}}, 100), local::no_daemon);
  serving const d(s.socket(), echo, 0640);
  CHECK(local::ask(s.socket(), {{"verb", "x"}}, 2000)["said"] == "x");
  struct stat st = {};
  REQUIRE(stat(s.socket().c_str(), &st) == 0);
  CHECK((st.st_mode & 0777) == 0640);
}

TEST_CASE("one that works is waited for, one that sleeps is not", "[local]") {
  scratch const s;
  std::atomic<bool> is_over = false;
  for (bool const works : {true, false}) {
    CAPTURE(works);
    serving const d(s.socket(), [&](local::peer const&, json const&) -> json {
      auto const end = std::chrono::steady_clock::now() + std::chrono::milliseconds(600);
      while (!is_over && std::chrono::steady_clock::now() < end)
        if (!works) usleep(20'000);
      return {{"works", works}};
    });
    if (works)
      CHECK(local::ask(s.socket(), {{"verb", "x"}}, 100)["works"] == true);
    else
      CHECK_THROWS_AS(local::ask(s.socket(), {{"verb", "x"}}, 100), local::no_answer);
    is_over = !works;
  }
}

TEST_CASE("one that waits in the kernel is waited for, whichever thread it is", "[local]") {
  scratch const s;
  bool const is_first = GENERATE(true, false);  // of its threads, or another one
  CAPTURE(is_first);
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  pid_t const daemon = fork();
  if (daemon == 0) {
    // Whoever waits for a child of vfork is in state D, as one who waits for a disk.
    auto const wait = [] {
      if (vfork() != 0) return;
      usleep(700'000);
      _exit(0);
    };
    auto const server = local::server::open(s.socket(), 0600, [&](local::peer const&, json const&) {
      is_first ? wait() : std::thread(wait).join();
      return json{{"held", true}};
    });
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || write(ready[1], "", 1) != 1) _exit(1);
    for (pollfd p = {server->fd(), POLLIN, 0}; poll(&p, 1, -1) > 0;) server->serve(0);
    _exit(1);
  }
  char byte = 0;
  REQUIRE(read(ready[0], &byte, 1) == 1);
  CHECK(local::ask(s.socket(), {{"verb", "x"}}, 100)["held"] == true);
  kill(daemon, SIGKILL);
  waitpid(daemon, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
}

TEST_CASE("a run directory deeper than a socket address", "[local]") {
  scratch const s;
  std::string const deep = s.dir + "/" + std::string(120, 'd');
  std::filesystem::create_directory(deep);
  serving const d(deep + "/s", echo);
  CHECK(local::ask(deep + "/s", {{"verb", "x"}}, 2000)["said"] == "x");
}

TEST_CASE("a request of many values is refused before any is built", "[local]") {
  auto const with = [](std::size_t count, std::string const& value) {
    std::string text = R"({"verb":"x","of":[)" + value;
    for (std::size_t i = 1; i < count; ++i) text += "," + value;
    return text + "]}";
  };
  for (std::string const value : {"{}", "[]", "1", R"({"":1})"}) {
    std::string const few = with(1500, value), many = with(6000, value);
    CHECK(local::parse_request(few.data(), few.size())["of"].size() == 1500);
    CHECK_THROWS_WITH(local::parse_request(many.data(), many.size()), Catch::Contains("values"));
  }
  std::string const deep = R"({"verb":"x","of":")" + std::string(30000, '[') + R"(\"{{,"})";
  CHECK(local::parse_request(deep.data(), deep.size())["verb"] == "x");
  std::string const text = R"({"verb":"x","a\\":[[[[[[[[1]]]]]]]]})";
  CHECK_THROWS_WITH(local::parse_request(text.data(), text.size()), Catch::Contains("deeply"));
}

TEST_CASE("garbage is refused and the connection goes on", "[local]") {
  scratch const s;
  serving const d(s.socket(), echo);
  auto const c = raw(s.socket());
  for (std::string const& bad :
       {std::string("{"), std::string("[]"), std::string("{\"verb\":1}"), std::string("{}"),
        std::string("\0\xff\xfe", 3), std::string(60000, '['),
        std::string(local::most_bytes + 1, ' '),
        "{\"verb\":\"x\",\"a\":" + std::string(200, '[') + std::string(200, ']') + "}"}) {
    json const answer = exchange(c.get(), bad);
    REQUIRE(answer.is_object());
    CHECK(answer["status"] == sluice::exit_usage);
  }
  CHECK(exchange(c.get(), R"({"verb":"x"})")["said"] == "x");
}

TEST_CASE("the silent are forgotten", "[local]") {
  scratch const s;
  serving d(s.socket(), echo);
  auto const silent = raw(s.socket()), talker = raw(s.socket());
  CHECK(exchange(talker.get(), R"({"verb":"x"})")["said"] == "x");
  local::ask(s.socket(), {{"verb", "x"}}, 2000);  // the silent one has been accepted by now
  d.now_ns = 6'000'000'000;
  pollfd p = {silent.get(), POLLIN, 0};
  REQUIRE(poll(&p, 1, 5000) == 1);
  char byte;
  CHECK(recv(silent.get(), &byte, 1, 0) == 0);
  CHECK(exchange(talker.get(), R"({"verb":"x"})")["said"] == "x");
}

namespace {

void send_these(int socket, std::string bytes, std::vector<int> const& fds) {
  std::vector<char> beside(CMSG_SPACE(fds.size() * sizeof(int)));
  iovec part = {bytes.data(), bytes.size()};
  msghdr m = {};
  m.msg_iov = &part;
  m.msg_iovlen = 1;
  m.msg_control = beside.data();
  m.msg_controllen = beside.size();
  cmsghdr* const head = CMSG_FIRSTHDR(&m);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
  std::memcpy(CMSG_DATA(head), fds.data(), fds.size() * sizeof(int));
  REQUIRE(sendmsg(socket, &m, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
}

/// Sends the bytes with so many descriptors of /dev/null beside them.
void send_with(int socket, std::string const& bytes, std::size_t count) {
  sluice::descriptor const null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  send_these(socket, bytes, std::vector<int>(count, null.get()));
}

std::ptrdiff_t open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

/// A connection that another user has made.
sluice::descriptor raw_of_a_stranger(std::string const& path) {
  int pair[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
  sluice::descriptor const us(pair[0]), stranger(pair[1]);
  pid_t const child = fork();
  if (child == 0) {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(1);
    local::address const to(path);
    int const own = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (own < 0 || connect(own, to.get(), sizeof to.name) != 0) _exit(2);
    send_these(stranger.get(), "x", {own});
    _exit(0);
  }
  int status = -1;
  REQUIRE((waitpid(child, &status, 0) == child && status == 0));
  std::vector<char> room(16);
  return std::move(local::receive_packet(us.get(), room, true).attached);
}

}  // namespace

TEST_CASE("who does not read his answers keeps his place, and is told no more", "[local]") {
  if (geteuid() != 0) return;
  scratch const s;
  std::filesystem::permissions(s.dir, std::filesystem::perms(0711));
  std::size_t asked = 0;
  std::string const long_text(local::most_bytes, 'p');
  auto const server =
      local::server::open(s.socket(), 0666, [&](local::peer const&, json const& r) -> json {
        ++asked;
        if (r["verb"] == "long") throw sluice::usage_error(long_text);
        return json::object();
      });
  sluice::descriptor his = raw_of_a_stranger(s.socket());
  REQUIRE(his);
  std::vector<char> answer(local::most_bytes);
  auto const heard = [&] { return recv(his.get(), answer.data(), answer.size(), MSG_DONTWAIT); };
  auto const say = [&](std::string const& verb) {
    std::string const bytes = json{{"verb", verb}}.dump();
    (void)!send(his.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    for (int i = 0; i < 3; ++i) server->serve(0);
  };
  constexpr std::int64_t second = 1'000'000'000;
  say("x");
  REQUIRE(heard() > 0);
  say("long");
  CHECK(server->in_use().clients == 1);
  SECTION("what is no packet is not attached") {
    ssize_t const got = heard();
    REQUIRE(got > 0);
    CHECK(json::parse(answer.data(), answer.data() + got)["status"] == sluice::exit_sluice);
    say("x");
    CHECK(heard() > 0);
    CHECK(asked == 3);
  }
  SECTION("another question is not heard, and the place is his until he reads") {
    for (int i = 0; i < 5; ++i) say("x");
    for (int i = 1; i < 100; ++i) server->serve(i * second);
    CHECK(asked == 2);
    CHECK(server->in_use().clients == 1);
    CHECK(server->due_ns() <= 100 * second);
    CHECK(heard() > 0);
    server->serve(101 * second);
    CHECK(server->in_use().clients == 0);
    CHECK(heard() == 0);
  }
  SECTION("silence does not free it, his end does") {
    server->serve(61 * second);
    shutdown(his.get(), SHUT_RDWR);
    server->serve(63 * second);
    CHECK(server->in_use().clients == 1);
    his = {};
    server->serve(65 * second);
    CHECK(server->in_use().clients == 0);
  }
}

TEST_CASE("what does not fit a packet goes beside it, both ways", "[local]") {
  scratch const s;
  serving const d(s.socket(), [](local::peer const&, json const& request) -> json {
    if (request["verb"] == "hello") return json::object();
    return {{"said", local::text_of(request, "text")}};
  });
  std::string const text(10 * local::most_bytes, 'p');
  CHECK(local::ask(s.socket(), {{"verb", "x"}, {"text", text}}, 5000)["said"] == text);
  std::string const huge(local::most_attached_bytes, 'p');
  CHECK_THROWS_WITH(local::ask(s.socket(), {{"verb", "x"}, {"text", huge}}, 5000),
                    Catch::Contains("larger than"));
}

TEST_CASE("descriptors beside a request do not stay in the daemon", "[local]") {
  scratch const s;
  serving const d(s.socket(), echo);
  auto const c = raw(s.socket());
  CHECK(exchange(c.get(), R"({"verb":"x"})")["said"] == "x");
  auto const before = open_descriptors();
  std::vector<char> buffer(local::most_bytes);
  for (std::size_t count : {1, 2, 3, 200}) {
    for (int i = 0; i < 50; ++i) {
      send_with(c.get(), R"({"verb":"x"})", count);
      REQUIRE(recv(c.get(), buffer.data(), buffer.size(), 0) > 0);
    }
    CHECK(exchange(c.get(), R"({"verb":"x"})")["said"] == "x");  // all before it is over
    CHECK(open_descriptors() == before);
  }
}

TEST_CASE("of a stranger no descriptor is taken", "[local]") {
  std::vector<char> buffer(local::most_bytes);
  for (bool const may_attach : {false, true}) {
    int pair[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
    sluice::descriptor const stranger(pair[0]), daemon(pair[1]);
    send_with(stranger.get(), "hello", 1);
    auto const before = open_descriptors();
    local::received const packet = local::receive_packet(daemon.get(), buffer, may_attach);
    CHECK(packet.bytes == 5);
    CHECK(packet.shed == !may_attach);
    CHECK(bool(packet.attached) == may_attach);
    CHECK(open_descriptors() == before + (may_attach ? 1 : 0));
    auto const left = may_attach ? local::next_packet::none : local::next_packet::burdened;
    CHECK(local::look_at_packet(daemon.get()) == left);
  }
}

TEST_CASE("whoever closes a stranger's connection takes no descriptor of his", "[local]") {
  auto const pair = [] {
    int fds[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0);
    return std::pair(sluice::descriptor(fds[0]), sluice::descriptor(fds[1]));
  };
  // A socket tells that its last holder has let it go: the other end of it hangs up.
  auto const is_let_go = [](sluice::descriptor const& other) {
    pollfd p = {other.get(), POLLIN, 0};
    return poll(&p, 1, 5000) == 1;
  };
  auto const before = open_descriptors();
  local::closer closer;
  auto [stranger, daemon] = pair();
  auto [sent, other] = pair();
  REQUIRE(send(stranger.get(), "plain", 5, 0) == 5);
  REQUIRE(send(stranger.get(), "", 0, 0) == 0);  // seems to be the end, and is not
  send_these(stranger.get(), "", {sent.get()});
  sent = {};
  SECTION("a thread does") {
    closer.close(std::move(daemon));
    CHECK(is_let_go(other));
    CHECK(send(stranger.get(), "x", 1, MSG_NOSIGNAL) == -1);
  }
  SECTION("what is plain goes at once") {
    while (recv(daemon.get(), nullptr, 0, MSG_DONTWAIT) >= 0) continue;
    REQUIRE(send(stranger.get(), "plain", 5, 0) == 5);
    closer.close(std::move(daemon));
  }
  CHECK_FALSE(closer.is_full());
  for (auto* d : {&daemon, &stranger, &other}) *d = {};
  CHECK(open_descriptors() == before);
}

TEST_CASE("an answer that does not fit is not sent", "[local]") {
  scratch const s;
  serving const d(s.socket(), [](local::peer const&, json const&) -> json {
    return {{"text", std::string(local::most_attached_bytes, 'x')}};
  });
  CHECK_THROWS_WITH(local::ask(s.socket(), {{"verb", "x"}}, 2000), Catch::Contains("too large"));
}

TEST_CASE("pages together are the whole", "[local]") {
  json rows = json::array();
  for (int i = 0; i < 3000; ++i) rows.push_back({{"number", i}, {"name", std::string(50, 'n')}});
  auto const put = [&](json& answer, json const& which) {
    answer["jobs"] = json::array();
    local::page page(answer, which);
    for (auto const& row : rows)
      if (!page.put("jobs", [&] { return row; })) return;
  };
  json request = {{"verb", "jobs"}};
  int seen = 0, pages = 0;
  while (true) {
    json answer = {{"time", 1}};
    put(answer, request);
    REQUIRE(answer.dump().size() <= local::most_bytes);
    for (auto const& row : answer["jobs"]) CHECK(row["number"] == seen++);
    ++pages;
    if (answer["next"].is_null()) break;
    request["from"] = answer["next"];
  }
  CHECK(seen == 3000);
  CHECK(pages > 1);
  json answer = json::object();
  put(answer, {{"verb", "jobs"}, {"from", 2999}, {"most", 1}});
  CHECK(answer["jobs"].size() == 1);
  CHECK(answer["next"].is_null());
  put(answer, {{"verb", "jobs"}, {"from", 5000}});
  CHECK(answer["jobs"].empty());
}

TEST_CASE("fields of a request have their type or are refused", "[local]") {
  json const r = {{"t", "x"},   {"n", 5}, {"b", true}, {"z", nullptr}, {"huge", ~std::uint64_t{0}},
                  {"part", 1.5}};
  CHECK(local::text_of(r, "t") == "x");
  CHECK_THROWS(local::text_of(r, "n"));
  CHECK_THROWS(local::text_of(r, "z"));
  CHECK(!local::text_if(r, "z"));
  CHECK(local::whole_if(r, "n", 0, 5) == 5);
  CHECK_THROWS(local::whole_if(r, "n", 0, 4));
  CHECK_THROWS(local::whole_if(r, "huge", 0, 4));
  CHECK_THROWS(local::whole_if(r, "part", 0, 4));
  CHECK(local::flag_of(r, "b", false));
  CHECK(local::flag_of(r, "absent", true));
  CHECK_THROWS(local::flag_of(r, "n", true));
}
