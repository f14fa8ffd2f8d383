// SPDX-License-Identifier: Apache-2.0
// Problem: people promise an application so many of its own requests a second, such as GETs and
// PUTs, and a device gives VOPs. What a request costs moves with caches and mixtures, and part of
// it comes later: the flushes and compactions that a PUT makes necessary.
// Idea: both are counted and divided. What the requests cost themselves is a mean over about a
// second. What they cause comes in bursts, so it is a mean over the last two minutes in which there
// were requests: a time without any forgets nothing, and the work that is still owed counts for
// them. While a burst is there, the need is what lets as many requests as were promised pass beside
// it: too little, and fewer pass, so each has a larger part of the burst, and the need grows.
//
// Source: the request profiles of Libra (Shue and Freedman, EuroSys'14), which asks the
// application; here the thread and file rules of a policy say what a request is.
// What stays true: a profile never claims more VOPs than the job was served, so whoever writes his
// own counters gains nothing by numbers that no bucket has paid.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policies/allocate.h"

namespace sluice::policies {

/// What is promised of one kind of request.
struct promised_requests {
  double per_s = 0;
  double first_vops = 1;  // of one, while none has been seen
};

/// What a job did of one kind since the last look.
struct request_look {
  double requests = 0;
  double own_vops = 0;     // of the requests themselves
  double caused_vops = 0;  // of the roles that they are said to cause
};

/// VOPs of one request.
struct request_cost {
  double own = 0, caused = 0;  // caused: in the mean
  double all() const { return own + caused; }
};

class request_profile {
 public:
  explicit request_profile(std::vector<promised_requests> promised);

  /// Several times a second. `seen`: by kind; `all_vops`: whatever the job was served since the
  /// last look.
  void look(std::span<request_look const> seen, double all_vops, double span_s);

  std::vector<request_cost> const& costs() const { return costs_; }
  /// What the promise comes to now.
  rate need() const;

 private:
  /// VOPs and requests of the late past.
  struct mean {
    double vops = 0, requests = 0;
    void fade(double stays) { vops *= stays, requests *= stays; }
  };
  struct kind {
    mean own, burst;  // of the last second; of what was caused, of the last third of one
    mean caused;      // of two minutes with requests
    double own_cost = 0, burst_cost = 0;
  };
  std::vector<promised_requests> promised_;
  std::vector<kind> kinds_;
  std::vector<request_cost> costs_;
  double burst_s_ = 0;                         // how long a burst is looked at
  double counted_vops_ = 0, served_vops_ = 0;  // of two minutes
};

/// A reservation that follows a profile.
struct followed_need {
  rate least = 0;  // what it is in any case
  rate most = 0;   // what the policy lets it be
  rate need = 0;   // what the profile says
  rate given = 0;  // set by fit()
};

/// What a reservation takes of the room: all that it needs, or no more than its job wants, which
/// does not wait. `promised`: what it is in any case.
followed_need taking_room(rate promised, rate need, rate served, bool blocked);

/// Gives each what it needs, between its least and its most. Where that comes to more than `room`,
/// what each has above its least is scaled. Returns what lacks then.
rate fit(std::span<followed_need> needs, rate room);

}  // namespace sluice::policies
