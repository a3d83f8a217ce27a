/// Filters: the elements for which a compiled predicate is true, all of them or up to the first for which it is not.
#include "gradus/base/error.h"
#include "gradus/data/element_work.h"
#include "gradus/data/pipeline_changes.h"

namespace gradus {
namespace {

class FilterPass : public ForwardPass {
 public:
  FilterPass(const ElementWork& work, bool ends, const Stage& source, std::int64_t epoch)
      : work_(work), ends_(ends), source_(source), epoch_(epoch) {}

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
      if (ends_) length_ = candidate_;
    }
    return {};
  }

  const ElementWork& work_;
  const bool ends_;  // with the first element that is not wanted
  const Stage& source_;
  const std::int64_t epoch_;
  std::unique_ptr<Pass> pass_;
  std::int64_t length_ = 0, candidate_ = 0;
};

class FilterStage : public DerivedStage {
 public:
  FilterStage(const StagePointer& source, std::shared_ptr<const ElementWork> work, bool ends)
      : DerivedStage(source), work_(std::move(work)), ends_(ends) {}
  std::string name() const override { return ends_ ? "take_while" : "filter"; }
  std::uint64_t identity() const override { return work_->identity(); }
  bool is_counted() const override { return false; }
  bool is_endless() const override { return !ends_ && source().is_endless(); }
  bool repeats_itself() const override { return !work_->is_random() && source().repeats_itself(); }
  StagePointer over(const std::vector<StagePointer>& sources, const PipelineChanges&) const override {
    return std::make_shared<FilterStage>(sources[0], work_of(work_, source(), *sources[0]), ends_);
  }
  std::optional<RowLayout> layout(std::int64_t) const override { return {}; }

 protected:
  std::unique_ptr<Pass> make_pass(std::int64_t epoch) const override {
    return std::make_unique<FilterPass>(*work_, ends_, source(), epoch);
  }

 private:
  const std::shared_ptr<const ElementWork> work_;
  const bool ends_;
};

StagePointer stage_of_predicate(const char* name, const StagePointer& source, const ElementFunction& trace,
                                ElementFunction run, bool ends) {
  auto work = std::make_unique<ElementWork>(name, *source, trace, std::move(run));
  const Spec& answer = work->specs()[0];
  require(answer == Spec{boolean, {}}, name, ": the predicate gives ", answer,
          ", expected one boolean of an element, bool[]; compare, or reduce_all it");
  return std::make_shared<FilterStage>(source, std::move(work), ends);
}

}  // namespace

StagePointer filter_stage(StagePointer source, const ElementFunction& trace, ElementFunction run) {
  return stage_of_predicate("filter", source, trace, std::move(run), false);
}
StagePointer take_while_stage(StagePointer source, const ElementFunction& trace, ElementFunction run) {
  return stage_of_predicate("take_while", source, trace, std::move(run), true);
}

}  // namespace gradus
