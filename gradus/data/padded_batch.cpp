/// Batches of elements of different sizes: padded to the largest, and grouped by length first.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include "gradus/base/error.h"
#include "gradus/base/hash.h"
#include "gradus/data/element_work.h"
#include "gradus/data/pipeline_changes.h"

namespace gradus {
namespace {

/// The shape of field `field` of padded elements; any_size where it follows from each batch.
Shape padded_shape(const std::vector<Spec>& specs, const PaddedBatchOptions& options, std::size_t field) {
  Shape shape = specs[field].shape;
  if (!options.padded_shapes.empty())
    for (int axis = 0; axis < shape.rank(); ++axis)
      if (options.padded_shapes[field][axis] != any_size) shape.set(axis, options.padded_shapes[field][axis]);
  return shape;
}

void fill_with(const Spec& spec, double value, std::byte* out) {
  with_type(spec.dtype, [&]<class T>(T) {
    T* elements = reinterpret_cast<T*>(out);
    std::fill(elements, elements + spec.shape.size(), static_cast<T>(value));
  });
}

/// Copies `from`, of shape `inner`, into the corner of an array of shape `outer`.
void copy_corner(const Shape& inner, const Shape& outer, std::int64_t item, const std::byte* from, std::byte* to) {
  if (inner.size() == 0) return;
  const int last = inner.rank() - 1;
  const std::int64_t run = (inner.rank() == 0 ? 1 : inner[last]) * item;
  std::array<std::int64_t, Shape::max_rank> at{};
  for (std::int64_t done = 0, all = inner.size() * item; done < all; done += run) {
    std::int64_t place = 0;
    for (int axis = 0; axis <= last; ++axis) place = place * outer[axis] + at[static_cast<std::size_t>(axis)];
    std::memcpy(to + place * item, from + done, static_cast<std::size_t>(run));
    for (int axis = last - 1; axis >= 0; --axis) {
      if (++at[static_cast<std::size_t>(axis)] < inner[axis]) break;
      at[static_cast<std::size_t>(axis)] = 0;
    }
  }
}

/// `first` is the index of the first element, for messages; `shapes` hold any_size where the batch decides.
Tensors pad(const std::vector<Tensors>& elements, std::int64_t first, std::vector<Shape> shapes,
            const PaddedBatchOptions& options) {
  Tensors batch;
  for (std::size_t field = 0; field < shapes.size(); ++field) {
    Shape& shape = shapes[field];
    for (int axis = 0; axis < shape.rank(); ++axis) {
      std::int64_t largest = 0;
      for (std::size_t i = 0; i < elements.size(); ++i) {
        const std::int64_t size = elements[i][field].shape()[axis];
        require(shape[axis] == any_size || size <= shape[axis], "padded_batch: field ", field, " of element ",
                first + static_cast<std::int64_t>(i), " is ", elements[i][field].spec(), ", more than the ",
                brackets(shape), " that it is padded to");
        largest = std::max(largest, size);
      }
      if (shape[axis] == any_size) shape.set(axis, largest);
    }
    const Spec row{elements[0][field].dtype(), shape};
    Spec spec = row;
    spec.shape.insert(0, std::ssize(elements));
    Ref<Buffer> buffer = Buffer::allocate(bytes_of(spec), "padded batch");
    const auto& values = options.padding_values;
    fill_with(spec, values.empty() ? 0 : values[values.size() == 1 ? 0 : field], buffer->data<std::byte>());
    for (std::size_t i = 0; i < elements.size(); ++i)
      copy_corner(elements[i][field].shape(), shape, size_of(row.dtype), elements[i][field].host<std::byte>(),
                  buffer->data<std::byte>() + static_cast<std::int64_t>(i) * bytes_of(row));
    batch.push_back(Tensor::of_buffer(spec, std::move(buffer)));
  }
  return batch;
}

std::vector<Shape> padded_shapes(const std::vector<Spec>& specs, const PaddedBatchOptions& options) {
  std::vector<Shape> shapes;
  for (std::size_t field = 0; field < specs.size(); ++field) shapes.push_back(padded_shape(specs, options, field));
  return shapes;
}

std::vector<Spec> batch_specs(const std::vector<Spec>& specs, const PaddedBatchOptions& options, std::int64_t size) {
  std::vector<Spec> batches = specs;
  for (std::size_t field = 0; field < specs.size(); ++field) {
    batches[field].shape = padded_shape(specs, options, field);
    batches[field].shape.insert(0, size);
  }
  return batches;
}

std::uint64_t hash_of(const PaddedBatchOptions& options) {
  std::uint64_t hash = options.drop_remainder;
  for (const Shape& shape : options.padded_shapes) hash = mix(hash, gradus::hash_of(shape));
  for (const double value : options.padding_values) hash = mix(hash, std::bit_cast<std::uint64_t>(value));
  return hash;
}

class PaddedBatchPass : public Pass {
 public:
  PaddedBatchPass(const Stage& source, std::int64_t epoch, std::int64_t size, const PaddedBatchOptions& options)
      : source_(source.open(epoch)),
        length_(source.length(epoch)),
        size_(size),
        counted_(source.is_counted()),
        options_(options),
        shapes_(padded_shapes(source.specs(), options)) {}
  Tensors at(std::int64_t index) override {
    const std::int64_t first = index * size_;
    const std::vector<Tensors> elements = elements_at(first, std::min(length_, first + size_));
    if (elements.empty() || (options_.drop_remainder && std::ssize(elements) < size_)) return {};
    return pad(elements, first, shapes_, options_);
  }
  /// Where the largest of the batch says nothing.
  std::optional<std::int64_t> rows_of(std::int64_t index) override {
    const auto varies = [](const Shape& shape) { return std::ranges::count(shape, any_size) > 0; };
    if (!counted_ || std::ranges::any_of(shapes_, varies)) return {};
    return std::min(size_, length_ - index * size_);
  }
  std::optional<Tensors> rows_at(std::int64_t index, RowRange rows) override {
    const std::int64_t first = index * size_ + rows.begin;
    return pad(elements_at(first, first + rows.count()), first, shapes_, options_);
  }

 private:
  std::vector<Tensors> elements_at(std::int64_t begin, std::int64_t end) {
    std::vector<Tensors> elements;
    for (std::int64_t i = begin; i < end; ++i) {
      Tensors element = source_->at(i);
      if (element.empty()) break;
      elements.push_back(std::move(element));
    }
    return elements;
  }

  std::unique_ptr<Pass> source_;
  const std::int64_t length_, size_;
  const bool counted_;
  const PaddedBatchOptions& options_;
  const std::vector<Shape> shapes_;
};

class PaddedBatchStage : public DerivedStage {
 public:
  PaddedBatchStage(const StagePointer& source, std::int64_t size, PaddedBatchOptions options)
      : DerivedStage(source, batch_specs(source->specs(), options, options.drop_remainder ? size : any_size)),
        size_(size),
        options_(std::move(options)) {}
  std::string name() const override { return text("padded_batch(", size_, ")"); }
  std::optional<int> batchings() const override { return source().batchings().value_or(0) + 1; }
  std::uint64_t identity() const override { return hash_of(options_); }
  std::optional<std::int64_t> batch_size() const override { return size_; }
  StagePointer over(const std::vector<StagePointer>& sources, const PipelineChanges& changes) const override {
    return std::make_shared<PaddedBatchStage>(sources[0], changes.batch_size.value_or(size_), options_);
  }
  std::int64_t length(std::int64_t epoch) const override {
    const std::int64_t elements = source().length(epoch);
    return elements / size_ + (!options_.drop_remainder && elements % size_ != 0);
  }

 protected:
  std::unique_ptr<Pass> make_pass(std::int64_t epoch) const override {
    return std::make_unique<PaddedBatchPass>(source(), epoch, size_, options_);
  }

 private:
  const std::int64_t size_;
  const PaddedBatchOptions options_;
};

/// Elements wait in the bucket of their length until it is a batch.
class BucketPass : public ForwardPass {
 public:
  BucketPass(const ElementWork& length_of, const BucketOptions& options, const Stage& source, std::int64_t epoch)
      : length_of_(length_of),
        options_(options),
        source_(source),
        epoch_(epoch),
        shapes_(padded_shapes(source.specs(), options.padding)) {}

 private:
  struct Bucket {
    std::vector<Tensors> elements;
    std::int64_t newest = 0;  // its index
  };
  void restart() override {
    pass_ = source_.open(epoch_);
    elements_ = source_.length(epoch_);
    index_ = 0;
    left_ = 0;
    buckets_.assign(options_.bucket_batch_sizes.size(), {});
  }
  Tensors next() override {
    while (index_ < elements_) {
      Tensors element = pass_->at(index_);
      if (element.empty()) break;
      const std::size_t number = bucket_of(element);
      Bucket& bucket = buckets_[number];
      bucket.elements.push_back(std::move(element));
      bucket.newest = index_++;
      if (std::ssize(bucket.elements) == options_.bucket_batch_sizes[number]) return batch_of(bucket);
    }
    elements_ = index_;
    for (; left_ < buckets_.size(); ++left_)
      if (!buckets_[left_].elements.empty() && !options_.padding.drop_remainder) return batch_of(buckets_[left_]);
    return {};
  }
  std::size_t bucket_of(const Tensors& element) const {
    const double length = length_of_.apply(element, epoch_, index_)[0].item();
    const auto& boundaries = options_.bucket_boundaries;
    return static_cast<std::size_t>(std::ranges::upper_bound(boundaries, static_cast<std::int64_t>(length)) -
                                    boundaries.begin());
  }
  Tensors batch_of(Bucket& bucket) const {
    const std::vector<Tensors> elements = std::exchange(bucket.elements, {});
    return pad(elements, bucket.newest + 1 - std::ssize(elements), shapes_, options_.padding);
  }

  const ElementWork& length_of_;
  const BucketOptions& options_;
  const Stage& source_;
  const std::int64_t epoch_;
  const std::vector<Shape> shapes_;
  std::unique_ptr<Pass> pass_;
  std::int64_t elements_ = 0, index_ = 0;
  std::size_t left_ = 0;
  std::vector<Bucket> buckets_;
};

class BucketStage : public DerivedStage {
 public:
  BucketStage(const StagePointer& source, std::shared_ptr<const ElementWork> length_of, BucketOptions options)
      : DerivedStage(source, batch_specs(source->specs(), options.padding, batch_size(options))),
        length_of_(std::move(length_of)),
        options_(std::move(options)) {}
  std::string name() const override { return "bucket_by_sequence_length"; }
  std::optional<int> batchings() const override { return source().batchings().value_or(0) + 1; }
  std::uint64_t identity() const override {
    std::uint64_t hash = mix(length_of_->identity(), hash_of(options_.padding));
    for (const std::int64_t each : options_.bucket_boundaries) hash = mix(hash, static_cast<std::uint64_t>(each));
    for (const std::int64_t each : options_.bucket_batch_sizes) hash = mix(hash, static_cast<std::uint64_t>(each));
    return hash;
  }
  bool is_counted() const override { return false; }
  bool repeats_itself() const override { return !length_of_->is_random() && source().repeats_itself(); }
  StagePointer over(const std::vector<StagePointer>& sources, const PipelineChanges&) const override {
    return std::make_shared<BucketStage>(sources[0], work_of(length_of_, source(), *sources[0]), options_);
  }

 protected:
  std::unique_ptr<Pass> make_pass(std::int64_t epoch) const override {
    return std::make_unique<BucketPass>(*length_of_, options_, source(), epoch);
  }

 private:
  static std::int64_t batch_size(const BucketOptions& options) {
    const auto& sizes = options.bucket_batch_sizes;
    const bool equal = std::ranges::all_of(sizes, [&](std::int64_t size) { return size == sizes[0]; });
    return options.padding.drop_remainder && equal ? sizes[0] : any_size;
  }
  const std::shared_ptr<const ElementWork> length_of_;
  const BucketOptions options_;
};

}  // namespace

StagePointer padded_batch_stage(StagePointer source, std::int64_t size, PaddedBatchOptions options) {
  return std::make_shared<PaddedBatchStage>(source, size, std::move(options));
}

StagePointer bucket_stage(StagePointer source, const ElementFunction& trace, ElementFunction run,
                          BucketOptions options) {
  auto work = std::make_unique<ElementWork>("bucket_by_sequence_length", *source, trace, std::move(run));
  const Spec& length = work->specs()[0];
  require(is_integer(length.dtype) && length.shape.rank() == 0,
          "bucket_by_sequence_length: the length of an element is ", length, ", expected a scalar integer");
  return std::make_shared<BucketStage>(source, std::move(work), std::move(options));
}

}  // namespace gradus
