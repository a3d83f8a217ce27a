/// Unbatching: every row of axis 0 of the fields becomes an element.
#include <algorithm>
#include <cstring>
#include "gradus/base/error.h"
#include "gradus/base/rooms.h"
#include "gradus/data/stage.h"

namespace gradus {
namespace {

/// How many rows the fields of this element have.
std::int64_t row_count(const Tensors& element, std::int64_t index) {
  const std::int64_t rows = element[0].shape()[0];
  for (std::size_t field = 1; field < element.size(); ++field)
    require(element[field].shape()[0] == rows, "unbatch: element ", index, ": field ", field, " is ",
            element[field].spec(), ", field 0 is ", element[0].spec(), "; they must have as many rows");
  return rows;
}

void copy_row(const Tensor& field, std::int64_t row, std::byte* out) {
  const auto bytes = static_cast<std::int64_t>(field.bytes()) / field.shape()[0];
  if (bytes > 0) std::memcpy(out, field.host<std::byte>() + row * bytes, static_cast<std::size_t>(bytes));
}

Tensors row_of(const Tensors& element, std::int64_t row) {
  Tensors rows;
  for (const Tensor& field : element) {
    Spec spec = field.spec();
    spec.shape.erase(0);
    Ref<Buffer> buffer = Buffer::allocate(bytes_of(spec), "element of a dataset");
    copy_row(field, row, buffer->data<std::byte>());
    rows.push_back(Tensor::of_buffer(spec, std::move(buffer)));
  }
  return rows;
}

/// Where the place of every row is known.
class IndexedPass : public Pass {
 public:
  IndexedPass(std::unique_ptr<Pass> source, std::int64_t per_element)
      : source_(std::move(source)), per_element_(per_element) {}
  Tensors at(std::int64_t index) override { return row_of(element_with(index), index % per_element_); }
  void write(std::span<const std::int64_t> indices, std::span<std::byte* const> out) override {
    std::vector<std::byte*> ends(out.begin(), out.end());
    for (const std::int64_t index : indices) {
      const Tensors& element = element_with(index);
      for (std::size_t field = 0; field < ends.size(); ++field) {
        copy_row(element[field], index % per_element_, ends[field]);
        ends[field] += static_cast<std::int64_t>(element[field].bytes()) / element[field].shape()[0];
      }
    }
  }

 private:
  const Tensors& element_with(std::int64_t row) {
    const std::int64_t index = row / per_element_;
    if (element_.empty() || index != index_) element_ = source_->at(index);
    index_ = index;
    row_count(element_, index);
    return element_;
  }
  std::unique_ptr<Pass> source_;
  const std::int64_t per_element_;
  Tensors element_;  // number index_, kept: its other rows come next
  std::int64_t index_ = -1;
};

class CountingPass : public ForwardPass {
 public:
  CountingPass(const Stage& source, std::int64_t epoch) : source_(source), epoch_(epoch) {}

 private:
  void restart() override {
    pass_ = source_.open(epoch_);
    length_ = source_.length(epoch_);
    index_ = row_ = rows_ = 0;
  }
  Tensors next() override {
    while (row_ == rows_) {
      if (index_ == length_) return {};
      element_ = pass_->at(index_);
      if (element_.empty()) return {};
      rows_ = row_count(element_, index_);
      ++index_;
      row_ = 0;
    }
    return row_of(element_, row_++);
  }

  const Stage& source_;
  const std::int64_t epoch_;
  std::unique_ptr<Pass> pass_;
  Tensors element_;
  std::int64_t length_ = 0, index_ = 0, row_ = 0, rows_ = 0;
};

class UnbatchStage : public DerivedStage {
 public:
  explicit UnbatchStage(const StagePointer& source) : DerivedStage(source, specs_of(*source)) {}
  std::string name() const override { return "unbatch"; }
  StagePointer over(const std::vector<StagePointer>& sources, const PipelineChanges&) const override {
    return std::make_shared<UnbatchStage>(sources[0]);
  }
  std::optional<int> batchings() const override { return std::max(source().batchings().value_or(1) - 1, 0); }
  bool is_counted() const override { return this->source().layout(0).has_value(); }
  std::int64_t length(std::int64_t epoch) const override {
    const auto layout = source().layout(epoch);
    if (layout) return layout->rows;
    return source().length(epoch) == 0 ? 0 : endless_length;
  }

 protected:
  std::unique_ptr<Pass> make_pass(std::int64_t epoch) const override {
    if (const auto layout = source().layout(epoch))
      return std::make_unique<IndexedPass>(source().open(epoch), std::max(layout->per_element, std::int64_t{1}));
    return std::make_unique<CountingPass>(source(), epoch);
  }

 private:
  static std::vector<Spec> specs_of(const Stage& source) {
    std::vector<Spec> specs = source.specs();
    for (Spec& spec : specs) spec.shape.erase(0);
    return specs;
  }
};

}  // namespace

StagePointer unbatch_stage(StagePointer source) { return std::make_shared<UnbatchStage>(source); }

}  // namespace gradus
