/// Generators: elements that a user's function makes in sequence.
#include <cstring>
#include "gradus/base/error.h"
#include "gradus/base/hash.h"
#include "gradus/data/element_source.h"
#include "gradus/data/element_work.h"
#include "gradus/data/rethrow.h"
#include "gradus/ops/random_key.h"
#include "gradus/ops/random_state.h"

namespace gradus {
namespace {

/// A function of the library's own kind as a source.
class FunctionSource : public ElementSource {
 public:
  explicit FunctionSource(GeneratorFunction next) : next_(std::move(next)) {}
  std::optional<Tensors> next() override { return next_(); }

 private:
  const GeneratorFunction next_;
};

void require_fit(std::size_t field, const Spec& given, const Spec& expected) {
  require(fits(given, expected), "field ", field, " is ", given, ", expected ", expected);
}

class GeneratorPass : public ForwardPass {
 public:
  GeneratorPass(const ElementSourceFunction& begin, const std::vector<Spec>& specs, std::uint64_t seed)
      : begin_(begin), specs_(specs), seed_(seed) {}

 private:
  void restart() override {
    source_ = begin_();
    made_ = 0;
    random_ = random_state_of(seed_);
  }
  Tensors next() override {
    Tensors element;
    try {
      generate([&] { element = next_element(); });
    } catch (...) { rethrow_in(text("from_generator, element ", made_)); }
    ++made_;
    return element;
  }
  std::int64_t write_next(std::int64_t count, std::span<std::byte* const> out) override {
    ElementRows rows(specs_, count, out);
    try {
      generate([&] { source_->write(rows); });
    } catch (...) { rethrow_in(text("from_generator, element ", made_ + rows.made())); }
    made_ += rows.made();
    return rows.made();
  }
  /// work() where the user's function draws random numbers of this pass, and nothing that it does is recorded.
  template <class Work> void generate(const Work& work) {
    apart_from_recordings([&] {
      const SeedScope seeds(random_);
      work();
    });
  }
  Tensors next_element() {
    std::optional<Tensors> fields = source_->next();
    if (!fields) return {};
    for (std::size_t i = 0; i < fields->size(); ++i) {
      Tensor& field = (*fields)[i];
      require_fit(i, field.spec(), specs_[i]);
      field = settled(field);
    }
    return std::move(*fields);
  }

  const ElementSourceFunction& begin_;
  const std::vector<Spec>& specs_;
  const std::uint64_t seed_;
  std::unique_ptr<ElementSource> source_;
  std::int64_t made_ = 0;
  std::uint64_t random_ = 0;  // where what the source draws without a seed stands
};

class GeneratorStage : public Stage {
 public:
  GeneratorStage(std::vector<Spec> specs, ElementSourceFunction begin)
      : Stage(std::move(specs)), begin_(std::move(begin)), seed_(next_seed()) {}
  std::string name() const override { return "from_generator"; }
  std::optional<int> batchings() const override { return {}; }
  bool is_counted() const override { return false; }
  std::int64_t length(std::int64_t) const override { return endless_length; }

 protected:
  std::unique_ptr<Pass> make_pass(std::int64_t epoch) const override {
    return std::make_unique<GeneratorPass>(begin_, specs(), mix(seed_, static_cast<std::uint64_t>(epoch)));
  }

 private:
  const ElementSourceFunction begin_;
  const std::uint64_t seed_;
};

}  // namespace

void ElementRows::put(std::size_t field, const Tensor& value) const {
  require_fit(field, value.spec(), specs_[field]);
  const Tensor settled_value = settled(value);
  if (settled_value.bytes() > 0) std::memcpy(next_[field], settled_value.host(), settled_value.bytes());
}

void ElementRows::end_element() {
  for (std::size_t field = 0; field < next_.size(); ++field) next_[field] += bytes_of(specs_[field]);
  ++made_;
  StopScope::check();
}

void ElementSource::write(ElementRows& rows) {
  while (!rows.is_full()) {
    const std::optional<Tensors> fields = next();
    if (!fields) return;
    for (std::size_t i = 0; i < fields->size(); ++i) rows.put(i, (*fields)[i]);
    rows.end_element();
  }
}

StagePointer generator_stage(std::vector<Spec> specs, GeneratorFunction next) {
  return generator_stage(std::move(specs),
                         [next]() -> std::unique_ptr<ElementSource> { return std::make_unique<FunctionSource>(next); });
}

StagePointer generator_stage(std::vector<Spec> specs, ElementSourceFunction begin) {
  return std::make_shared<GeneratorStage>(std::move(specs), std::move(begin));
}

}  // namespace gradus
