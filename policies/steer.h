// SPDX-License-Identifier: Apache-2.0
// Steers a capacity by the time that calls take, where nobody knows what the server can do, or
// others use it too. Pure: time is an argument.
//
// Sources: congestion control. A capacity that is used rises while few calls are slow, and is cut
// when too many are (AIMD, Jacobson 1988). It comes back quickly to the rate at which it was cut,
// then probes in steps that grow (CUBIC, Ha et al. 2008). While times rise it waits, and while they
// fall after a cut it does not cut again (the derivative of PIE, RFC 8033). Parts of slow calls and
// mean times decide, because counts of many jobs and nodes can be added up.
// What stays true: the capacity lies between the larger of `least` and what is reserved, and
// `most`; without calls, and where nobody wants more, it does not rise.
#pragma once

#include <cstddef>
#include <cstdint>

#include "policies/allocate.h"

namespace sluice::policies {

/// How calls went that ended since the last look. Adds up over jobs, nodes and relays.
struct call_speeds {
  std::uint64_t samples = 0;  // calls that were timed
  std::uint64_t calls = 0;    // that these stand for
  std::uint64_t slow = 0;     // of `calls`: took longer than is wanted
  std::uint64_t took_ns = 0;  // all of `calls` together
  void add(call_speeds const& more) {
    samples += more.samples;
    calls += more.calls;
    slow += more.slow;
    took_ns += more.took_ns;
  }
};

/// What the policy says.
struct steering {
  rate least = 0, most = unbounded;
  std::uint32_t slow_ppm = 100'000;  // of the calls may be slow, in millionths
  bool is_shadow = false;            // nobody follows: what is served says nothing of the capacity
};

/// What a supply did since the last look.
struct steer_look {
  call_speeds seen;
  rate served = 0;         // mean since the last look
  rate reserved = 0;       // by jobs that want it now
  bool is_wanted = false;  // a job was held back for want of capacity
};

enum class steer_sign : std::uint8_t {
  quiet,    // no calls
  unused,   // few are slow, and nobody wants more
  rising,   // few are slow
  holding,  // about as many are slow as may be
  falling,  // too many are slow
  lowest,   // too many are slow, and less must not be given
  highest,  // few are slow, and more must not be given
};

class steer {
 public:
  static constexpr std::int64_t step_ns = 100'000'000;  // between two changes, at least

  /// The capacity stays, within the new bounds.
  void use(steering const& terms);
  /// Any number of times a second. The first look begins with what is served.
  void look(steer_look const& l, std::int64_t now_ns);

  rate capacity() const { return capacity_; }
  steer_sign sign() const { return sign_; }
  std::uint32_t slow_ppm() const;  // of the calls that the last decision was made of
  steering const& terms() const { return terms_; }

 private:
  struct evidence {  // doubles: it is forgotten bit by bit
    double samples = 0, calls = 0, slow = 0, took_ns = 0;
    void add(evidence const& more, double kept);
    double slow_part() const { return calls > 0 ? slow / calls : 0; }
    double mean_ns() const { return calls > 0 ? took_ns / calls : 0; }
  };
  void decide(std::int64_t now_ns);
  bool is_easing() const;
  bool is_growing_worse() const;
  bool is_too_slow(evidence const& e, double deviations) const;
  void cut(double slow_part, std::int64_t now_ns);
  void note_ceiling(double from);
  void rise();
  void keep_bounds();
  double served() const;

  steering terms_;
  rate capacity_ = 0;
  rate floor_ = 0;
  double ceiling_ = 0;                             // where it was too slow last; 0: not known
  bool is_first_fall_ = true, has_risen_ = false;  // never risen yet; risen since the last cut
  double rise_ = 0.25;                             // next step beyond that, a part of the capacity
  std::size_t cuts_ = 0;                           // one after the other
  evidence fresh_, late_;                          // since the last decision; of half a second
  double served_sum_ = 0;                          // times nanoseconds
  double span_ns_ = 0;
  bool is_wanted_ = false;
  bool has_begun_ = false;
  std::int64_t looked_ns_ = 0, decided_ns_ = 0, settled_ns_ = 0;
  double told_ = 0;       // part of slow calls
  double before_ns_ = 0;  // mean time of the calls of the step before
  steer_sign sign_ = steer_sign::quiet;
};

/// `rising`, `holding` …
char const* name_of(steer_sign s);

}  // namespace sluice::policies
