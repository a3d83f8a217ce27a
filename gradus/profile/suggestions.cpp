/// Levers: each rests on a number of the report. A gain of less than 5 % of the time is not worth a line.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include "gradus/base/error.h"
#include "gradus/profile/make_report.h"

namespace gradus {
namespace {

using Kind = ActivityEvent::Kind;

constexpr double worth = 0.05;                           // least share of the time that is worth a suggestion
constexpr double much_compiling = 0.1;                   // share of the time, by a function that is traced repeatedly
constexpr std::int64_t many_traces = 3, many_runs = 20;  // traces in the second half of the programs
constexpr double short_step = 300e-6;  // seconds of a program that a larger batch would make worth its while

std::string whole_percent(double share) { return text(std::lround(100 * share), " %"); }
std::string milliseconds(double seconds) {
  TextStream out;
  if (seconds < 1) out.precision(3);
  out << (seconds < 1 ? seconds * 1e3 : std::round(seconds * 1e3)) << " ms";
  return std::move(out).str();
}

class Advisor {
 public:
  Advisor(const ProfileReport& report, const ProfileTimeline& timeline) : report_(report), timeline_(timeline) {
    note(timeline.tracks.front().kept);
    for (const ProfileTimeline::Track& track : timeline.tracks) {
      if (track.kind == ProfileTimeline::TrackKind::data) ++data_threads_;
      if (track.kind == ProfileTimeline::TrackKind::pool && &track != &timeline.tracks.front()) note_help(track.kept);
      for (const ActivityEvent& event : track.kept.events)
        if (event.kind == Kind::stage && event.part == 1) changing_.insert(timeline.name(event.name));
    }
    for (const ProfileRow& row : report.rows) {
      if (row.kind == ProfileKind::kernel && !row.stage.empty()) stage_kernels_ += row.seconds;
      if (row.kind != ProfileKind::stage) continue;
      is_in_order_ = is_in_order_ || is_read_in_order(row.name);
      making_seconds_ += reading_seconds(row);
      if (!is_of_memory(row.name) && !changing_.contains(row.name)) {
        kept_seconds_ += reading_seconds(row);
        if (!dearest_kept_ || reading_seconds(row) > reading_seconds(*dearest_kept_)) dearest_kept_ = &row;
      }
      if (!dearest_stage_ || reading_seconds(row) > reading_seconds(*dearest_stage_)) dearest_stage_ = &row;
    }
  }

  std::vector<Suggestion> all() {
    if (report_.seconds <= 0) return {};
    suggest_prefetch();
    suggest_parallel_map();
    suggest_cache();
    suggest_less_input();
    suggest_compile();
    suggest_fixed_sizes();
    suggest_batch_size();
    suggest_replicas();
    std::ranges::stable_sort(found_, std::greater<>(), &Suggestion::gain_seconds);
    return std::move(found_);
  }

 private:
  /// Stages that a cache would not spare.
  static bool is_of_memory(std::string_view stage) {
    return stage.starts_with("from_tensor") || stage.starts_with("shuffle") || stage.starts_with("batch") ||
           stage.starts_with("cache");
  }
  /// Stages that one data thread reads.
  static bool is_read_in_order(std::string_view stage) {
    return stage.starts_with("from_generator") || stage.starts_with("filter") || stage.starts_with("interleave") ||
           stage.starts_with("bucket");
  }
  /// Notes the time of a pool thread that made elements beside the thread that reads the stage.
  void note_help(const ActivityLog::Kept& kept) {
    for (std::size_t i = 0; i < kept.sums.size(); ++i) {
      if (kept.of_sums[i].first != Kind::stage) continue;
      const double helped = static_cast<double>(kept.sums[i].own_ns) * 1e-9;
      helped_[timeline_.name(kept.of_sums[i].second)] += helped;
      helped_seconds_ += helped;
    }
  }
  /// A stage's time on the threads that read it, for which their readers wait.
  double reading_seconds(const ProfileRow& stage) const {
    const auto helped = helped_.find(stage.name);
    return stage.seconds - (helped == helped_.end() ? 0 : helped->second);
  }
  void note(const ActivityLog::Kept& kept) {
    double fetched = 0, fetched_seen = 0, fetches = 0, later = 0;
    for (std::size_t i = 0; i < kept.sums.size(); ++i) {
      const auto& [kind, name] = kept.of_sums[i];
      const double took = static_cast<double>(kept.sums[i].seconds_ns) * 1e-9;
      if (kind == Kind::fetch) fetched += took;
      if (kind == Kind::run) runs_ = kept.sums[i].calls, run_seconds_ = took;
      if (kind == Kind::compile && timeline_.name(name).starts_with("trace "))
        traces_.try_emplace(timeline_.name(name).substr(6), 0);
    }
    note_traces(kept);
    for (const ActivityEvent& event : kept.events) {
      if (event.kind != Kind::fetch || event.recurs) continue;
      const double took = static_cast<double>(event.end - event.begin) * 1e-9;
      fetched_seen += took;
      (event.part == 1 ? waited_for_ahead_ : waited_for_plain_) += took;
      if (first_epoch_ < 0) first_epoch_ = event.bytes;
      ++fetches;
      if (event.bytes > first_epoch_) waited_in_later_epochs_ += took, ++later;
    }
    if (fetches > 0) later_share_ = later / fetches;
    if (fetched_seen <= 0) return;
    fetched = std::min(fetched, report_.input_wait);  // without compiling within
    for (double* waited : {&waited_for_ahead_, &waited_for_plain_, &waited_in_later_epochs_})
      *waited *= fetched / fetched_seen;  // a long profile does not keep every entry
  }
  /// A trace at the beginning of the work happens once, however long the work is; a trace in the second half of the
  /// programs will happen again.
  void note_traces(const ActivityLog::Kept& kept) {
    const auto all = std::ranges::count(kept.events, Kind::run, &ActivityEvent::kind);
    std::ptrdiff_t before = 0;
    std::map<std::uint64_t, std::ptrdiff_t> last;  // by name: a call may trace more than once
    for (const ActivityEvent& event : kept.events) {
      if (event.kind == Kind::run) ++before;
      if (event.kind != Kind::compile) continue;
      const bool is_late = all > 0 && 2 * before >= all;
      if (is_late) late_compile_ += static_cast<double>(event.own) * 1e-9;
      const std::string& name = timeline_.name(event.name);
      if (!name.starts_with("trace ")) continue;
      const auto [known, is_first] = last.try_emplace(event.name, before);
      const bool is_another = is_first || std::exchange(known->second, before) != before;
      traces_[name.substr(6)] += is_late && is_another ? 1 : 0;
    }
  }
  void suggest(std::string lever, double gain, std::string reason, std::string remedy = {}) {
    if (gain < worth * report_.seconds) return;
    found_.push_back({std::move(lever), std::move(reason), gain, std::move(remedy)});
  }
  double share(double seconds) const { return seconds / report_.seconds; }

  std::string of_dearest() const {
    if (!dearest_stage_) return "";
    return text("most of all by `", dearest_stage_->name, "`, which takes ", milliseconds(dearest_stage_->seconds),
                helped_.contains(dearest_stage_->name) ? " of all threads; " : "; ");
  }

  /// The time that several data threads would save, within the threads that the stages leave free; at best all threads
  /// are busy.
  double spread() const {
    if (is_in_order_ || making_seconds_ <= 0) return 0;
    const double threads = std::max(1, report_.threads), rest = report_.seconds - report_.input_wait;
    const double busy =
        std::clamp(std::max(stage_kernels_, making_seconds_ + helped_seconds_) / making_seconds_, 1.0, threads);
    const double made = std::min(waited_for_plain_, making_seconds_);
    return made + rest - std::max(rest, (busy * made + rest) / threads);
  }

  /// Elements that are made ahead are made while the rest of the loop runs, and by several threads.
  void suggest_prefetch() {
    const double hidden = std::min({waited_for_plain_, making_seconds_, report_.seconds - report_.input_wait});
    const double gain = std::max(hidden, spread());
    if (waited_for_plain_ < worth * report_.seconds) return;
    suggest("prefetch", gain,
            text(whole_percent(share(waited_for_plain_)),
                 " of the time waits for input that is made when it is asked for, ", of_dearest(),
                 "`prefetch` would make it meanwhile", gain > hidden ? ", on several threads," : "", " and hide ",
                 whole_percent(gain / waited_for_plain_), " of that"));
  }

  void suggest_parallel_map() {
    if (!dearest_stage_ || !dearest_stage_->name.starts_with("map") || data_threads_ == 0) return;
    if (data_threads_ >= report_.threads) return;
    const double gain =
        std::min(waited_for_ahead_, making_seconds_) * (1 - data_threads_ / static_cast<double>(report_.threads));
    suggest("parallel map", gain,
            text(whole_percent(share(waited_for_ahead_)), " of the time waits for input although it is made ahead: `",
                 dearest_stage_->name, "` takes ", milliseconds(dearest_stage_->seconds), " on ", data_threads_, " of ",
                 report_.threads, " threads; with `num_parallel_calls` = autotune on all of them the wait would ",
                 "be ", whole_percent(gain / waited_for_ahead_), " less"));
  }

  void suggest_cache() {
    const bool is_cached = std::ranges::any_of(report_.rows, [](const ProfileRow& row) {
      return row.kind == ProfileKind::stage && row.name.starts_with("cache");
    });
    if (is_cached || !dearest_kept_) return;
    suggest("cache", std::min(waited_in_later_epochs_, kept_seconds_ * later_share_),
            text(whole_percent(share(waited_in_later_epochs_)),
                 " of the time waits for elements that an earlier epoch made, ", "most of all by `",
                 dearest_kept_->name, "`; `cache` behind what is the same in every epoch keeps them"));
  }

  /// Suggests less input work if waiting for input dominates and the ways to make input sooner, which come first, leave
  /// most of the wait.
  void suggest_less_input() {
    const double others = std::max({report_.compute, report_.compile, report_.communication, report_.host});
    if (!dearest_stage_ || report_.input_wait < others) return;
    double hidden = 0;
    for (const Suggestion& sooner : found_) hidden = std::max(hidden, sooner.gain_seconds);
    const std::string ahead =
        data_threads_ == 0 ? "" : text("although ", data_threads_, " of ", report_.threads, " threads make it ahead, ");
    suggest(
        "input", std::min(report_.input_wait - hidden, reading_seconds(*dearest_stage_) / std::max(1, data_threads_)),
        text(whole_percent(share(report_.input_wait)), " of the time waits for input, ", ahead, of_dearest(),
             hidden > 0 ? text("making it sooner hides ", whole_percent(hidden / report_.input_wait), " of the wait: ")
                        : "",
             "let `", dearest_stage_->name,
             "` do less for each element, or do it once, in front of `cache` or into a file"));
  }

  void suggest_compile() {
    const std::int64_t one_by_one = runs_ - timeline_.tracks.front().kept.function_runs;
    if (one_by_one < many_runs || 2 * one_by_one < runs_) return;
    suggest("compile", report_.host,
            text(whole_percent(share(report_.host)), " of the time records ops in C++ and starts ", one_by_one,
                 " programs; a step within `function` is recorded once and is one program"));
  }

  void suggest_fixed_sizes() {
    const double lasting = std::min(2 * late_compile_, report_.compile);
    for (const auto& [name, times] : traces_) {
      if (times < many_traces || share(lasting) < much_compiling) continue;
      suggest(
          "fixed sizes", lasting,
          text(whole_percent(share(lasting)), " of the time is compiling that does not end: `", name, "` was traced ",
               times, " times after half of the programs had run; batches of one size are traced once"),
          "explain() says why, and `drop_remainder` or `padded_batch` make sizes equal");
    }
  }

  /// The part of a step's time that does not depend on its batch: starting it, and waiting at barriers.
  void suggest_batch_size() {
    if (runs_ < many_runs || report_.compute <= 0 || run_seconds_ / static_cast<double>(runs_) > short_step) return;
    const double waits = std::min(report_.waiting / std::max(1, report_.threads), report_.compute);
    const double fixed = report_.host + waits;
    if (share(fixed) < 0.5 || traces_.empty()) return;
    suggest("batch size", fixed / 2,
            text(whole_percent(share(fixed)), " of the time starts programs and waits at barriers, which a program of ",
                 milliseconds(run_seconds_ / static_cast<double>(runs_)),
                 " hardly pays for; twice the batch size needs half of that for each example"));
  }

  void suggest_replicas() {
    suggest("replicas", report_.communication / 2,
            text(whole_percent(share(report_.communication)),
                 " of the time waits for other processes; twice the batch of each ",
                 "needs half as many sums for each example"));
  }

  const ProfileReport& report_;
  const ProfileTimeline& timeline_;
  std::vector<Suggestion> found_;
  double waited_for_plain_ = 0, waited_for_ahead_ = 0, waited_in_later_epochs_ = 0, run_seconds_ = 0;
  double making_seconds_ = 0, kept_seconds_ = 0, later_share_ = 0;
  double stage_kernels_ = 0;              // of all threads
  std::map<std::string, double> helped_;  // by stage: seconds of pool threads beside the one that reads it
  double helped_seconds_ = 0;
  bool is_in_order_ = false;  // true if a stage can only be read in order
  std::int64_t first_epoch_ = -1, runs_ = 0;
  int data_threads_ = 0;
  std::map<std::string, std::int64_t> traces_;  // by function: traces in the second half of the programs
  double late_compile_ = 0;                     // seconds of compiling in that half
  const ProfileRow* dearest_stage_ = nullptr;
  const ProfileRow* dearest_kept_ = nullptr;  // of the stages that a cache would save
  std::set<std::string> changing_;            // stages with different elements in each epoch
};

}  // namespace

std::vector<Suggestion> suggestions_of(const ProfileReport& report, const ProfileTimeline& timeline) {
  return Advisor(report, timeline).all();
}

}  // namespace gradus
