/// Resampling by rejection: of each class so many elements are dropped that those which are left are distributed as
/// wanted.
#include <algorithm>
#include "gradus/base/error.h"
#include "gradus/base/hash.h"
#include "gradus/data/element_work.h"
#include "gradus/data/order.h"
#include "gradus/data/pipeline_changes.h"

namespace gradus {
namespace {

/// Elements whose classes are counted together, and what each class counts before any is seen: TensorFlow's numbers.
constexpr std::int64_t counted_at_once = 32, count_before = 10;

/// For each class the probability with which its elements are kept.
std::vector<double> acceptance(const std::vector<double>& target, const std::vector<double>& initial) {
  std::vector<double> kept(target.size());
  for (std::size_t i = 0; i < target.size(); ++i) kept[i] = initial[i] > 0 ? target[i] / initial[i] : 0;
  const double most = std::ranges::max(kept);
  for (double& each : kept) each /= most;
  return kept;
}

struct Resampling {
  std::shared_ptr<const ElementWork> class_of;
  std::vector<double> target, initial;  // no initial: it is estimated
  std::uint64_t seed;
};

class ResamplePass : public ForwardPass {
 public:
  ResamplePass(const Resampling& how, const Stage& source, std::int64_t epoch)
      : how_(how), source_(source), epoch_(epoch), random_(how.seed, static_cast<std::uint64_t>(epoch)) {}

 private:
  struct Labelled {
    Tensors element;  // behind its class
    std::size_t label;
    std::int64_t index;
  };
  void restart() override {
    pass_ = source_.open(epoch_);
    length_ = source_.length(epoch_);
    index_ = 0;
    ready_.clear();
    given_ = 0;
    counts_.assign(how_.target.size(), static_cast<double>(count_before));
  }
  Tensors next() override {
    while (true) {
      for (; given_ < ready_.size(); ++given_)
        if (is_kept(ready_[given_])) return std::move(ready_[given_++].element);
      read_on();
      if (ready_.empty()) return {};
    }
  }
  void read_on() {
    ready_.clear();
    given_ = 0;
    for (std::int64_t i = 0; i < counted_at_once && index_ < length_; ++i) {
      Tensors element = pass_->at(index_);
      if (element.empty()) length_ = index_;
      else ready_.push_back(labelled(std::move(element)));
    }
    for (const Labelled& each : ready_) ++counts_[each.label];
    kept_ = acceptance(how_.target, how_.initial.empty() ? counts_ : how_.initial);
  }
  Labelled labelled(Tensors element) {
    const Tensor label = how_.class_of->apply(element, epoch_, index_)[0];
    const std::int64_t number = integer_of(label);
    require<OutOfRange>(number >= 0 && number < std::ssize(how_.target), "rejection_resample, element ", index_,
                        " of epoch ", epoch_, ": its class is ", number, ", but target_dist has ", how_.target.size(),
                        " classes");
    element.insert(element.begin(), label);
    return {std::move(element), static_cast<std::size_t>(number), index_++};
  }
  bool is_kept(const Labelled& each) const {
    return random_.uniform(static_cast<std::uint64_t>(each.index)) < kept_[each.label];
  }

  const Resampling& how_;
  const Stage& source_;
  const std::int64_t epoch_;
  const Counter random_;
  std::unique_ptr<Pass> pass_;
  std::int64_t length_ = 0, index_ = 0;
  std::vector<Labelled> ready_;
  std::size_t given_ = 0;
  std::vector<double> counts_, kept_;  // by class
};

class ResampleStage : public DerivedStage {
 public:
  ResampleStage(const StagePointer& source, Resampling how)
      : DerivedStage(source, specs_of(how.class_of->specs()[0], source->specs())), how_(std::move(how)) {}
  std::string name() const override { return "rejection_resample"; }
  std::uint64_t identity() const override {
    std::uint64_t hash = mix(how_.class_of->identity(), how_.seed);
    hash = hash_of_bytes(std::as_bytes(std::span(how_.target)), hash);
    return hash_of_bytes(std::as_bytes(std::span(how_.initial)), hash);
  }
  std::string_view remedy() const override { return "give all ranks one seed, by set_seed or {.seed = 1}"; }
  bool is_counted() const override { return false; }
  bool repeats_itself() const override { return false; }
  StagePointer over(const std::vector<StagePointer>& sources, const PipelineChanges&) const override {
    Resampling how = how_;
    how.class_of = work_of(how.class_of, source(), *sources[0]);
    return std::make_shared<ResampleStage>(sources[0], std::move(how));
  }

 protected:
  std::unique_ptr<Pass> make_pass(std::int64_t epoch) const override {
    return std::make_unique<ResamplePass>(how_, source(), epoch);
  }

 private:
  static std::vector<Spec> specs_of(const Spec& label, std::vector<Spec> specs) {
    specs.insert(specs.begin(), label);
    return specs;
  }
  const Resampling how_;
};

}  // namespace

StagePointer resample_stage(StagePointer source, const ElementFunction& trace, ElementFunction run,
                            std::vector<double> target, std::vector<double> initial, std::uint64_t seed) {
  auto work = std::make_unique<ElementWork>("rejection_resample", *source, trace, std::move(run));
  const Spec& label = work->specs()[0];
  require(is_integer(label.dtype) && label.shape.rank() == 0, "rejection_resample: the class of an element is ", label,
          ", expected a scalar integer");
  return std::make_shared<ResampleStage>(source,
                                         Resampling{std::move(work), std::move(target), std::move(initial), seed});
}

}  // namespace gradus
