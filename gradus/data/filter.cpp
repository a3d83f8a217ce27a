/// Filters: the elements for which a compiled predicate is true.
#include "gradus/base/error.h"
#include "gradus/data/element_work.h"
#include "gradus/data/pipeline_changes.h"

namespace gradus {
namespace {

class FilterPass : public ForwardPass {
 public:
  FilterPass(const ElementWork& work, const Stage& source, std::int64_t epoch)
      : work_(work), source_(source), epoch_(epoch) {}

 private:
  void restart() override {
    pass_ = source_.open(epoch_);
    length_ = source_.length(epoch_);
    candidate_ = 0;
  }
  Tensors next() override {
    while (candidate_ < length_) {
      Tensors element = pass_->at(candidate_);
      if (element.empty()) return {};
      const bool wanted = *work_.apply(element, epoch_, candidate_)[0].host<std::uint8_t>() != 0;
      ++candidate_;
      if (wanted) return element;
    }
    return {};
  }

  const ElementWork& work_;
  const Stage& source_;
  const std::int64_t epoch_;
  std::unique_ptr<Pass> pass_;
  std::int64_t length_ = 0, candidate_ = 0;
};

class FilterStage : public DerivedStage {
 public:
  FilterStage(const StagePointer& source, std::shared_ptr<const ElementWork> work)
      : DerivedStage(source), work_(std::move(work)) {}
  std::string name() const override { return "filter"; }
  std::uint64_t identity() const override { return work_->identity(); }
  bool is_counted() const override { return false; }
  bool repeats_itself() const override { return !work_->is_random() && source().repeats_itself(); }
  StagePointer over(const std::vector<StagePointer>& sources, const PipelineChanges&) const override {
    return std::make_shared<FilterStage>(sources[0], work_of(work_, source(), *sources[0]));
  }
  std::optional<RowLayout> layout(std::int64_t) const override { return {}; }

 protected:
  std::unique_ptr<Pass> make_pass(std::int64_t epoch) const override {
    return std::make_unique<FilterPass>(*work_, source(), epoch);
  }

 private:
  const std::shared_ptr<const ElementWork> work_;
};

}  // namespace

StagePointer filter_stage(StagePointer source, const ElementFunction& trace, ElementFunction run) {
  auto work = std::make_unique<ElementWork>("filter", *source, trace, std::move(run));
  const Spec& answer = work->specs()[0];
  require(answer == Spec{boolean, {}}, "filter: the predicate gives ", answer,
          ", expected one boolean of an element, bool[]; compare, or reduce_all it");
  return std::make_shared<FilterStage>(source, std::move(work));
}

}  // namespace gradus
