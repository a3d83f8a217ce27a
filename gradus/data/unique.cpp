/// Unique: each element where it comes for the first time.
#include <string>
#include <unordered_set>
#include "gradus/base/error.h"
#include "gradus/data/pipeline_changes.h"
#include "gradus/data/stage.h"

namespace gradus {
namespace {

/// The bytes of an element, with its sizes where these vary.
std::string key_of_element(const Tensors& element) {
  std::string key;
  for (const Tensor& field : element) {
    for (const std::int64_t size : field.shape()) key.append(reinterpret_cast<const char*>(&size), sizeof size);
    key.append(static_cast<const char*>(field.host()), field.bytes());
  }
  return key;
}

class UniquePass : public ForwardPass {
 public:
  UniquePass(const Stage& source, std::int64_t epoch) : source_(source), epoch_(epoch) {}

 private:
  void restart() override {
    pass_ = source_.open(epoch_);
    length_ = source_.length(epoch_);
    index_ = 0;
    seen_.clear();
  }
  Tensors next() override {
    while (index_ < length_) {
      Tensors element = pass_->at(index_);
      if (element.empty()) return {};
      ++index_;
      if (seen_.insert(key_of_element(element)).second) return element;
    }
    return {};
  }
  const Stage& source_;
  const std::int64_t epoch_;
  std::unique_ptr<Pass> pass_;
  std::int64_t length_ = 0, index_ = 0;
  std::unordered_set<std::string> seen_;
};

class UniqueStage : public DerivedStage {
 public:
  explicit UniqueStage(const StagePointer& source) : DerivedStage(source) {}
  std::string name() const override { return "unique"; }
  bool is_counted() const override { return false; }
  bool is_endless() const override { return false; }
  StagePointer over(const std::vector<StagePointer>& sources, const PipelineChanges&) const override {
    return std::make_shared<UniqueStage>(sources[0]);
  }

 protected:
  std::unique_ptr<Pass> make_pass(std::int64_t epoch) const override {
    return std::make_unique<UniquePass>(source(), epoch);
  }
};

}  // namespace

StagePointer unique_stage(StagePointer source) {
  for (const Spec& spec : source->specs())
    require(is_integer(spec.dtype) || spec.dtype == boolean, "unique: a field is ", spec,
            "; only elements of integers are compared, since NaN equals nothing and 0 equals -0; cast them first");
  return std::make_shared<UniqueStage>(source);
}

}  // namespace gradus
