/// Interleaving: every element becomes a dataset, and several of these are read alternately, in TensorFlow's order.
#include "gradus/base/error.h"
#include "gradus/base/hash.h"
#include "gradus/data/element_work.h"
#include "gradus/data/pipeline_changes.h"
#include "gradus/data/rethrow.h"
#include "gradus/ops/random_key.h"
#include "gradus/ops/random_state.h"

namespace gradus {
namespace {

/// The function, and what it draws without a seed, as shuffles and random maps of its dataset do: that belongs to the
/// epoch and the element, whenever and on whatever thread its turn comes.
class MakeLane {
 public:
  MakeLane(PipelineFunction f, std::string name) : f_(std::move(f)), name_(std::move(name)) {}

  /// The pipeline of the first element, to learn its specs, and if anything is drawn.
  Pipeline sample(const Tensors& first) {
    const std::uint64_t untouched = random_state_of(0);
    std::uint64_t state = untouched;
    std::optional<Pipeline> pipeline;
    try {
      pipeline.emplace(made(first, state));
    } catch (...) { rethrow_in(name_ + ", element 0 of epoch 0"); }
    seed_ = state != untouched ? next_seed() : random_state();
    return *std::move(pipeline);
  }
  Pipeline operator()(const Tensors& element, std::int64_t epoch, std::int64_t index) const {
    const std::uint64_t of_epoch = mix(seed_, static_cast<std::uint64_t>(epoch));
    std::uint64_t state = random_state_of(mix(of_epoch, static_cast<std::uint64_t>(index)));
    return made(element, state);
  }
  /// Opens errors.
  const std::string& name() const { return name_; }

 private:
  Pipeline made(const Tensors& element, std::uint64_t& state) const {
    std::optional<Pipeline> pipeline;
    apart_from_recordings([&] {
      const SeedScope seeds(state);
      pipeline.emplace(f_(element));
    });
    return *std::move(pipeline);
  }
  PipelineFunction f_;
  std::string name_;
  std::uint64_t seed_ = 0;
};

/// One of the datasets that take turns.
struct Lane {
  StagePointer stage;
  std::unique_ptr<Pass> pass;
  std::int64_t length = 0, index = 0;
};

class InterleavePass : public ForwardPass {
 public:
  InterleavePass(const MakeLane& make, InterleaveOptions options, const Stage& source, std::int64_t epoch,
                 const std::vector<Spec>& specs)
      : make_(make), options_(options), source_(source), epoch_(epoch), specs_(specs) {}

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
      lane.stage = make_(element, epoch_, entered_).with_start();
      const std::vector<Spec>& specs = lane.stage->specs();
      require(specs.size() == specs_.size(), "its dataset has ", specs.size(), " fields, that of element 0 has ",
              specs_.size());
      for (std::size_t field = 0; field < specs.size(); ++field)
        require(fits(specs[field], specs_[field]), "field ", field, " of its dataset is ", specs[field],
                ", of that of element 0 ", specs_[field]);
    } catch (...) { rethrow_in(text(make_.name(), ", element ", entered_, " of epoch ", epoch_)); }
    lane.pass = lane.stage->open(epoch_);
    lane.length = lane.stage->length(epoch_);
    ++entered_;
    ++open_;
  }

  const MakeLane& make_;
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
  /// `specs` and `batchings`: those of the pipelines that `make` gives.
  InterleaveStage(const StagePointer& source, MakeLane make, const std::vector<Spec>& specs,
                  std::optional<int> batchings, InterleaveOptions options)
      : DerivedStage(source, specs), make_(std::move(make)), batchings_(batchings), options_(options) {}
  std::string name() const override {
    return text("interleave(", options_.cycle_length, ", ", options_.block_length, ")");
  }
  bool is_counted() const override { return false; }
  /// The results of its function are not known.
  bool repeats_itself() const override { return false; }
  StagePointer over(const std::vector<StagePointer>& sources, const PipelineChanges&) const override {
    return std::make_shared<InterleaveStage>(sources[0], make_, specs(), batchings_, options_);
  }
  std::optional<int> batchings() const override { return batchings_; }
  std::int64_t length(std::int64_t epoch) const override { return source().length(epoch) == 0 ? 0 : endless_length; }

 protected:
  std::unique_ptr<Pass> make_pass(std::int64_t epoch) const override {
    return std::make_unique<InterleavePass>(make_, options_, source(), epoch, specs());
  }

 private:
  const MakeLane make_;
  const std::optional<int> batchings_;
  const InterleaveOptions options_;
};

}  // namespace

StagePointer interleave_stage(StagePointer source, PipelineFunction f, InterleaveOptions options, std::string name) {
  if (name.empty()) name = "interleave";
  const Tensors first = source->length(0) > 0 ? source->open(0)->at(0) : Tensors();
  require(!first.empty(), name, ": this dataset is empty, so what its elements would become is not known");
  MakeLane make(std::move(f), std::move(name));
  const Pipeline sample = make.sample(first);
  return std::make_shared<InterleaveStage>(source, std::move(make), sample.specs(), sample.batchings(), options);
}

}  // namespace gradus
