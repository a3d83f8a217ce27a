/// Batches: rows of the source written side by side into one buffer per field.
#include <algorithm>
#include <cstring>
#include <numeric>
#include "gradus/base/error.h"
#include "gradus/data/pipeline_changes.h"
#include "gradus/data/stage.h"

namespace gradus {
namespace {

Spec with_rows(Spec spec, std::int64_t count) {
  spec.shape.insert(0, count);
  return spec;
}

class BatchPass : public Pass {
 public:
  BatchPass(const Stage& source, std::int64_t epoch, std::int64_t size, bool drop_remainder)
      : specs_(source.specs()),
        known_(!have_any_size(specs_)),
        counted_(source.is_counted()),
        source_(source.open(epoch)),
        length_(source.length(epoch)),
        size_(size),
        fewest_(drop_remainder ? size : 1) {}

  Tensors at(std::int64_t index) override {
    const std::int64_t first = index * size_, count = std::min(size_, length_ - first);
    if (known_ && !counted_ && count <= most_set_aside(specs_)) return stack_some(first, count);
    if (!known_ || !counted_) return stack_elements(first, count);
    return source_->stack(specs_, indices_of(first, count));
  }
  std::optional<ChosenRows> chosen(std::span<const std::int64_t> indices) override {
    if (!known_ || !counted_ || indices.size() != 1) return {};
    const std::int64_t first = indices[0] * size_;
    std::optional<ChosenRows> rows = source_->chosen(indices_of(first, std::min(size_, length_ - first)));
    if (!rows || rows->is_batch) return {};
    rows->is_batch = true;
    return rows;
  }
  void write(std::span<const std::int64_t> indices, std::span<std::byte* const> out) override {
    indices_.clear();  // all of these batches are whole: those that may be smaller have any_size
    for (const std::int64_t index : indices)
      for (std::int64_t i = 0; i < size_; ++i) indices_.push_back(index * size_ + i);
    source_->write(indices_, out);
  }
  std::optional<std::int64_t> rows_of(std::int64_t index) override {
    if (!known_ || !counted_) return {};
    return std::min(size_, length_ - index * size_);
  }
  std::optional<Tensors> rows_at(std::int64_t index, RowRange rows) override {
    return source_->stack(specs_, indices_of(index * size_ + rows.begin, rows.count()));
  }
  std::optional<ChosenRows> chosen_rows(std::int64_t index, RowRange rows) override {
    if (!known_ || !counted_) return {};
    std::optional<ChosenRows> chosen = source_->chosen(indices_of(index * size_ + rows.begin, rows.count()));
    if (!chosen || chosen->is_batch) return {};
    chosen->is_batch = true;
    return chosen;
  }

 private:
  std::span<const std::int64_t> indices_of(std::int64_t first, std::int64_t count) {
    indices_.resize(static_cast<std::size_t>(count));
    std::iota(indices_.begin(), indices_.end(), first);
    return indices_;
  }

  /// Elements of known sizes, of which there may be fewer.
  Tensors stack_some(std::int64_t first, std::int64_t count) {
    Tensors fields = source_->stack_from(specs_, first, count);
    return fields.empty() || fields[0].shape()[0] < fewest_ ? Tensors() : fields;
  }

  /// Elements whose sizes are known only once they are made.
  Tensors stack_elements(std::int64_t first, std::int64_t count) {
    std::vector<Tensors> elements;
    for (std::int64_t i = 0; i < count; ++i) {
      Tensors element = source_->at(first + i);
      if (element.empty()) break;
      elements.push_back(std::move(element));
    }
    count = static_cast<std::int64_t>(elements.size());
    if (count < fewest_) return {};
    std::vector<Spec> specs;
    for (const Tensor& field : elements[0]) specs.push_back(field.spec());
    const Stacked batch(specs, count);
    for (std::size_t i = 0; i < elements.size(); ++i)
      for (std::size_t field = 0; field < specs.size(); ++field) {
        const Tensor& value = elements[i][field];
        require(value.spec() == specs[field], "batch: elements differ in size: field ", field, " of element ",
                first + static_cast<std::int64_t>(i), " is ", value.spec(), ", that of element ", first, " is ",
                specs[field], "; batch with .drop_remainder, or bring them to one size in a map");
        const std::size_t bytes = value.bytes();
        if (bytes > 0) std::memcpy(batch.rows[field] + i * bytes, value.host(), bytes);
      }
    return batch.fields;
  }

  const std::vector<Spec> specs_;
  const bool known_, counted_;  // sizes of elements, number of elements
  std::unique_ptr<Pass> source_;
  const std::int64_t length_, size_, fewest_;
  std::vector<std::int64_t> indices_;
};

class BatchStage : public DerivedStage {
 public:
  BatchStage(const StagePointer& source, std::int64_t size, bool drop_remainder)
      : DerivedStage(source, specs_of(*source, size, drop_remainder)), size_(size), drop_remainder_(drop_remainder) {}
  std::string name() const override { return text("batch(", size_, ")"); }
  std::optional<int> batchings() const override { return source().batchings().value_or(0) + 1; }
  std::uint64_t identity() const override { return drop_remainder_; }
  std::optional<std::int64_t> batch_size() const override { return size_; }
  StagePointer over(const std::vector<StagePointer>& sources, const PipelineChanges& changes) const override {
    return std::make_shared<BatchStage>(sources[0], changes.batch_size.value_or(size_), drop_remainder_);
  }
  std::optional<RowLayout> layout(std::int64_t epoch) const override {
    if (!is_counted()) return {};
    const std::int64_t elements = source().length(epoch);
    return RowLayout{drop_remainder_ ? elements / size_ * size_ : elements, size_};
  }
  std::int64_t length(std::int64_t epoch) const override {
    const std::int64_t elements = source().length(epoch);
    return elements / size_ + (!drop_remainder_ && elements % size_ != 0);
  }
  std::unique_ptr<Pass> make_pass(std::int64_t epoch) const override {
    return std::make_unique<BatchPass>(source(), epoch, size_, drop_remainder_);
  }

 private:
  static std::vector<Spec> specs_of(const Stage& source, std::int64_t size, bool drop_remainder) {
    std::vector<Spec> specs;
    for (const Spec& spec : source.specs()) specs.push_back(with_rows(spec, drop_remainder ? size : any_size));
    return specs;
  }
  const std::int64_t size_;
  const bool drop_remainder_;
};

}  // namespace

StagePointer batch_stage(StagePointer source, std::int64_t size, bool drop_remainder) {
  return std::make_shared<BatchStage>(source, size, drop_remainder);
}

}  // namespace gradus
