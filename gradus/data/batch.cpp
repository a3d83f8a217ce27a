/// Batches: rows of the source written side by side into one buffer per field; of windows, which may overlap, too.
/// Decisions 162 and 273 have the reasons.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>
#include "gradus/base/error.h"
#include "gradus/base/hash.h"
#include "gradus/base/rooms.h"
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
  BatchPass(const Stage& source, std::int64_t epoch, const WindowShape& shape)
      : specs_(source.specs()),
        known_(!have_any_size(specs_)),
        counted_(source.is_counted()),
        source_(source.open(epoch)),
        length_(source.length(epoch)),
        shape_(shape),
        fewest_(shape.drop_remainder ? shape.size : 1) {
    if (!is_plain() && !(known_ && counted_)) elements_.emplace(source, epoch, shape);
  }

  Tensors at(std::int64_t index) override {
    if (known_ && counted_) return source_->stack(specs_, indices_of(index, {0, shape_.size_of(index, length_)}));
    if (!is_plain()) return join(elements_->at(index), index);
    const std::int64_t first = index * shape_.size, count = std::min(shape_.size, length_ - first);
    if (known_ && count <= most_set_aside(specs_)) return stack_some(first, count);
    return join(elements_from(*source_, first, count), index);
  }
  std::optional<ChosenRows> chosen(std::span<const std::int64_t> indices) override {
    if (indices.size() != 1) return {};
    return chosen_of(indices[0], {0, shape_.size_of(indices[0], length_)});
  }
  void write(std::span<const std::int64_t> indices, std::span<std::byte* const> out) override {
    indices_.clear();  // all of these batches are whole: those that may be smaller have any_size
    for (const std::int64_t index : indices)
      for (std::int64_t i = 0; i < shape_.size; ++i) indices_.push_back(index * shape_.shift + i * shape_.stride);
    source_->write(indices_, out);
  }
  std::optional<std::int64_t> rows_of(std::int64_t index) override {
    if (!known_ || !counted_) return {};
    return shape_.size_of(index, length_);
  }
  std::optional<Tensors> rows_at(std::int64_t index, RowRange rows) override {
    return source_->stack(specs_, indices_of(index, rows));
  }
  std::optional<ChosenRows> chosen_rows(std::int64_t index, RowRange rows) override { return chosen_of(index, rows); }

 private:
  /// True if the elements of batches are those of the source in order.
  bool is_plain() const { return shape_.shift == shape_.size && shape_.stride == 1; }
  std::span<const std::int64_t> indices_of(std::int64_t index, RowRange rows) {
    indices_.resize(static_cast<std::size_t>(rows.count()));
    std::int64_t next = index * shape_.shift + rows.begin * shape_.stride;
    for (std::int64_t& each : indices_) each = std::exchange(next, next + shape_.stride);
    return indices_;
  }
  std::optional<ChosenRows> chosen_of(std::int64_t index, RowRange rows) {
    if (!known_ || !counted_) return {};
    std::optional<ChosenRows> chosen = source_->chosen(indices_of(index, rows));
    if (!chosen || chosen->is_batch) return {};
    chosen->is_batch = true;
    return chosen;
  }

  /// Elements of known sizes, of which there may be fewer.
  Tensors stack_some(std::int64_t first, std::int64_t count) {
    Tensors fields = source_->stack_from(specs_, first, count);
    return fields.empty() || fields[0].shape()[0] < fewest_ ? Tensors() : fields;
  }

  /// Elements of batch `index`, whose sizes are known only when they are there.
  Tensors join(const std::vector<Tensors>& elements, std::int64_t index) const {
    if (std::ssize(elements) < fewest_) return {};
    return joined_elements(elements, index * shape_.shift, shape_.stride);
  }

  const std::vector<Spec> specs_;
  const bool known_, counted_;  // sizes of elements, number of elements
  std::unique_ptr<Pass> source_;
  const std::int64_t length_;
  const WindowShape shape_;
  const std::int64_t fewest_;
  std::optional<WindowElements> elements_;  // of windows that are not stacked
  std::vector<std::int64_t> indices_;
};

class BatchStage : public DerivedStage {
 public:
  BatchStage(const StagePointer& source, const WindowShape& shape, bool is_window)
      : DerivedStage(source, specs_of(*source, shape)), shape_(shape), is_window_(is_window) {}
  std::string name() const override {
    if (!is_window_) return text("batch(", shape_.size, ")");
    return text("window(", shape_.size, ", ", shape_.shift, ", ", shape_.stride, ").batch");
  }
  std::optional<int> batchings() const override { return source().batchings().value_or(0) + 1; }
  std::uint64_t identity() const override { return shape_.drop_remainder; }
  std::optional<std::int64_t> batch_size() const override {
    return is_window_ ? std::nullopt : std::optional(shape_.size);
  }
  StagePointer over(const std::vector<StagePointer>& sources, const PipelineChanges& changes) const override {
    WindowShape shape = shape_;
    if (!is_window_) shape.size = shape.shift = changes.batch_size.value_or(shape.size);
    return std::make_shared<BatchStage>(sources[0], shape, is_window_);
  }
  /// Known if the last element alone may be smaller.
  std::optional<RowLayout> layout(std::int64_t epoch) const override {
    if (!is_counted()) return {};
    const std::int64_t elements = source().length(epoch), count = shape_.count(elements);
    if (count == 0) return RowLayout{0, shape_.size};
    std::int64_t rows = 0;
    if (count > 1 && shape_.size_of(count - 2, elements) < shape_.size) return {};
    if (__builtin_mul_overflow(count - 1, shape_.size, &rows)) return {};
    return RowLayout{sum_of_lengths(rows, shape_.size_of(count - 1, elements)), shape_.size};
  }
  std::int64_t length(std::int64_t epoch) const override { return shape_.count(source().length(epoch)); }
  std::unique_ptr<Pass> make_pass(std::int64_t epoch) const override {
    return std::make_unique<BatchPass>(source(), epoch, shape_);
  }

 private:
  static std::vector<Spec> specs_of(const Stage& source, const WindowShape& shape) {
    std::vector<Spec> specs;
    for (const Spec& spec : source.specs())
      specs.push_back(with_rows(spec, shape.drop_remainder ? shape.size : any_size));
    return specs;
  }
  const WindowShape shape_;
  const bool is_window_;
};

/// Batches whose sizes come by turns.
class TurnedBatchPass : public Pass {
 public:
  TurnedBatchPass(const Stage& source, std::int64_t epoch, const BatchTurns& sizes)
      : specs_(source.specs()),
        is_stacked_(!have_any_size(specs_) && source.is_counted()),
        source_(source.open(epoch)),
        length_(source.length(epoch)),
        sizes_(sizes) {}
  Tensors at(std::int64_t index) override {
    const RowRange rows = sizes_.rows(index, length_);
    if (is_stacked_) return source_->stack(specs_, indices_of(rows));
    const std::vector<Tensors> elements = elements_from(*source_, rows.begin, rows.count());
    if (elements.empty() || (sizes_.drop_remainder && std::ssize(elements) < rows.count())) return {};
    return joined_elements(elements, rows.begin, 1);
  }
  std::optional<std::int64_t> rows_of(std::int64_t index) override {
    if (!is_stacked_) return {};
    return sizes_.rows(index, length_).count();
  }
  std::optional<Tensors> rows_at(std::int64_t index, RowRange part) override {
    const std::int64_t begin = sizes_.rows(index, length_).begin;
    return source_->stack(specs_, indices_of({begin + part.begin, begin + part.end}));
  }

 private:
  std::span<const std::int64_t> indices_of(RowRange rows) {
    indices_.resize(static_cast<std::size_t>(rows.count()));
    std::iota(indices_.begin(), indices_.end(), rows.begin);
    return indices_;
  }
  const std::vector<Spec> specs_;
  const bool is_stacked_;  // sizes and number of elements are known
  std::unique_ptr<Pass> source_;
  const std::int64_t length_;
  const BatchTurns& sizes_;
  std::vector<std::int64_t> indices_;
};

class TurnedBatchStage : public DerivedStage {
 public:
  TurnedBatchStage(const StagePointer& source, BatchTurns sizes)
      : DerivedStage(source, specs_of(*source)), sizes_(std::move(sizes)) {}
  std::string name() const override { return text("batch(", sizes_.sizes.size(), " sizes)"); }
  std::optional<int> batchings() const override { return source().batchings().value_or(0) + 1; }
  std::uint64_t identity() const override {
    return hash_of_bytes(std::as_bytes(std::span(sizes_.sizes)), sizes_.drop_remainder);
  }
  StagePointer over(const std::vector<StagePointer>& sources, const PipelineChanges&) const override {
    return std::make_shared<TurnedBatchStage>(sources[0], sizes_);
  }
  std::int64_t length(std::int64_t epoch) const override { return sizes_.count(source().length(epoch)); }

 protected:
  std::unique_ptr<Pass> make_pass(std::int64_t epoch) const override {
    return std::make_unique<TurnedBatchPass>(source(), epoch, sizes_);
  }

 private:
  static std::vector<Spec> specs_of(const Stage& source) {
    std::vector<Spec> specs;
    for (const Spec& spec : source.specs()) specs.push_back(with_rows(spec, any_size));
    return specs;
  }
  const BatchTurns sizes_;
};

}  // namespace

std::int64_t BatchTurns::all() const { return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}); }

RowRange BatchTurns::rows(std::int64_t index, std::int64_t n) const {
  const auto count = std::ssize(sizes);
  const auto place = sizes.begin() + index % count;
  const std::int64_t begin = index / count * all() + std::accumulate(sizes.begin(), place, std::int64_t{0});
  return {begin, *place > n - begin ? n : begin + *place};
}

std::int64_t BatchTurns::count(std::int64_t n) const {
  std::int64_t batches = n / all() * std::ssize(sizes), left = n % all();
  for (const std::int64_t size : sizes) {
    if (left < size) return batches + (left > 0 && !drop_remainder);
    left -= size;
    ++batches;
  }
  return batches;
}

std::vector<Tensors> elements_from(Pass& source, std::int64_t first, std::int64_t count) {
  std::vector<Tensors> elements;
  for (std::int64_t i = 0; i < count; ++i) {
    Tensors element = source.at(first + i);
    if (element.empty()) break;
    elements.push_back(std::move(element));
  }
  return elements;
}

Tensors joined_elements(const std::vector<Tensors>& elements, std::int64_t first, std::int64_t stride) {
  std::vector<Spec> specs;
  for (const Tensor& field : elements[0]) specs.push_back(field.spec());
  const Stacked batch(specs, std::ssize(elements));
  for (std::size_t i = 0; i < elements.size(); ++i)
    for (std::size_t field = 0; field < specs.size(); ++field) {
      const Tensor& value = elements[i][field];
      require(value.spec() == specs[field], "batch: elements differ in size: field ", field, " of element ",
              first + static_cast<std::int64_t>(i) * stride, " is ", value.spec(), ", that of element ", first, " is ",
              specs[field], "; batch with .drop_remainder, or bring them to one size in a map");
      const std::size_t bytes = value.bytes();
      if (bytes > 0) std::memcpy(batch.rows[field] + i * bytes, value.host(), bytes);
    }
  return batch.fields;
}

StagePointer turned_batch_stage(StagePointer source, BatchTurns sizes) {
  return std::make_shared<TurnedBatchStage>(source, std::move(sizes));
}
StagePointer batch_stage(StagePointer source, std::int64_t size, bool drop_remainder) {
  return std::make_shared<BatchStage>(source, WindowShape{size, size, 1, drop_remainder}, false);
}
StagePointer joined_windows_stage(StagePointer source, WindowShape shape) {
  return std::make_shared<BatchStage>(source, shape, true);
}

}  // namespace gradus
