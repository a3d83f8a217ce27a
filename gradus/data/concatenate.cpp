/// Concatenation: the elements of one dataset, then those of another.
#include "gradus/data/pipeline_changes.h"
#include "gradus/data/stage.h"

namespace gradus {
namespace {

/// Where the length of the first dataset is known.
class ConcatenatePass : public PartedPass {
 public:
  ConcatenatePass(const std::vector<Spec>& specs, const Stage& first, const Stage& second, std::int64_t epoch)
      : PartedPass(specs), length_(first.length(epoch)), parts_{first.open(epoch), second.open(epoch)} {}

 private:
  Place place_of(std::int64_t index) override { return index < length_ ? Place{0, index} : Place{1, index - length_}; }
  Pass& part(std::int64_t number) override { return *parts_[number]; }

  const std::int64_t length_;
  const std::unique_ptr<Pass> parts_[2];
};

/// Where the first dataset ends as it will.
class CountingConcatenatePass : public ForwardPass {
 public:
  CountingConcatenatePass(const std::vector<StagePointer>& parts, std::int64_t epoch) : parts_(parts), epoch_(epoch) {}

 private:
  void restart() override { begin_part(0); }
  Tensors next() override {
    while (true) {
      Tensors element = index_ < length_ ? pass_->at(index_++) : Tensors();
      if (!element.empty() || part_ + 1 == parts_.size()) return element;
      begin_part(part_ + 1);
    }
  }
  void begin_part(std::size_t part) {
    pass_ = parts_[part]->open(epoch_);
    length_ = parts_[part]->length(epoch_);
    part_ = part;
    index_ = 0;
  }
  const std::vector<StagePointer>& parts_;
  const std::int64_t epoch_;
  std::unique_ptr<Pass> pass_;
  std::size_t part_ = 0;
  std::int64_t index_ = 0, length_ = 0;
};

class ConcatenateStage : public JoiningStage {
 public:
  explicit ConcatenateStage(const std::vector<StagePointer>& parts)
      : JoiningStage(parts, specs_of_all("concatenate", parts)) {}
  std::string name() const override { return "concatenate"; }
  bool is_endless() const override { return parts()[0]->is_endless() || parts()[1]->is_endless(); }
  std::int64_t length(std::int64_t epoch) const override {
    return sum_of_lengths(parts()[0]->length(epoch), parts()[1]->length(epoch));
  }
  /// Known if the first dataset ends with a whole element.
  std::optional<RowLayout> layout(std::int64_t epoch) const override {
    const std::optional<RowLayout> first = parts()[0]->layout(epoch), second = parts()[1]->layout(epoch);
    if (!first || !second || first->per_element != second->per_element || first->per_element == 0) return {};
    if (first->rows % first->per_element != 0) return {};
    return RowLayout{sum_of_lengths(first->rows, second->rows), first->per_element};
  }
  StagePointer over(const std::vector<StagePointer>& sources, const PipelineChanges&) const override {
    return std::make_shared<ConcatenateStage>(sources);
  }

 protected:
  std::unique_ptr<Pass> make_pass(std::int64_t epoch) const override {
    if (!parts()[0]->is_counted()) return std::make_unique<CountingConcatenatePass>(parts(), epoch);
    return std::make_unique<ConcatenatePass>(specs(), *parts()[0], *parts()[1], epoch);
  }
};

}  // namespace

StagePointer concatenate_stage(StagePointer first, StagePointer second) {
  return std::make_shared<ConcatenateStage>(std::vector{std::move(first), std::move(second)});
}

}  // namespace gradus
