// SPDX-License-Identifier: Apache-2.0
// Problem: the background work of a program (flushes and compactions of a store) fills the device
// with large requests, and what people wait for stands behind them.
// Idea: the bandwidth that the foreground leaves is divided among three kinds of background work,
// by how soon the foreground waits for them: a flush, the compaction of the lowest level, and that
// of higher ones. Pure: time is an argument.
//
// Sources: PAIO (Macedo et al., FAST'22), Algorithm 1; SILK (Balmau et al., ATC'19), whose idea
// that is. Both assume that the foreground stays below the device: where a closed loop takes all
// there is, the compaction starves, reads have to look into more files, and all is slower than
// without a control. Ours has guards against that.
// What stays true of ours: while a guard holds nothing is limited, and a guard that is due holds
// within a second; no kind of background work has less than the floor.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "policies/allocate.h"

namespace sluice::policies {

/// Rows of policies/background.def.
enum class tail_algorithm : std::uint8_t {
#define BACKGROUND(symbol, name, is_ready, purpose) symbol,
#include "policies/background.def"
};

/// Background work, the most urgent first.
enum class background : std::uint8_t { flush, low, high };
inline constexpr unsigned background_count = 3;
constexpr unsigned index_of(background b) { return static_cast<unsigned>(b); }

/// By kind of background work.
using background_rates = std::array<rate, background_count>;

struct tail_terms {
  tail_algorithm how = tail_algorithm::guarded;
  rate total = unbounded;       // of the job: what its device gives, or what it may have
  rate foreground = unbounded;  // of it, the most that is kept free for the foreground; ours alone
  rate floor = 0;               // of each kind of background work
};

/// What a job did since the last look.
struct tail_look {
  rate foreground = 0;
  background_rates moved = {};
  std::array<bool, background_count> waits = {};  // held back by its limit
};

enum class tail_sign : std::uint8_t {
  quiet,       // no foreground: nothing is limited
  holding,     // background work has what is left
  debt,        // nothing is limited: background work has been put off for long
  saturation,  // … the foreground wants more than is kept free for it
};
inline constexpr unsigned tail_sign_count = 4;

class tail_latency {
 public:
  void use(tail_terms const& terms) { terms_ = terms; }
  /// Many times a second.
  void look(tail_look const& l, std::int64_t now_ns);

  background_rates const& rates() const { return rates_; }  // unbounded: no limit
  tail_sign sign() const { return sign_; }
  bool is_guarding() const { return sign_ > tail_sign::holding; }

 private:
  /// A mean of the late past.
  struct mean {
    double value = 0;
    void add(double now, double span_s, double of_s);
  };
  struct guards {
    double saturated_s = 0;                            // less what it was not
    std::array<double, background_count> held_s = {};  // the same
    double calm_s = 0;                                 // so far, while a guard holds
    double calm_wanted_s = 1;                          // longer after each guard in vain
    double guarded_s = 0;                              // so far
  };
  void measure(tail_look const& l, double span_s);
  std::optional<tail_sign> due_guard(tail_look const& l) const;
  double kept_free() const;
  bool is_foreground_quiet() const;
  tail_sign unguarded() const {
    return is_foreground_quiet() ? tail_sign::quiet : tail_sign::holding;
  }
  bool has_reason() const;
  void keep_guard(double span_s);
  void guard(tail_sign why);
  background_rates divide(tail_look const& l) const;

  tail_terms terms_;
  background_rates rates_ = {unbounded, unbounded, unbounded};
  tail_sign sign_ = tail_sign::quiet;
  mean foreground_;
  std::array<mean, background_count> moved_;
  guards g_;
  double free_s_ = 1e9;  // since the last guard ended
  std::int64_t looked_ns_ = 0;
  bool has_begun_ = false;
};

/// Algorithm 1 of PAIO, of measured bandwidths.
background_rates divide_paio(tail_terms const& t, rate foreground, background_rates const& moved);
/// After SILK: the same priorities, and higher compactions stop while others run.
background_rates divide_silk(tail_terms const& t, rate foreground, background_rates const& moved);
/// Ours: what is urgent may begin at once, and the rest has what is left of it.
background_rates divide_guarded(tail_terms const& t, rate foreground,
                                background_rates const& moved);

/// `holding`, `debt` …
std::string_view name_of(tail_sign s);
/// The sign as a sentence without its end.
std::string_view words_of(tail_sign s);

}  // namespace sluice::policies
