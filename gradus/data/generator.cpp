/// Generators: elements that a user's function makes in sequence.
#include "gradus/base/error.h"
#include "gradus/base/hash.h"
#include "gradus/data/element_work.h"
#include "gradus/data/rethrow.h"
#include "gradus/ops/random_key.h"
#include "gradus/ops/random_state.h"

namespace gradus {
namespace {

class GeneratorPass : public ForwardPass {
 public:
  GeneratorPass(const GeneratorFunction& first, const std::vector<Spec>& specs, std::uint64_t seed)
      : first_(first), specs_(specs), seed_(seed) {}

 private:
  void restart() override {
    next_ = first_;
    made_ = 0;
    random_ = random_state_of(seed_);
  }
  Tensors next() override {
    Tensors element;
    try {
      apart_from_recordings([&] {
        const SeedScope seeds(random_);
        element = generate();
      });
    } catch (...) { rethrow_in(text("from_generator, element ", made_)); }
    ++made_;
    return element;
  }
  Tensors generate() {
    std::optional<Tensors> fields = next_();
    if (!fields) return {};
    for (std::size_t i = 0; i < fields->size(); ++i) {
      Tensor& field = (*fields)[i];
      require(fits(field.spec(), specs_[i]), "field ", i, " is ", field.spec(), ", expected ", specs_[i]);
      field = settled(field);
    }
    return std::move(*fields);
  }

  const GeneratorFunction& first_;
  const std::vector<Spec>& specs_;
  const std::uint64_t seed_;
  GeneratorFunction next_;
  std::int64_t made_ = 0;
  std::uint64_t random_ = 0;  // where what `next_` draws without a seed stands
};

class GeneratorStage : public Stage {
 public:
  GeneratorStage(std::vector<Spec> specs, GeneratorFunction next)
      : Stage(std::move(specs)), next_(std::move(next)), seed_(next_seed()) {}
  std::string name() const override { return "from_generator"; }
  std::optional<int> batchings() const override { return {}; }
  bool is_counted() const override { return false; }
  std::int64_t length(std::int64_t) const override { return endless_length; }

 protected:
  std::unique_ptr<Pass> make_pass(std::int64_t epoch) const override {
    return std::make_unique<GeneratorPass>(next_, specs(), mix(seed_, static_cast<std::uint64_t>(epoch)));
  }

 private:
  const GeneratorFunction next_;
  const std::uint64_t seed_;
};

}  // namespace

StagePointer generator_stage(std::vector<Spec> specs, GeneratorFunction next) {
  return std::make_shared<GeneratorStage>(std::move(specs), std::move(next));
}

}  // namespace gradus
