/// Generators: elements that a function of the user makes one after the other.
#include "gradus/base/error.h"
#include "gradus/data/element_work.h"
#include "gradus/data/rethrow.h"

namespace gradus {
namespace {

class GeneratorPass : public ForwardPass {
 public:
  GeneratorPass(const GeneratorFunction& first, const std::vector<Spec>& specs) : first_(first), specs_(specs) {}

 private:
  void restart() override {
    next_ = first_;
    made_ = 0;
  }
  Tensors next() override {
    Tensors element;
    try {
      apart_from_recordings([&] { element = generate(); });
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
  GeneratorFunction next_;
  std::int64_t made_ = 0;
};

class GeneratorStage : public Stage {
 public:
  GeneratorStage(std::vector<Spec> specs, GeneratorFunction next) : Stage(std::move(specs)), next_(std::move(next)) {}
  std::string name() const override { return "from_generator"; }
  bool is_counted() const override { return false; }
  std::int64_t length(std::int64_t) const override { return endless_length; }

 protected:
  std::unique_ptr<Pass> make_pass(std::int64_t) const override {
    return std::make_unique<GeneratorPass>(next_, specs());
  }

 private:
  const GeneratorFunction next_;
};

}  // namespace

StagePointer generator_stage(std::vector<Spec> specs, GeneratorFunction next) {
  return std::make_shared<GeneratorStage>(std::move(specs), std::move(next));
}

}  // namespace gradus
