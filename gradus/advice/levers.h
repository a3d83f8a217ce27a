/// The levers: a table of possible changes, in one row each.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include "gradus/advice/advice.h"
#include "gradus/advice/trial.h"
#include "gradus/base/rooms.h"

namespace gradus {

/// The state that levers are chosen by.
struct Circumstances {
  const Training& training;
  const AdviseOptions& options;
  Setting now;
  ProfileReport profile;        // of some steps as they were at first
  std::int64_t rows = 0;        // of a batch; 0: not known
  std::size_t temporaries = 0;  // bytes that a step keeps between its kernels; 0: not known
  double compile_seconds = 0;   // of the step
  bool has_time = true;         // for reading elements before a trial
  double reading_seconds = 0;   // limit for that reading

  /// The share of a step's time without compiling, which happens once; 0 if no profile was taken.
  double share(double seconds) const {
    const double steps = profile.seconds - profile.compile;
    return steps > 0 ? seconds / steps : 0;
  }
  double waits_for_input() const { return share(profile.input_wait); }
  /// True if it is known that hardly anything waits for input.
  bool has_its_input() const { return profile.seconds > 0 && waits_for_input() < 0.01; }
};

/// Something to try.
struct Proposal {
  Setting setting;
  std::string change = {};     // how to write it
  std::size_t more_bytes = 0;  // beyond the memory that a trial measures
  double times_longer = 1;     // how much longer the steps of a trial may take, before one is begun
};

/// The proposals of a lever before it is tried.
struct Proposals {
  /// In their order: a further one is tried after one that was worth it, or after one that finds no room in memory or
  /// is refused.
  std::vector<Proposal> tries = {};
  std::string reason = {};  // why there are none
  bool is_in_use = false;   // the trial is the training without the lever
};

/// A row of the table.
struct LeverKind {
  std::string_view name;
  double (*gain)(const Circumstances&);  // the share of a step's time that it could gain at most; only the order counts
  Proposals (*propose)(const Circumstances&);
  double least_gain = 0.02;          // a smaller gain is not worth a change
  double most_difference = 1e-3;     // of losses
  bool is_lower_precision = false;   // tried where that is allowed
  bool is_another_training = false;  // whose losses are others
  bool reads_a_part = false;         // a trial reads some elements again and again, so its losses are others
  bool is_of_data = false;           // it changes how elements are made
  bool is_of_step = false;           // changes only the computation on a batch, nothing before it

  /// True if the lever changes the learned result.
  bool changes_learning() const { return is_lower_precision || is_another_training; }
};

std::span<const LeverKind> lever_kinds();
/// True if this name means the lever: "batch_size" is "batch size", and "precision" is every lower precision.
bool is_named(const LeverKind& kind, std::string_view name);
/// The largest share of a step's time that the lever could gain; for a lever of the step, a share of the time that does
/// not wait for input.
double gain_of(const LeverKind& kind, const Circumstances& circumstances);
/// All levers, the one with the largest possible gain first.
std::vector<const LeverKind*> by_gain(const Circumstances& circumstances);

/// The least number of updates in an epoch with any larger batch that is proposed.
inline constexpr std::int64_t least_updates = 20;

/// True if the result for a lever may differ now: elements are made in another way since, and it concerns their making.
/// An example is `prefetch`, which hides little while the source takes all cores, and much once a cache has taken the
/// place of the source.
bool may_gain_since(const LeverKind& kind, const Lever& row, bool data_changed);

}  // namespace gradus
