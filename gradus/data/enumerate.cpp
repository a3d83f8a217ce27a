/// Enumeration: each element behind its number.
#include <algorithm>
#include <cstring>
#include "gradus/base/rooms.h"
#include "gradus/data/pipeline_changes.h"
#include "gradus/data/stage.h"

namespace gradus {
namespace {

class EnumeratePass : public Pass {
 public:
  EnumeratePass(std::unique_ptr<Pass> source, std::vector<Spec> specs, std::int64_t start)
      : source_(std::move(source)), specs_(std::move(specs)), start_(start) {}
  Tensors at(std::int64_t index) override { return behind_number(index, source_->at(index)); }
  void write(std::span<const std::int64_t> indices, std::span<std::byte* const> out) override {
    write_numbers(indices, out[0]);
    source_->write(indices, out.subspan(1));
  }
  Tensors stack(const std::vector<Spec>&, std::span<const std::int64_t> indices) override {
    const Spec numbers{i64, {std::ssize(indices)}};
    Ref<Buffer> buffer = Buffer::allocate(bytes_of(numbers), "numbers of elements");
    write_numbers(indices, buffer->data<std::byte>());
    Tensors fields = source_->stack(specs_, indices);
    fields.insert(fields.begin(), Tensor::of_buffer(numbers, std::move(buffer)));
    return fields;
  }
  std::optional<std::int64_t> rows_of(std::int64_t index) override { return source_->rows_of(index); }
  std::optional<Tensors> rows_at(std::int64_t index, RowRange rows) override {
    std::optional<Tensors> fields = source_->rows_at(index, rows);
    if (fields) fields = behind_number(index, std::move(*fields));
    return fields;
  }

 private:
  Tensors behind_number(std::int64_t index, Tensors fields) const {
    if (fields.empty()) return fields;
    Ref<Buffer> number = Buffer::allocate(sizeof(std::int64_t), "number of an element");
    *number->data<std::int64_t>() = start_ + index;
    fields.insert(fields.begin(), Tensor::of_buffer({i64, {}}, std::move(number)));
    return fields;
  }
  void write_numbers(std::span<const std::int64_t> indices, std::byte* out) const {
    for (const std::int64_t index : indices) {
      const std::int64_t number = start_ + index;
      std::memcpy(out, &number, sizeof number);
      out += sizeof number;
    }
  }
  const std::unique_ptr<Pass> source_;
  const std::vector<Spec> specs_;  // of the source
  const std::int64_t start_;
};

class EnumerateStage : public DerivedStage {
 public:
  EnumerateStage(const StagePointer& source, std::int64_t start)
      : DerivedStage(source, specs_of(*source)), start_(start) {}
  std::string name() const override { return text("enumerate(", start_, ")"); }
  StagePointer over(const std::vector<StagePointer>& sources, const PipelineChanges&) const override {
    return std::make_shared<EnumerateStage>(sources[0], start_);
  }

 protected:
  std::unique_ptr<Pass> make_pass(std::int64_t epoch) const override {
    return std::make_unique<EnumeratePass>(source().open(epoch), source().specs(), start_);
  }

 private:
  static std::vector<Spec> specs_of(const Stage& source) {
    std::vector<Spec> specs = source.specs();
    specs.insert(specs.begin(), Spec{i64, {}});
    return specs;
  }
  const std::int64_t start_;
};

}  // namespace

StagePointer enumerate_stage(StagePointer source, std::int64_t start) {
  return std::make_shared<EnumerateStage>(source, start);
}

}  // namespace gradus
