/// Dataset<N>: elements of N tensors, made by a chain of stages: lazy, restartable, reproducible. The order is a
/// function of (seed, epoch, index), whatever the number of threads. A number out of range is an InvalidArgument.
///
/// Epochs: begin() counts the passes of this value, from 0. Copies and derived datasets start at 0. first() reads epoch
/// 0, and so do take() and skip() in their first pass, unless epoch(e) or from(position) selects another one.
#pragma once
#include <array>
#include <concepts>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include "gradus/data/pipeline.h"
#include "gradus/function/function.h"

namespace gradus {

/// A restartable sequence of elements with N fields, as tf.data.Dataset.
template <std::size_t N> class Dataset {
 public:
  /// A Tensor for N = 1, else std::array<Tensor, N>.
  using element = typename element_of<N>::type;

  /// Applies f to each element. f takes N tensors and gives a Tensor, or a pair, tuple or array of them. It is traced
  /// once per signature and runs as compiled code. After a batch it sees whole batches. Before one it is vectorised
  /// over the elements of the batch where possible: if f has a batched form, and sizes are known. Random numbers in f
  /// belong to (seed, epoch, index of the element), so the bits are the same.
  template <class F> auto map(F f, MapOptions options = {}) const -> Dataset<arity_of<with_tensors_t<F, N>>::value> {
    return Dataset<arity_of<with_tensors_t<F, N>>::value>(pipeline_.map(traced(f), compiled(f, "map"), options));
  }
  template <class F>
    requires(!requires { typename with_tensors_t<F, N>; })
  void map(F, MapOptions = {}) const = delete;  // the function takes one Tensor for each field of an element
  /// Keeps the elements for which the predicate, which gives one boolean, is true. Their number is not known without
  /// reading them: there is no cardinality, and resuming within an epoch evaluates the predicate again for the elements
  /// before.
  template <class F>
    requires std::same_as<with_tensors_t<F, N>, Tensor>
  Dataset filter(F predicate) const {
    return Dataset(pipeline_.filter(traced(predicate), compiled(predicate, "filter")));
  }
  template <class F>
    requires(!requires { typename with_tensors_t<F, N>; })
  void filter(F) const = delete;  // the function takes one Tensor for each field of an element
  /// f of the fields of an element gives a Dataset. `cycle_length` of these are read alternately, `block_length`
  /// elements per turn; where one ends the next takes its place. f is called when an element's turn comes, not traced.
  template <class F> auto interleave(F f, InterleaveOptions options = {}) const -> with_tensors_t<F, N> {
    return with_tensors_t<F, N>(
        pipeline_.interleave([f](In fields) { return call_with<N>(f, fields).pipeline(); }, options));
  }
  /// Concatenates the datasets that f gives: interleave, one at a time.
  template <class F> auto flat_map(F f) const -> with_tensors_t<F, N> { return interleave(f, {.cycle_length = 1}); }
  /// Shuffles by a full permutation of indices, without a buffer. Without a seed it takes one that follows from
  /// set_seed, at this call. After a batch it permutes batches.
  Dataset shuffle(ShuffleOptions options = {}) const { return Dataset(pipeline_.shuffle(options)); }
  /// Shuffles as a buffer of that many elements does, from which each element is drawn at random.
  Dataset shuffle(std::int64_t buffer_size, ShuffleOptions options = {}) const {
    return Dataset(pipeline_.shuffle(buffer_size, options));
  }
  /// Joins `size` elements of equal sizes (else InvalidArgument) along a new axis 0. The last batch is smaller or
  /// dropped.
  Dataset batch(std::int64_t size, BatchOptions options = {}) const { return Dataset(pipeline_.batch(size, options)); }
  /// Joins elements of different sizes. Each is padded at its end to the size of the largest in the batch, or to
  /// .padded_shapes. InvalidArgument for an element that is larger than that.
  Dataset padded_batch(std::int64_t size, PaddedBatchOptions options = {}) const {
    return Dataset(pipeline_.padded_batch(size, std::move(options)));
  }
  /// Padded batches of elements of similar length. element_length gives the length, a scalar integer. Bucket i takes
  /// lengths from boundaries[i - 1] up to, but not including, boundaries[i]. It gives a batch whenever it holds
  /// batch_sizes[i]. The remainders come at the end, in the order of the buckets.
  template <class F>
    requires std::same_as<with_tensors_t<F, N>, Tensor>
  Dataset bucket_by_sequence_length(F element_length, BucketOptions options) const {
    return Dataset(pipeline_.bucket_by_sequence_length(
        traced(element_length), compiled(element_length, "bucket_by_sequence_length"), std::move(options)));
  }
  /// Inverse of batch: every row of axis 0 becomes an element.
  Dataset unbatch() const { return Dataset(pipeline_.unbatch()); }
  /// Every count-th element, from number `index` on. Each element is in exactly one shard.
  Dataset shard(int count, int index) const { return Dataset(pipeline_.shard(count, index)); }
  /// Keeps elements in memory once they were made. A shuffle before it is frozen in the order of epoch 0, so shuffle
  /// after it.
  Dataset cache() const { return Dataset(pipeline_.cache()); }
  /// Keeps elements in a file. Later runs read it if the data and the stages before are the same. A map is compared by
  /// its program and the values that it captured; a generator and an interleave only by their specs. Elements that a
  /// killed process had made are kept. DataError if the file was made from something else, or is no cache: it is never
  /// overwritten. Unavailable while another process fills it.
  Dataset cache(const std::filesystem::path& file) const { return Dataset(pipeline_.cache(file)); }
  /// Repeats the dataset; -1: without end. Round r is epoch r of the repeated dataset.
  Dataset repeat(std::int64_t times = -1) const { return Dataset(pipeline_.repeat(times)); }
  /// The first n elements.
  Dataset take(std::int64_t n) const { return Dataset(pipeline_.take(n)); }
  /// All but the first n elements. Works by index, so it costs nothing.
  Dataset skip(std::int64_t n) const { return Dataset(pipeline_.skip(n)); }
  /// This dataset, always in the order of epoch e.
  Dataset epoch(std::int64_t e) const { return Dataset(pipeline_.epoch(e)); }
  /// Starts the first pass at `position`. The next pass is the epoch after.
  Dataset from(Position position) const { return Dataset(pipeline_.from(position)); }
  /// Makes elements ahead in the background, at most `buffers` of them. The stages after it are included.
  Dataset prefetch(int buffers = autotune) const { return Dataset(pipeline_.prefetch({.buffers = buffers})); }
  /// prefetch within a number of bytes, in which two elements are always allowed.
  Dataset prefetch(PrefetchOptions options) const { return Dataset(pipeline_.prefetch(options)); }
  /// Tells where the time of all passes so far went.
  PipelineExplanation explain() const { return pipeline_.explain(); }
  /// The number of elements if it is known without reading. Empty for a dataset without end, and after a filter or
  /// generator.
  std::optional<std::int64_t> cardinality() const { return pipeline_.cardinality(); }
  /// The specs of the fields, with any_size where a dimension varies from element to element, as for a batch that may
  /// be the small last one.
  std::array<Spec, N> element_spec() const {
    std::array<Spec, N> specs;
    for (std::size_t i = 0; i < N; ++i) specs[i] = pipeline_.specs()[i];
    return specs;
  }

  /// An input iterator: copies share one pass.
  struct iterator {
    using value_type = element;              // see Dataset
    using difference_type = std::ptrdiff_t;  // as iterators need it
    element operator*() const { return to_element<N>(pass().element()); }
    iterator& operator++() {
      pass().advance();
      return *this;
    }
    void operator++(int) { pass().advance(); }
    bool operator==(std::default_sentinel_t) const { return pass().at_end(); }
    /// The position of *it. Elements that were prefetched do not count.
    Position position() const { return pass().position(); }
    /// The pass that it reads. InvalidArgument for an empty iterator.
    Reading& pass() const {
      require(static_cast<bool>(reading), "this iterator of a dataset is empty: it was default-constructed or moved ",
              "from; assign what begin() gives");
      return *reading;
    }

    std::shared_ptr<Reading> reading;  // shared with copies
  };
  /// Starts the next pass.
  iterator begin() const { return {pipeline_.begin()}; }
  /// The end of every pass.
  std::default_sentinel_t end() const { return {}; }
  element first() const { return to_element<N>(pipeline_.first()); }  // of epoch 0; OutOfRange if there is none

  // For the rooms of the library.
  explicit Dataset(Pipeline pipeline) : pipeline_(std::move(pipeline)) {}
  /// The stages behind this dataset.
  const Pipeline& pipeline() const { return pipeline_; }

 private:
  template <class F> static ElementFunction traced(F f) {
    return [f](In fields) { return to_fields(call_with<N>(f, fields)); };
  }
  template <class F> static ElementFunction compiled(F f, const char* name) {
    return [f = function(f, {.name = name})](In fields) { return to_fields(call_with<N>(f, fields)); };
  }
  Pipeline pipeline_;
};

/// A Dataset of any number of fields, for options.
class AnyDataset {
 public:
  template <std::size_t N> AnyDataset(const Dataset<N>& dataset) : pipeline_(dataset.pipeline()) {}
  /// The number of fields.
  std::size_t fields() const { return pipeline_.specs().size(); }
  /// It with its number of fields again. InvalidArgument if it has another one.
  template <std::size_t N> Dataset<N> as() const {
    require(fields() == N, "AnyDataset: it has ", fields(), " fields, asked for as one of ", N);
    return Dataset<N>(pipeline_);
  }

  // For the rooms of the library.
  explicit AnyDataset(Pipeline pipeline) : pipeline_(std::move(pipeline)) {}
  /// The stages behind the dataset.
  const Pipeline& pipeline() const { return pipeline_; }

 private:
  Pipeline pipeline_;
};

namespace data {

/// The pipeline over rows of axis 0; see from_tensor_slices.
Pipeline slices(const Tensors& tensors);

/// A dataset whose element i holds row i of every tensor. InvalidArgument unless all have the same number of rows.
template <std::same_as<Tensor>... T>
  requires(sizeof...(T) > 0)
Dataset<sizeof...(T)> from_tensor_slices(const T&... tensors) {
  return Dataset<sizeof...(T)>(slices({tensors...}));
}
/// The numbers 0, 1, ... n - 1 as i32 scalars.
Dataset<1> range(std::int64_t n);
/// The elements that `next` gives, F: () -> std::optional<Tensor>, until it gives none. Each pass calls a copy of
/// `next` from its beginning, on the thread that makes elements.
template <class F>
  requires std::same_as<std::invoke_result_t<F&>, std::optional<Tensor>>
Dataset<1> from_generator(Spec spec, F next) {
  return Dataset<1>(Pipeline::generate({spec}, [next]() mutable -> std::optional<Tensors> {
    std::optional<Tensor> element = next();
    if (!element) return std::nullopt;
    return Tensors{std::move(*element)};
  }));
}
/// from_generator for several fields, F: () -> std::optional of a pair, tuple or array of tensors.
template <std::size_t N, class F>
  requires(arity_of<typename std::invoke_result_t<F&>::value_type>::value == N)
Dataset<N> from_generator(const std::array<Spec, N>& specs, F next) {
  return Dataset<N>(Pipeline::generate({specs.begin(), specs.end()}, [next]() mutable -> std::optional<Tensors> {
    auto element = next();
    if (!element) return std::nullopt;
    return to_fields(std::move(*element));
  }));
}
/// The fields of all datasets side by side, as long as the shortest.
template <std::size_t... N>
  requires(sizeof...(N) > 0)
Dataset<(N + ...)> zip(const Dataset<N>&... parts) {
  return Dataset<(N + ...)>(Pipeline::zip({parts.pipeline()...}));
}
/// MNIST's format: images as they are in the file, such as u8 [rows, columns], and labels as i32 scalars, from IDX
/// files, plain or gzip. DataError if a file is damaged or their counts differ. Unavailable if one cannot be read.
Dataset<2> from_idx(const std::filesystem::path& images, const std::filesystem::path& labels);

}  // namespace data
}  // namespace gradus
