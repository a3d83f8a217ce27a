/// advise(): tries changes that could make a training faster, or smaller, on copies, and reports the ones that are
/// worth it.
#pragma once
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>
#include "gradus/advice/training.h"
#include "gradus/base/clock.h"
#include "gradus/base/ranges.h"
#include "gradus/data/dataset.h"
#include "gradus/train/fit.h"

namespace gradus {

namespace detail {
struct Setting;
}  // namespace detail

/// The verdict on a lever.
enum class Verdict : std::uint8_t {
  worth_it,       // its gain is larger than the variation of measurements
  not_worth_it,   // no gain here, a cost above the gain, or nothing to change
  undecided,      // time ran out before the verdict was clear
  does_not_work,  // it failed; the reason says how
};
/// Its name in tables: "worth it".
std::string_view name_of(Verdict verdict);

/// A possible change, and its effect when it was tried on this model and machine.
struct Lever {
  std::string name;                               // "prefetch"; the names of Suggestion::lever, and others
  double seconds_before = 0, seconds_after = 0;   // a step without it and with it, medians; infinite: it does not run
  std::size_t bytes_before = 0, bytes_after = 0;  // the most that a training needed at once, its copy of the model
                                                  // and the optimizer included
  double max_relative_difference = 0;             // of the loss over the first steps
  bool worth_it = false;                          // Verdict::worth_it
  std::string reason;                             // of the verdict, with the numbers that it rests on
  Verdict verdict = Verdict::not_worth_it;        // on taking it
  int pairs = 0;                                  // that were measured
  /// A confidence interval of the median of seconds_after / seconds_before over the pairs: at least 99 %.
  double ratio_low = 1, ratio_high = 1;
  std::string change;      // how to write it: "{.micro_batch = 64}"; empty: nothing to change
  bool is_in_use = false;  // the training has it already
  /// True if the lever changes the learned result: another batch size, or lower precision. Such a lever is taken only
  /// if AdviseOptions::apply names it.
  bool changes_learning = false;
};

/// The result of advise().
struct Advice {
  std::vector<Lever> levers;  // in the order in which they were tried
  FitOptions options;         // the given options, with the taken levers that are options of fit
  /// The data set with the taken levers that belong to it; prefetch is in both.
  std::optional<AnyDataset> dataset = {};
  /// How to write the taken levers: the ones that are worth it, and keep the learned result or are named by
  /// AdviseOptions::apply.
  std::vector<std::string> changes = {};
  /// The parts of a step's time before any change, in words; empty if a step takes too long for a profile.
  std::string where_time_goes = {};
  /// A step before any change, and with all taken levers together, as measured.
  double seconds_before = 0, seconds_after = 0;
  std::size_t bytes_before = 0, bytes_after = 0;  // as of a Lever
  double ratio_low = 1, ratio_high = 1;           // as of a Lever
  int pairs = 0;                                  // measured pairs with all taken levers
  double seconds = 0;                             // duration of all trials

  // For the rooms of the library.
  std::shared_ptr<const detail::Setting> setting = {};  // with all taken levers
  /// Prints where the time goes, a table of the levers, and the gain of all taken levers together.
  friend std::ostream& operator<<(std::ostream& out, const Advice& advice);
};

/// Options of advise.
struct AdviseOptions {
  double max_seconds = 30;  // for all trials; one step of the unchanged training runs even if it takes longer
  bool allow_lower_precision = false;  // try bf16 and float16, too
  /// The training as it is, such as its micro_batch. Trials have no metrics, validation, callbacks and checkpoints.
  FitOptions fit = {};
  std::vector<std::string> levers = {};  // names of the levers to try; empty: all
  /// Levers that are taken if they are worth it although they change the learned result: "batch size", "precision"
  /// (lower precisions are then tried), or one precision, "bf16" or "float16".
  std::vector<std::string> apply = {};
  std::function<double()> clock = detail::steady_seconds;  // in seconds
  static constexpr auto ranges() { return std::array{Allowed::positive("max_seconds")}; }
};

namespace detail {
Advice advise(const Training& training, const AdviseOptions& options);
}  // namespace detail

/// Trains copies for some steps with each lever and without it, alternately, and compares. Levers are tried in the
/// order of their possible gain according to a profile, so those of the data come first if a step waits for its input.
/// Taken levers stay while the others are tried, and in the end all of them are measured together. No lever leaves
/// fewer than 20 updates in one pass over the data, even if the data set repeats. Model, optimizer, data set, random
/// numbers, threads, switches and limits are as before when it returns or throws. A lever that fails is a row with its
/// reason, and so is a lever for which no time is left.
///
/// InvalidArgument for options out of range, and where fit throws one. DataError for an empty data set. Diverged if the
/// loss of the first steps is not finite. ResourceExhausted if no trial fits into memory.
///
///   const Advice advice = advise(model, optimizer, loss, dataset, {.max_seconds = 20});
///   std::cout << advice;
///   fit(model, optimizer, loss, advice.dataset->as<2>(), advice.options);
template <class M, class L, std::size_t N>
  requires LossFor<L, M, N>
Advice advise(const M& model, const Optimizer& optimizer, const L& loss, const Dataset<N>& dataset,
              AdviseOptions options = {}) {
  return detail::advise(detail::training_of<N>(model, optimizer, loss, dataset.pipeline(), options.fit.sample_weight),
                        options);
}

}  // namespace gradus
