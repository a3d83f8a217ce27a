/// Several datasets by turns: drawn at random, or chosen by the elements of another dataset.
#include <algorithm>
#include <optional>
#include <span>
#include "gradus/base/error.h"
#include "gradus/base/hash.h"
#include "gradus/data/element_work.h"
#include "gradus/data/order.h"
#include "gradus/data/pipeline_changes.h"

namespace gradus {
namespace {

/// Draws a part for each element. What is drawn of a part that has ended is passed over.
class DrawnOrder {
 public:
  DrawnOrder(std::vector<double> weights, std::vector<std::int64_t> lengths, const Counter& random)
      : bounds_(std::move(weights)), lengths_(std::move(lengths)), random_(random), now_{0, {}} {
    for (std::size_t i = 1; i < bounds_.size(); ++i) bounds_[i] += bounds_[i - 1];
    now_.taken.assign(lengths_.size(), 0);
  }

  struct Drawn {
    std::size_t part;
    std::int64_t index;
    bool has_ended;  // the part has no such element
  };
  /// The part that is drawn next, and its element.
  Drawn draw() {
    const double place = random_.uniform(now_.draws++) * bounds_.back();
    const auto past = static_cast<std::size_t>(std::ranges::upper_bound(bounds_, place) - bounds_.begin());
    const std::size_t part = std::min(past, bounds_.size() - 1);  // the product may have been rounded up
    const bool has_ended = now_.taken[part] == lengths_[part];
    return {part, has_ended ? lengths_[part] : now_.taken[part]++, has_ended};
  }
  /// The part and index of element `index`, which is less than the sum of all lengths.
  Drawn at(std::int64_t index) {
    if (index == next_ - 1) return last_;
    if (index < next_ || index - next_ >= spacing) go_to_mark_before(index);
    while (next_ <= index) {
      if (next_ % spacing == 0 && next_ / spacing == std::ssize(marks_)) marks_.push_back(now_);
      do last_ = draw();
      while (last_.has_ended);
      ++next_;
    }
    return last_;
  }

 private:
  static constexpr std::int64_t spacing = 1024;
  struct State {
    std::uint64_t draws;
    std::vector<std::int64_t> taken;  // of each part
  };
  void go_to_mark_before(std::int64_t index) {
    const std::int64_t mark = std::min(index / spacing, std::ssize(marks_) - 1);
    if (mark < 0 || (index >= next_ && mark * spacing <= next_)) return;
    now_ = marks_[static_cast<std::size_t>(mark)];
    next_ = mark * spacing;
  }
  std::vector<double> bounds_;  // sums of weights
  const std::vector<std::int64_t> lengths_;
  const Counter random_;
  State now_;
  std::vector<State> marks_;  // before elements 0, 1024, 2048 ...
  std::int64_t next_ = 0;
  Drawn last_{};
};

/// Where the lengths of all parts are known.
class SampledPass : public PartedPass {
 public:
  SampledPass(const std::vector<Spec>& specs, std::vector<std::unique_ptr<Pass>> passes, DrawnOrder order)
      : PartedPass(specs), passes_(std::move(passes)), order_(std::move(order)) {}

 private:
  Place place_of(std::int64_t index) override {
    const DrawnOrder::Drawn drawn = order_.at(index);
    return {static_cast<std::int64_t>(drawn.part), drawn.index};
  }
  Pass& part(std::int64_t number) override { return *passes_[static_cast<std::size_t>(number)]; }
  const std::vector<std::unique_ptr<Pass>> passes_;
  DrawnOrder order_;
};

/// Parts that are read in order, each as far as its turn comes.
class TurnsPass : public ForwardPass {
 public:
  TurnsPass(const std::vector<StagePointer>& parts, std::int64_t epoch, bool stop_on_empty)
      : parts_(parts), epoch_(epoch), stop_on_empty_(stop_on_empty) {}

 protected:
  void restart() override {
    turns_.clear();
    for (const StagePointer& part : parts_) turns_.push_back({part->open(epoch_), part->length(epoch_)});
    open_ = turns_.size();
    is_stopped_ = false;
  }
  Tensors next() override {
    while (open_ > 0 && !is_stopped_) {
      const std::optional<std::size_t> part = choose();
      if (!part) break;
      Turn& turn = turns_[*part];
      if (turn.has_ended) continue;
      Tensors element = turn.index < turn.length ? turn.pass->at(turn.index++) : Tensors();
      if (!element.empty()) return element;
      turn.has_ended = true;
      --open_;
      is_stopped_ = stop_on_empty_;
    }
    is_stopped_ = true;
    return {};
  }
  /// The part whose turn it is; none at the end.
  virtual std::optional<std::size_t> choose() = 0;
  std::int64_t epoch() const { return epoch_; }

 private:
  struct Turn {
    std::unique_ptr<Pass> pass;
    std::int64_t length, index = 0;
    bool has_ended = false;
  };
  const std::vector<StagePointer> parts_;
  const std::int64_t epoch_;
  const bool stop_on_empty_;
  std::vector<Turn> turns_;
  std::size_t open_ = 0;
  bool is_stopped_ = false;
};

class DrawnTurnsPass : public TurnsPass {
 public:
  DrawnTurnsPass(const std::vector<StagePointer>& parts, std::int64_t epoch, bool stop_on_empty, DrawnOrder order)
      : TurnsPass(parts, epoch, stop_on_empty), fresh_(order), order_(std::move(order)) {}

 private:
  void restart() override {
    TurnsPass::restart();
    order_.emplace(fresh_);
  }
  std::optional<std::size_t> choose() override { return order_->draw().part; }
  const DrawnOrder fresh_;
  std::optional<DrawnOrder> order_;
};

class SampleStage : public JoiningStage {
 public:
  SampleStage(const std::vector<StagePointer>& parts, std::vector<double> weights, SampleOptions options,
              std::uint64_t seed)
      : JoiningStage(parts, specs_of_all("sample_from_datasets", parts)),
        weights_(std::move(weights)),
        options_(options),
        seed_(seed) {}
  std::string name() const override { return "sample_from_datasets"; }
  std::uint64_t identity() const override {
    std::uint64_t hash = mix(mix(seed_, options_.stop_on_empty_dataset), options_.rerandomize_each_iteration);
    return hash_of_bytes(std::as_bytes(std::span(weights_)), hash);
  }
  std::string_view remedy() const override { return "give all ranks one seed, by set_seed or {.seed = 1}"; }
  bool is_counted() const override { return !options_.stop_on_empty_dataset && JoiningStage::is_counted(); }
  bool is_endless() const override {
    const auto is_endless = [](const StagePointer& part) { return part->is_endless(); };
    return options_.stop_on_empty_dataset ? std::ranges::all_of(parts(), is_endless)
                                          : std::ranges::any_of(parts(), is_endless);
  }
  bool repeats_itself() const override {
    return !options_.rerandomize_each_iteration && JoiningStage::repeats_itself();
  }
  std::int64_t length(std::int64_t epoch) const override {
    std::int64_t length = 0;
    for (const StagePointer& part : parts()) length = sum_of_lengths(length, part->length(epoch));
    return length;
  }
  std::optional<RowLayout> layout(std::int64_t) const override { return {}; }
  StagePointer over(const std::vector<StagePointer>& sources, const PipelineChanges&) const override {
    return std::make_shared<SampleStage>(sources, weights_, options_, seed_);
  }

 protected:
  std::unique_ptr<Pass> make_pass(std::int64_t epoch) const override {
    std::vector<std::int64_t> lengths(parts().size(), endless_length);
    if (is_counted()) std::ranges::transform(parts(), lengths.begin(), [&](auto& part) { return part->length(epoch); });
    const Counter random(seed_, static_cast<std::uint64_t>(options_.rerandomize_each_iteration ? epoch : 0));
    DrawnOrder order(weights_, std::move(lengths), random);
    if (!is_counted())
      return std::make_unique<DrawnTurnsPass>(parts(), epoch, options_.stop_on_empty_dataset, std::move(order));
    std::vector<std::unique_ptr<Pass>> passes;
    for (const StagePointer& part : parts()) passes.push_back(part->open(epoch));
    return std::make_unique<SampledPass>(specs(), std::move(passes), std::move(order));
  }

 private:
  const std::vector<double> weights_;
  const SampleOptions options_;
  const std::uint64_t seed_;
};

class ChosenTurnsPass : public TurnsPass {
 public:
  ChosenTurnsPass(const std::vector<StagePointer>& parts, const Stage& choices, std::int64_t epoch, bool stop_on_empty)
      : TurnsPass(parts, epoch, stop_on_empty), count_(std::ssize(parts)), stage_(choices) {}

 private:
  void restart() override {
    TurnsPass::restart();
    choices_ = stage_.open(epoch());
    length_ = stage_.length(epoch());
    made_ = 0;
  }
  std::optional<std::size_t> choose() override {
    const Tensors choice = made_ < length_ ? choices_->at(made_) : Tensors();
    if (choice.empty()) return {};
    const std::int64_t part = integer_of(choice[0]);
    require<OutOfRange>(part >= 0 && part < count_, "choose_from_datasets: element ", made_, " of the choices is ",
                        part, ", expected 0 to ", count_ - 1, ", the number of a dataset");
    ++made_;
    return static_cast<std::size_t>(part);
  }
  const std::int64_t count_;
  const Stage& stage_;
  std::unique_ptr<Pass> choices_;
  std::int64_t length_ = 0, made_ = 0;
};

/// Its last source is the dataset of choices.
class ChooseStage : public JoiningStage {
 public:
  ChooseStage(const std::vector<StagePointer>& parts_and_choices, bool stop_on_empty)
      : JoiningStage(parts_and_choices, specs_of_all("choose_from_datasets", without_choices(parts_and_choices))),
        stop_on_empty_(stop_on_empty) {}
  std::string name() const override { return "choose_from_datasets"; }
  std::uint64_t identity() const override { return stop_on_empty_; }
  bool is_counted() const override { return false; }
  std::optional<int> batchings() const override { return parts()[0]->batchings(); }
  std::int64_t length(std::int64_t epoch) const override { return parts().back()->length(epoch); }
  std::optional<RowLayout> layout(std::int64_t) const override { return {}; }
  StagePointer over(const std::vector<StagePointer>& sources, const PipelineChanges&) const override {
    return std::make_shared<ChooseStage>(sources, stop_on_empty_);
  }

 protected:
  std::unique_ptr<Pass> make_pass(std::int64_t epoch) const override {
    return std::make_unique<ChosenTurnsPass>(without_choices(parts()), *parts().back(), epoch, stop_on_empty_);
  }

 private:
  static std::vector<StagePointer> without_choices(const std::vector<StagePointer>& all) {
    return {all.begin(), all.end() - 1};
  }
  const bool stop_on_empty_;
};

}  // namespace

StagePointer sample_stage(std::vector<StagePointer> parts, std::vector<double> weights, SampleOptions options,
                          std::uint64_t seed) {
  return std::make_shared<SampleStage>(parts, std::move(weights), options, seed);
}

StagePointer choose_stage(std::vector<StagePointer> parts, StagePointer choices, bool stop_on_empty) {
  parts.push_back(std::move(choices));
  return std::make_shared<ChooseStage>(parts, stop_on_empty);
}

}  // namespace gradus
