/// Interleaving: every element becomes a dataset, and several of these are read by turns, in TensorFlow's order.
#include "gradus/base/error.h"
#include "gradus/data/element_work.h"
#include "gradus/data/rethrow.h"

namespace gradus {
namespace {

/// One of the datasets that take turns.
struct Lane {
  StagePointer stage;
  std::unique_ptr<Pass> pass;
  std::int64_t length = 0, index = 0;
};

class InterleavePass : public ForwardPass {
 public:
  InterleavePass(const PipelineFunction& f, InterleaveOptions options, const Stage& source, std::int64_t epoch,
                 const std::vector<Spec>& specs)
      : f_(f), options_(options), source_(source), epoch_(epoch), specs_(specs) {}

 private:
  void restart() override {
    lanes_.clear();
    lanes_.resize(static_cast<std::size_t>(options_.cycle_length));
    pass_ = source_.open(epoch_);
    length_ = source_.length(epoch_);
    entered_ = in_block_ = 0;
    lane_ = open_ = 0;
    source_ended_ = false;
  }
  Tensors next() override {
    while (!source_ended_ || open_ > 0) {
      Lane& lane = lanes_[lane_];
      if (!lane.pass) {
        if (source_ended_) next_lane();
        else enter(lane);
        continue;
      }
      Tensors element = lane.index < lane.length ? lane.pass->at(lane.index++) : Tensors();
      if (element.empty()) {
        lane.pass.reset();  // before its stage
        lane = {};
        --open_;
        next_lane();
        continue;
      }
      if (++in_block_ == options_.block_length) next_lane();
      return element;
    }
    return {};
  }
  void next_lane() {
    lane_ = (lane_ + 1) % lanes_.size();
    in_block_ = 0;
  }
  void enter(Lane& lane) {
    const Tensors element = entered_ < length_ ? pass_->at(entered_) : Tensors();
    source_ended_ = element.empty();
    if (source_ended_) return;
    try {
      apart_from_recordings([&] { lane.stage = f_(element).with_start(); });
      const std::vector<Spec>& specs = lane.stage->specs();
      require(specs.size() == specs_.size(), "its dataset has ", specs.size(), " fields, that of element 0 has ",
              specs_.size());
      for (std::size_t field = 0; field < specs.size(); ++field)
        require(fits(specs[field], specs_[field]), "field ", field, " of its dataset is ", specs[field],
                ", of that of element 0 ", specs_[field]);
    } catch (...) { rethrow_in(text("interleave, element ", entered_, " of epoch ", epoch_)); }
    lane.pass = lane.stage->open(epoch_);
    lane.length = lane.stage->length(epoch_);
    ++entered_;
    ++open_;
  }

  const PipelineFunction& f_;
  const InterleaveOptions options_;
  const Stage& source_;
  const std::int64_t epoch_;
  const std::vector<Spec>& specs_;
  std::vector<Lane> lanes_;
  std::unique_ptr<Pass> pass_;
  std::int64_t length_ = 0, entered_ = 0, in_block_ = 0;
  std::size_t lane_ = 0, open_ = 0;
  bool source_ended_ = false;
};

class InterleaveStage : public DerivedStage {
 public:
  InterleaveStage(const StagePointer& source, PipelineFunction f, InterleaveOptions options)
      : DerivedStage(source, specs_of(*source, f)), f_(std::move(f)), options_(options) {}
  std::string name() const override {
    return text("interleave(", options_.cycle_length, ", ", options_.block_length, ")");
  }
  bool is_counted() const override { return false; }
  std::int64_t length(std::int64_t epoch) const override { return source().length(epoch) == 0 ? 0 : endless_length; }

 protected:
  std::unique_ptr<Pass> make_pass(std::int64_t epoch) const override {
    return std::make_unique<InterleavePass>(f_, options_, source(), epoch, specs());
  }

 private:
  /// Those of the first dataset.
  static std::vector<Spec> specs_of(const Stage& source, const PipelineFunction& f) {
    const Tensors first = source.length(0) > 0 ? source.open(0)->at(0) : Tensors();
    require(!first.empty(), "interleave: this dataset is empty, so what its elements would become is not known");
    std::vector<Spec> specs;
    apart_from_recordings([&] { specs = f(first).specs(); });
    return specs;
  }
  const PipelineFunction f_;
  const InterleaveOptions options_;
};

}  // namespace

StagePointer interleave_stage(StagePointer source, PipelineFunction f, InterleaveOptions options) {
  return std::make_shared<InterleaveStage>(source, std::move(f), options);
}

}  // namespace gradus
