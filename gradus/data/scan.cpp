/// Scans: a state goes from element to element, and each gives a result.
#include "gradus/base/error.h"
#include "gradus/base/hash.h"
#include "gradus/data/element_work.h"
#include "gradus/data/pipeline_changes.h"

namespace gradus {
namespace {

Tensors joined(const Tensors& state, const Tensors& element) {
  Tensors all = state;
  all.insert(all.end(), element.begin(), element.end());
  return all;
}

/// Elements of the source behind a state: what the function of a scan is traced with.
class BehindState : public DerivedStage {
 public:
  BehindState(const StagePointer& source, Tensors state, const std::vector<Spec>& specs)
      : DerivedStage(source, joined_specs(specs, source->specs())), state_(std::move(state)) {}
  std::string name() const override { return "scan"; }

 protected:
  std::unique_ptr<Pass> make_pass(std::int64_t epoch) const override {
    struct StatePass : Pass {
      StatePass(std::unique_ptr<Pass> s, const Tensors& before) : source(std::move(s)), state(before) {}
      Tensors at(std::int64_t index) override {
        const Tensors element = source->at(index);
        return element.empty() ? element : joined(state, element);
      }
      const std::unique_ptr<Pass> source;
      const Tensors& state;
    };
    return std::make_unique<StatePass>(source().open(epoch), state_);
  }

 private:
  static std::vector<Spec> joined_specs(std::vector<Spec> specs, const std::vector<Spec>& element) {
    specs.insert(specs.end(), element.begin(), element.end());
    return specs;
  }
  const Tensors state_;
};

/// The function of a scan, traced with states of all sizes that it gives.
struct ScanWork {
  std::shared_ptr<const ElementWork> step;
  Tensors state;            // the first one
  std::vector<Spec> specs;  // of any state
  bool widen();
};

/// The specs of states, with any_size where the step gives another size. False if they fitted.
bool ScanWork::widen() {
  bool fitted = true;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const Spec& given = step->specs()[i];
    Spec& known = specs[i];
    require(given.dtype == known.dtype && given.shape.rank() == known.shape.rank(), "scan: state ", i, " is ",
            state[i].spec(), " at first, and ", given, " after an element; give it one dtype and number of dimensions");
    if (widen_sizes(known.shape, given.shape)) fitted = false;
  }
  return !fitted;
}

ScanWork scan_work(const StagePointer& source, Tensors state, const ElementFunction& trace, ElementFunction run) {
  ScanWork work{nullptr, std::move(state), {}};
  for (const Tensor& each : work.state) work.specs.push_back({each.dtype(), each.shape()});
  do {
    work.step = std::make_shared<const ElementWork>("scan", BehindState(source, work.state, work.specs), trace, run);
  } while (work.widen());
  return work;
}

class ScanPass : public ForwardPass {
 public:
  ScanPass(const ScanWork& work, const Stage& source, std::int64_t epoch)
      : work_(work), source_(source), epoch_(epoch) {}

 private:
  void restart() override {
    pass_ = source_.open(epoch_);
    length_ = source_.length(epoch_);
    index_ = 0;
    state_ = work_.state;
  }
  Tensors next() override {
    const Tensors element = index_ < length_ ? pass_->at(index_) : Tensors();
    if (element.empty()) return {};
    Tensors results = work_.step->apply(joined(state_, element), epoch_, index_++);
    const auto after_state = results.begin() + std::ssize(state_);
    state_.assign(results.begin(), after_state);
    return {after_state, results.end()};
  }

  const ScanWork& work_;
  const Stage& source_;
  const std::int64_t epoch_;
  std::unique_ptr<Pass> pass_;
  std::int64_t length_ = 0, index_ = 0;
  Tensors state_;
};

class ScanStage : public DerivedStage {
 public:
  ScanStage(const StagePointer& source, ScanWork work)
      : DerivedStage(source, {work.step->specs().begin() + std::ssize(work.state), work.step->specs().end()}),
        work_(std::move(work)) {}
  std::string name() const override { return "scan"; }
  std::uint64_t identity() const override {
    std::uint64_t hash = work_.step->identity();
    for (const Tensor& each : work_.state) hash = hash_of_bytes({each.host<std::byte>(), each.bytes()}, hash);
    return hash;
  }
  std::string_view remedy() const override {
    return "its function, what it captures, its first state and its seed (set_seed) have to be the same on every rank";
  }
  bool is_counted() const override { return false; }
  bool repeats_itself() const override { return !work_.step->is_random() && source().repeats_itself(); }
  StagePointer over(const std::vector<StagePointer>& sources, const PipelineChanges&) const override {
    ScanWork work = work_;
    if (sources[0]->specs() != source().specs())
      work.step = work.step->for_source(BehindState(sources[0], work.state, work.specs));
    return std::make_shared<ScanStage>(sources[0], std::move(work));
  }

 protected:
  std::unique_ptr<Pass> make_pass(std::int64_t epoch) const override {
    return std::make_unique<ScanPass>(work_, source(), epoch);
  }

 private:
  const ScanWork work_;
};

}  // namespace

StagePointer scan_stage(StagePointer source, Tensors state, const ElementFunction& trace, ElementFunction run) {
  ScanWork work = scan_work(source, std::move(state), trace, std::move(run));
  return std::make_shared<ScanStage>(source, std::move(work));
}

}  // namespace gradus
