/// Steps of a copy, as fit takes them.
#include "gradus/advice/trial.h"
#include <algorithm>
#include <cmath>
#include <utility>
#include "gradus/base/threads.h"
#include "gradus/graph/context.h"
#include "gradus/ops/random_state.h"
#include "gradus/profile/profile.h"
#include "gradus/tensor/memory.h"
#include "gradus/train/build.h"

namespace gradus {
namespace {

/// While it lives another number of threads computes.
class ThreadsScope {
 public:
  explicit ThreadsScope(int threads) : before_(num_threads()) {
    if (threads != before_) set_num_threads(threads);
  }
  ~ThreadsScope() {
    if (num_threads() != before_) set_num_threads(before_);
  }
  ThreadsScope(const ThreadsScope&) = delete;

 private:
  const int before_;
};

/// The most bytes on all devices of a strategy.
class Peaks {
 public:
  explicit Peaks(int devices) {
    for (int device = 0; device < devices; ++device) watches_.push_back(std::make_unique<memory::PeakWatch>(device));
  }
  std::size_t bytes() const {
    std::int64_t sum = 0;
    for (const auto& watch : watches_) sum += watch->bytes();
    return static_cast<std::size_t>(std::max(sum, std::int64_t{0}));
  }

 private:
  std::vector<std::unique_ptr<memory::PeakWatch>> watches_;
};

TrainingCopy copy_of(const Training& training, const Setting& setting) {
  TrainingCopy copy = setting.without_dead_channels ? training.copy_without_dead_channels() : training.copy();
  detail::check_is_copy(*training.model, *copy.model, "advise");
  if (setting.policy) copy.model->set_policy(*setting.policy);
  return copy;
}

}  // namespace

/// The settings of a trial while it runs.
class Trial::Scopes {
 public:
  explicit Scopes(Trial& trial) : seeds_(trial.random_), threads_(trial.setting_.threads) {}

 private:
  const Untraced outside_;
  const SeedScope seeds_;
  const ThreadsScope threads_;
};

Trial::Trial(const Training& training, const Setting& setting, const Clock& clock, double deadline,
             std::int64_t batch_rows)
    : clock_(clock), setting_(setting), batch_rows_(batch_rows), random_(random_state_of(0)) {
  const double begin = clock_();
  const Scopes scopes(*this);
  const Peaks peaks(setting.strategy ? setting.strategy->num_replicas_in_sync() : 1);
  copy_ = copy_of(training, setting);
  dataset_ = training.dataset.changed(setting.data).read_ahead_by(setting.ahead);
  build_for_elements(*dataset_, CallMode::training, copy_.task->build);
  FunctionOptions function = setting.function;
  if (function.name.empty()) function.name = "advise";
  if (setting.micro_batch == 0) function = with_signature(std::move(function), dataset_->specs());
  else function.fixes_sizes = true;
  if (setting.strategy) dataset_ = setting.strategy->distributed(*dataset_);
  step_ = std::make_unique<TrainStep>(*copy_.model, *copy_.optimizer, *copy_.task,
                                      TrainStep::Options{.metrics = {},
                                                         .micro_batch = setting.micro_batch,
                                                         .gives_loss = true,
                                                         .function = std::move(function),
                                                         .strategy = setting.strategy});
  fill_caches(deadline);
  take_first_steps(deadline);
  bytes_ = peaks.bytes();
  making_seconds_ = clock_() - begin;
}

std::int64_t Trial::trainable_bytes() const {
  std::int64_t bytes = 0;
  for (const Variable& variable : copy_.model->trainable_variables()) bytes += bytes_of(variable.value().spec());
  return bytes;
}

/// Continues in the data where the last reading ended. A pass that can only be read in order begins again.
void Trial::begin_reading() {
  const bool goes_on = dataset_->cardinality() || dataset_->is_endless();
  reading_ = (goes_on ? dataset_->from(next_) : dataset_->epoch(next_.epoch)).begin();
  if (!reading_->at_end()) return;
  reading_ = dataset_->epoch(next_.epoch + 1).begin();
  next_ = {next_.epoch + 1, 0};
  require<DataError>(!reading_->at_end(), "advise: the data set is empty");
}

void Trial::advance() {
  reading_->advance();
  if (!reading_->at_end()) return;
  next_ = {reading_->position().epoch + 1, 0};
  begin_reading();
}

/// Ensures that the timed epoch finds its elements kept.
void Trial::fill_caches(double deadline) {
  bool caches = setting_.data.cache;
  for_each_stage(dataset_->stage(), [&](const Stage& stage) { caches = caches || stage.name() == "cache"; });
  if (!caches || setting_.data.cached_batches == 0) return;
  const auto reading = dataset_->epoch(0).begin();
  for (std::int64_t batch = 0; batch < setting_.data.cached_batches + 1 && !reading->at_end(); ++batch) {
    (void)reading->element();
    if (clock_() > deadline) return;
    reading->advance();
  }
}

void Trial::take_first_steps(double deadline) {
  begin_reading();
  for (int i = 0; i < first_steps; ++i) {
    const double begin = clock_(), loss = (*step_)(reading_->element()).value().item();
    if (i < compared_steps) losses_.push_back(loss);
    if (i == 0) step_seconds_ = clock_() - begin;
    if (clock_() > deadline || !std::isfinite(loss)) break;
    advance();
    // The least of those behind the first one: others were disturbed, or compiled.
    const double seconds = clock_() - begin;
    step_seconds_ = i < 2 ? seconds : std::min(step_seconds_, seconds);
    is_warm_ = i + 1 == first_steps;
  }
  next_ = reading_->position();
  reading_.reset();
}

double Trial::run(int steps) {
  const Scopes scopes(*this);
  begin_reading();
  (void)reading_->element();  // from here on one is made while another one is used
  std::int64_t rows = 0;
  const double begin = clock_();
  Loss loss;
  for (int i = 0; i < steps; ++i) {
    const Tensors& element = reading_->element();
    rows += element[0].shape().rank() > 0 ? element[0].shape()[0] : 0;
    loss = (*step_)(element);
    advance();
    (void)reading_->element();
  }
  (void)loss.value().item();
  double seconds = (clock_() - begin) / steps;
  next_ = reading_->position();
  reading_.reset();
  if (setting_.data.batch_size && rows > 0)
    seconds *= static_cast<double>(batch_rows_) * steps / static_cast<double>(rows);
  return seconds;
}

ProfileReport Trial::profiled(int steps) {
  return profile([&] { (void)run(steps); });
}

}  // namespace gradus
