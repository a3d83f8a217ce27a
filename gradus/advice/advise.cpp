/// The order of the trials, their time, and the verdicts. Decision 309 has the reasons.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <ranges>
#include "gradus/advice/account.h"
#include "gradus/advice/advice.h"
#include "gradus/advice/levers.h"
#include "gradus/advice/turns.h"
#include "gradus/advice/verdict.h"
#include "gradus/base/nearest.h"
#include "gradus/base/threads.h"
#include "gradus/graph/call_context.h"
#include "gradus/graph/context.h"
#include "gradus/ops/random_state.h"

namespace gradus {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double profiled_seconds = 0.3;
constexpr double least_part = 0.05;            // least weight of a lever; one that could gain everything has 1
constexpr double read_part = 0.1;              // share of the time, for reading before a trial
constexpr std::int64_t batches_in_caches = 8;  // of a trial
constexpr double least_whole_gain = 0.02;
constexpr int most_halvings = 5;  // of a batch that has no room

/// Restores the times that the passes of a data set have counted.
class KeptTimes {
 public:
  explicit KeptTimes(const Stage& stage) {
    for_each_stage(stage, [this](const Stage& each) {
      StageTimes& t = each.times();
      kept_.push_back({&t, {t.elements, t.making, t.reads, t.readers_waited, t.threads_waited}});
    });
  }
  ~KeptTimes() {
    for (const auto& [times, values] : kept_) {
      times->elements = values[0];
      times->making = values[1];
      times->reads = values[2];
      times->readers_waited = values[3];
      times->threads_waited = values[4];
    }
  }
  KeptTimes(const KeptTimes&) = delete;

 private:
  std::vector<std::pair<StageTimes*, std::array<std::int64_t, 5>>> kept_;
};

double largest_difference(const std::vector<double>& losses, const std::vector<double>& others) {
  double most = 0;
  for (std::size_t i = 0; i < std::min(losses.size(), others.size()); ++i) {
    const double scale = std::max(std::abs(losses[i]), 1e-12);
    most = std::max(most, std::abs(others[i] - losses[i]) / scale);
  }
  return most;
}

bool all_finite(const std::vector<double>& losses) {
  return std::ranges::all_of(losses, [](double loss) { return std::isfinite(loss); });
}

/// One try of a lever.
struct Tried {
  std::unique_ptr<Trial> trial;  // null: it failed, or there was no time
  Evidence shown;
  std::string failure;  // empty: there was no time
};

class Advising {
 public:
  Advising(const Training& training, const AdviseOptions& options)
      : training_(training),
        options_(options),
        begin_(options.clock()),
        deadline_(begin_ + options.max_seconds),
        circumstances_{.training = training, .options = options, .now = first_setting(training, options.fit)} {}

  Advice run() {
    advice_.options = options_.fit;
    make_first();
    look();
    const std::vector<const LeverKind*> order = ordered();
    std::vector<double> parts = parts_of_time(order);
    for (std::size_t i = 0; i < order.size(); ++i) try_lever(*order[i], parts[i]);
    try_again(order);
    measure_all();
    write_options();
    advice_.seconds = options_.clock() - begin_;
    return std::move(advice_);
  }

 private:
  static Setting first_setting(const Training& training, const FitOptions& fit) {
    Setting setting{.function = fit.function,
                    .micro_batch = fit.micro_batch,
                    .strategy = fit.strategy,
                    .threads = num_threads(),
                    .ahead = fit.prefetch ? fit.prefetch : training.dataset.ahead()};
    setting.function.input_signature.clear();
    return setting;
  }

  double now() const { return options_.clock(); }
  double left() const { return deadline_ - now(); }

  std::unique_ptr<Trial> made(const Setting& setting) const {
    return std::make_unique<Trial>(training_, setting, options_.clock, deadline_, circumstances_.rows);
  }

  // The training as it is.

  void make_first() {
    const std::vector<Spec>& specs = training_.dataset.specs();
    if (const auto rows = training_.dataset.rows()) circumstances_.rows = std::min(rows->first, rows->second);
    if (!specs.empty() && specs[0].shape.rank() > 0 && specs[0].shape[0] > 0) circumstances_.rows = specs[0].shape[0];
    Setting& setting = circumstances_.now;
    setting.data.rows = std::max(circumstances_.rows, std::int64_t{1});
    for_each_stage(training_.dataset.stage(), [&](const Stage& stage) {
      if (const auto size = stage.batch_size(); size && circumstances_.rows == 0) circumstances_.rows = *size;
      if (stage.name() == "cache") setting.data.cached_batches = batches_in_caches;
    });
    if (setting.data.rows == 1 && circumstances_.rows > 1) setting.data.rows = circumstances_.rows;
    try {
      current_ = made(setting);
    } catch (const ResourceExhausted& error) { make_smaller(error.what()); }
    if (!all_finite(current_->losses()))
      throw Diverged(text("advise: the loss of step ", current_->losses().size(),
                          " is not finite, so trials would say nothing. Try a smaller learning rate, inputs of about "
                          "unit size, and from_logits in place of a softmax"));
    first_ = circumstances_.now;
    first_bytes_ = current_->bytes();
  }

  /// As it is it has no room: in parts of its batches it may.
  void make_smaller(const std::string& reason) {
    Setting setting = circumstances_.now;
    std::int64_t part = setting.micro_batch > 0 ? setting.micro_batch : circumstances_.rows;
    for (int halvings = 0; halvings < most_halvings && part > 1 && !current_; ++halvings) {
      setting.micro_batch = part = (part + 1) / 2;
      try {
        current_ = made(setting);
      } catch (const ResourceExhausted&) {}
    }
    require<ResourceExhausted>(current_ != nullptr, "advise: the training has no room, not even in parts of ", part,
                               " rows: ", reason);
    did_not_run_ = true;
    circumstances_.now = setting;
    Lever row{.name = "micro_batch", .seconds_before = infinity, .seconds_after = current_->step_seconds()};
    row.bytes_before = memory_use().limit_bytes;
    row.bytes_after = current_->bytes();
    row.worth_it = true;
    row.verdict = Verdict::worth_it;
    row.ratio_low = row.ratio_high = 0;
    row.change = text("{.micro_batch = ", setting.micro_batch, "}");
    row.reason = text("without it the training has no room: ", reason);
    advice_.changes.push_back(row.change);
    add(std::move(row));
  }

  /// Where the time of the training goes as it is.
  void look() {
    const double step = std::max(current_->step_seconds(), 1e-9);
    if (current_->is_warm() && left() > 3 * step) {
      const int steps = static_cast<int>(std::clamp(std::min(profiled_seconds, left() / 20) / step, 1.0, 50.0));
      circumstances_.profile = current_->profiled(steps);
      const ProfileReport& profile = circumstances_.profile;
      current_seconds_ = std::max(profile.seconds - profile.compile, 1e-9) / steps;
      advice_.where_time_goes = account_of(profile);
    } else {
      current_seconds_ = step;
    }
    first_seconds_ = current_seconds_;
    const Explanation explanation = current_->explain();
    circumstances_.compile_seconds = explanation.compile_seconds;
    circumstances_.temporaries = explanation.peak_bytes;
  }

  // Levers.

  static const LeverKind& kind_of(const Lever& row) {
    return *std::ranges::find(lever_kinds(), row.name, &LeverKind::name);
  }
  static bool is_one_of(const LeverKind& kind, const std::vector<std::string>& names) {
    return std::ranges::any_of(names, [&](const std::string& name) { return is_named(kind, name); });
  }
  bool is_wanted(const LeverKind& kind) const {
    if (kind.is_lower_precision && !options_.allow_lower_precision && !is_one_of(kind, options_.apply)) return false;
    if (std::ranges::any_of(advice_.levers, [&](const Lever& row) { return row.name == kind.name; })) return false;
    return options_.levers.empty() || is_one_of(kind, options_.levers);
  }
  /// True if the lever is taken when it is worth it.
  bool may_take(const LeverKind& kind) const { return !kind.changes_learning() || is_one_of(kind, options_.apply); }

  std::vector<const LeverKind*> ordered() const {
    std::vector<const LeverKind*> order = by_gain(circumstances_);
    std::erase_if(order, [&](const LeverKind* kind) { return !is_wanted(*kind); });
    return order;
  }

  /// For each lever, its share of the time that is left at its turn, in proportion to its possible gain. A part remains
  /// for the final measurement.
  std::vector<double> parts_of_time(const std::vector<const LeverKind*>& order) const {
    double left = least_part;
    std::vector<double> parts;
    for (const LeverKind* kind : std::views::reverse(order)) {
      const double part = std::clamp(gain_of(*kind, circumstances_), least_part, 1.0);
      parts.push_back(part / (left += part));
    }
    std::ranges::reverse(parts);
    return parts;
  }

  void add(Lever row) { advice_.levers.push_back(std::move(row)); }

  /// A row without a comparison.
  Lever plain_row(const LeverKind& kind, Verdict verdict, std::string reason) const {
    return {.name = std::string(kind.name),
            .seconds_before = current_seconds_,
            .seconds_after = current_seconds_,
            .bytes_before = current_->bytes(),
            .bytes_after = current_->bytes(),
            .reason = std::move(reason),
            .verdict = verdict,
            .changes_learning = kind.changes_learning()};
  }

  /// The training before a lever that is not taken.
  struct Kept {
    std::unique_ptr<Trial> trial;
    Setting setting;
    double seconds;
    int adopted;
  };

  /// `part`: the lever's share of the time that is left.
  void try_lever(const LeverKind& kind, double part) {
    circumstances_.has_time = current_->is_warm() && left() > 3 * current_seconds_;
    circumstances_.reading_seconds = read_part * left();
    Proposals proposals;
    try {
      proposals = kind.propose(circumstances_);
    } catch (const Error& error) { return add(plain_row(kind, Verdict::does_not_work, error.what())); }
    std::optional<Lever> row;
    std::optional<Kept> kept;
    bool leaves = false;
    for (const Proposal& proposal : proposals.tries) {
      // Time that a lever does not use goes to the remaining ones.
      Tried tried = try_setting(kind, proposal, now() + part * left());
      if (!tried.trial || tried.shown.times.pairs() == 0) {
        if (row && row->worth_it) break;
        const bool failed = !tried.failure.empty();
        row = plain_row(kind, failed ? Verdict::does_not_work : Verdict::undecided,
                        failed ? tried.failure : "undecided, 0 pairs: there was no time for a trial");
        row->change = proposal.change;
        if (failed) continue;
        break;
      }
      Judgement judged = judge(kind, proposal, proposals.is_in_use, tried.shown);
      const bool goes_on = row && row->worth_it;
      if (judged.adopts && !kept && !may_take(kind))
        kept = {std::move(current_), circumstances_.now, current_seconds_, adopted_};
      if (judged.adopts)
        adopt(std::move(tried.trial), proposals.is_in_use ? judged.row.seconds_before : judged.row.seconds_after);
      if (!goes_on) row = std::move(judged.row);
      else if (judged.adopts) row = joined(*row, judged.row);
      leaves = leaves || (judged.adopts && proposals.is_in_use);
      if (!judged.adopts) break;
    }
    if (!row) row = plain_row(kind, Verdict::not_worth_it, proposals.reason);
    row->is_in_use = proposals.is_in_use;
    if (kept) put_back(std::move(*kept));
    if (leaves) advice_.changes.push_back("without " + row->change);
    else if (row->worth_it && !row->is_in_use && may_take(kind)) advice_.changes.push_back(row->change);
    else if (row->worth_it && !row->is_in_use)
      row->reason += "; it changes what is learned, so it is taken by name alone";
    add(std::move(*row));
  }

  void put_back(Kept kept) {
    current_ = std::move(kept.trial);
    circumstances_.now = std::move(kept.setting);
    current_seconds_ = kept.seconds;
    adopted_ = kept.adopted;
  }

  /// Tries undecided levers again, with the time that others have left, and levers whose result may differ since other
  /// ones were taken.
  void try_again(const std::vector<const LeverKind*>& order) {
    const std::vector<Lever> found = advice_.levers;
    std::vector<const LeverKind*> again;
    for (const LeverKind* kind : order) {
      const auto row = std::ranges::find(found, kind->name, &Lever::name);
      const bool data_changed = std::any_of(row, found.end(), [](const Lever& later) {
        return later.worth_it && !later.is_in_use && kind_of(later).is_of_data;
      });
      if (row->verdict == Verdict::undecided || may_gain_since(*kind, *row, data_changed)) again.push_back(kind);
    }
    for (std::size_t i = 0; i < again.size(); ++i) {
      const auto row = std::ranges::find(advice_.levers, again[i]->name, &Lever::name);
      Lever before = std::move(*row);
      advice_.levers.erase(row);
      try_lever(*again[i], 1 / static_cast<double>(again.size() - i + 1));
      // Keeps the earlier measurement if the new one has fewer pairs.
      if (advice_.levers.back().verdict == Verdict::undecided && advice_.levers.back().pairs < before.pairs)
        advice_.levers.back() = std::move(before);
    }
  }

  void adopt(std::unique_ptr<Trial> trial, double seconds) {
    current_ = std::move(trial);
    circumstances_.now = current_->setting();
    current_seconds_ = seconds;
    ++adopted_;
  }

  /// At least, with two turns of a step.
  double seconds_of_trial(const Proposal& proposal) const {
    return current_->making_seconds() + (proposal.times_longer * first_steps + 2) * current_seconds_;
  }

  Tried try_setting(const LeverKind& kind, const Proposal& proposal, double slot) {
    Tried tried;
    if (!current_->is_warm() || left() < seconds_of_trial(proposal)) return tried;
    try {
      auto trial = made(proposal.setting);
      if (!all_finite(trial->losses())) {
        tried.failure = text("the loss of step ", trial->losses().size(), " is not finite");
        return tried;
      }
      tried.shown = {
          by_turns(*current_, *trial, options_.clock, {slot, deadline_, kind.least_gain}), current_->bytes(),
          trial->bytes() + proposal.more_bytes,
          kind.is_another_training || kind.reads_a_part ? 0 : largest_difference(current_->losses(), trial->losses())};
      tried.trial = std::move(trial);
    } catch (const Error& error) { tried.failure = error.what(); }
    return tried;
  }

  // All that is worth it.

  void measure_all() {
    advice_.seconds_before = did_not_run_ ? infinity : first_seconds_;
    advice_.seconds_after = current_seconds_;
    advice_.bytes_before = first_bytes_;
    advice_.bytes_after = current_->bytes();
    if (did_not_run_ || adopted_ == 0) return;
    if (left() < current_->making_seconds() + 4 * (current_seconds_ + first_seconds_)) return;
    const auto first = made(first_);
    const Comparison times = by_turns(*first, *current_, options_.clock, {deadline_, deadline_, least_whole_gain});
    if (times.pairs() == 0) return;
    advice_.seconds_before = times.median_before();
    advice_.seconds_after = times.median_after();
    advice_.pairs = times.pairs();
    advice_.ratio_low = times.low();
    advice_.ratio_high = times.high();
    if (times.is_slower()) forget_all(times);
  }

  /// Together they are slower than none.
  void forget_all(const Comparison& times) {
    for (Lever& row : advice_.levers)
      if (row.worth_it && !row.is_in_use && may_take(kind_of(row))) {
        row.worth_it = false;
        row.verdict = Verdict::not_worth_it;
        row.reason += text("; but with all that was worth it a step takes ", times.ratio(), " of what it took");
      }
    advice_.changes.clear();
    circumstances_.now = first_;
  }

  void write_options() {
    const Setting& now = circumstances_.now;
    FitOptions& fit = advice_.options;
    fit.function.disable = now.function.disable;
    fit.function.max_bytes = now.function.max_bytes;
    fit.function.run_eagerly = now.function.run_eagerly;
    fit.micro_batch = now.micro_batch;
    fit.strategy = now.strategy;
    const bool reads_otherwise = now.ahead.buffers != first_.ahead.buffers;
    if (reads_otherwise) {
      fit.prefetch = detail::not_given<PrefetchOptions>();
      if (now.ahead.buffers != 0) fit.prefetch = now.ahead;
    }
    advice_.setting = std::make_shared<const Setting>(now);
    PipelineChanges changes = now.data;
    changes.cached_batches = 0;
    const bool changes_stages = changes.batch_size || changes.parallel_calls || changes.cache;
    Pipeline dataset = changes_stages ? training_.dataset.changed(changes) : training_.dataset;
    if (reads_otherwise) dataset = dataset.read_ahead_by(now.ahead);
    advice_.dataset = AnyDataset(std::move(dataset));
  }

  const Training& training_;
  const AdviseOptions& options_;
  const double begin_, deadline_;
  Circumstances circumstances_;
  Setting first_;
  double first_seconds_ = 0;
  std::size_t first_bytes_ = 0;
  std::unique_ptr<Trial> current_;  // with the levers taken so far
  double current_seconds_ = 0;
  int adopted_ = 0;
  bool did_not_run_ = false;
  Advice advice_;
};

void check_names(const AdviseOptions& options) {
  std::vector<std::string> names, that_change{"precision"};
  for (const LeverKind& kind : lever_kinds()) {
    names.emplace_back(kind.name);
    if (kind.changes_learning()) that_change.emplace_back(kind.name);
  }
  const auto is_any = [](const std::string& name, bool that_changes) {
    return std::ranges::any_of(lever_kinds(), [&](const LeverKind& kind) {
      return is_named(kind, name) && (kind.changes_learning() || !that_changes);
    });
  };
  for (const std::string& name : options.levers)
    require(is_any(name, false), "advise: there is no lever `", name, "`", did_you_mean(name, names));
  for (const std::string& name : options.apply) {
    require(is_any(name, true) || !is_any(name, false), "advise: apply: the lever `", name,
            "` keeps what is learned, so it is taken without being named; to try no other one, say it in `levers`");
    require(is_any(name, true), "advise: apply: expected `batch size` or `precision`, the levers that change what is ",
            "learned, got `", name, "`", did_you_mean(name, that_change));
  }
}

void check(const Training& training, const AdviseOptions& options) {
  check_options("advise", options);
  require(static_cast<bool>(options.clock), "advise: there is no clock");
  require(CallContext::here().log == nullptr,
          "advise: a profile of this thread is being taken, and trials take profiles of their own; call it outside");
  check_names(options);
  const Pipeline& dataset = training.dataset;
  require<DataError>(dataset.cardinality() != 0, "advise: the data set is empty");
  require(!dataset.is_distributed(), "advise: a strategy has distributed the data set; give the data set itself");
  require(!options.fit.strategy || options.fit.strategy->ranks() == 1,
          "advise: the strategy is of several processes, which a trial does not have; ask on one of them without it");
  check_batched("advise: the data set", dataset.specs(), dataset.batchings(), options.fit.unbatched);
}

}  // namespace

Advice detail::advise(const Training& training, const AdviseOptions& options) {
  check(training, options);
  const Untraced outside;
  std::uint64_t state = random_state_of(0);
  const SeedScope seeds(state);
  const KeptTimes times(training.dataset.stage());
  return Advising(training, options).run();
}

}  // namespace gradus
