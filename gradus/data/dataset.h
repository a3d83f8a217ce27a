/// Dataset<N>: N tensors an element, made by a chain of stages: lazy, restartable, reproducible. The order is a
/// function of (seed, epoch, index), whatever the number of threads.
///
/// Which epoch: begin() counts the passes of this value, from 0; copies and derived datasets start at 0; first() looks
/// at epoch 0, and so do take() and skip() in their first pass, unless epoch(e) or from(position) says another.
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

template <std::size_t N> class Dataset {
 public:
  using element = typename element_of<N>::type;

  /// f of N tensors gives a Tensor, or a pair, tuple or array of them. It is traced once for each signature and runs as
  /// compiled code; after a batch it sees whole batches, which is the fast way.
  template <class F> auto map(F f, MapOptions options = {}) const -> Dataset<arity_of<with_tensors_t<F, N>>::value> {
    const ElementFunction trace = [f](In fields) { return to_fields(call_with<N>(f, fields)); };
    const ElementFunction run = [compiled = function(f, {.name = "map"})](In fields) {
      return to_fields(call_with<N>(compiled, fields));
    };
    return Dataset<arity_of<with_tensors_t<F, N>>::value>(pipeline_.map(trace, run, options));
  }
  /// A full permutation, by index: no buffer. Without a seed it takes one that follows from set_seed, here and now.
  /// After a batch it permutes batches.
  Dataset shuffle(ShuffleOptions options = {}) const { return Dataset(pipeline_.shuffle(options)); }
  /// As a buffer of that many elements would do it, from which each element is drawn at random.
  Dataset shuffle(std::int64_t buffer_size, ShuffleOptions options = {}) const {
    return Dataset(pipeline_.shuffle(buffer_size, options));
  }
  /// Joins `size` elements along a new axis 0. The last batch may be smaller, or is dropped.
  Dataset batch(std::int64_t size, BatchOptions options = {}) const { return Dataset(pipeline_.batch(size, options)); }
  /// Keeps elements in memory once they were made. A shuffle before it is frozen in the order of epoch 0, so shuffle
  /// after it.
  Dataset cache() const { return Dataset(pipeline_.cache()); }
  /// Round r is epoch r of what is repeated; -1: without end.
  Dataset repeat(std::int64_t times = -1) const { return Dataset(pipeline_.repeat(times)); }
  Dataset take(std::int64_t n) const { return Dataset(pipeline_.take(n)); }
  /// By index: it costs nothing.
  Dataset skip(std::int64_t n) const { return Dataset(pipeline_.skip(n)); }
  /// The same dataset, always in the order of epoch e.
  Dataset epoch(std::int64_t e) const { return Dataset(pipeline_.epoch(e)); }
  /// Its first pass starts there, the next is the epoch after.
  Dataset from(Position position) const { return Dataset(pipeline_.from(position)); }
  /// Elements are made ahead, in the background, that many at most; the stages after it included.
  Dataset prefetch(int buffers = autotune) const { return Dataset(pipeline_.prefetch(buffers)); }
  /// Known without reading, or nothing: a dataset without end has none.
  std::optional<std::int64_t> cardinality() const { return pipeline_.cardinality(); }
  /// any_size where a dimension varies from element to element, as of a batch that may be the small last one.
  std::array<Spec, N> element_spec() const {
    std::array<Spec, N> specs;
    for (std::size_t i = 0; i < N; ++i) specs[i] = pipeline_.specs()[i];
    return specs;
  }

  /// An input iterator: copies share one pass.
  struct iterator {
    using value_type = element;
    using difference_type = std::ptrdiff_t;
    element operator*() const { return to_element<N>(reading->element()); }
    iterator& operator++() {
      reading->advance();
      return *this;
    }
    void operator++(int) { reading->advance(); }
    bool operator==(std::default_sentinel_t) const { return reading->at_end(); }
    /// Of *it; what was prefetched does not count.
    Position position() const { return reading->position(); }

    std::shared_ptr<Reading> reading;
  };
  iterator begin() const { return {pipeline_.begin()}; }
  std::default_sentinel_t end() const { return {}; }
  element first() const { return to_element<N>(pipeline_.first()); }

  // For the rooms of the library.
  explicit Dataset(Pipeline pipeline) : pipeline_(std::move(pipeline)) {}
  const Pipeline& pipeline() const { return pipeline_; }

 private:
  Pipeline pipeline_;
};

/// A Dataset whose number of fields is forgotten, for options.
class AnyDataset {
 public:
  template <std::size_t N> AnyDataset(const Dataset<N>& dataset) : pipeline_(dataset.pipeline()) {}
  std::size_t fields() const { return pipeline_.specs().size(); }

  // For the rooms of the library.
  const Pipeline& pipeline() const { return pipeline_; }

 private:
  Pipeline pipeline_;
};

namespace data {

/// The pipeline over rows of axis 0; see from_tensor_slices.
Pipeline slices(const Tensors& tensors);

/// Element i holds row i of every tensor. InvalidArgument unless all have as many rows.
template <std::same_as<Tensor>... T>
  requires(sizeof...(T) > 0)
Dataset<sizeof...(T)> from_tensor_slices(const T&... tensors) {
  return Dataset<sizeof...(T)>(slices({tensors...}));
}
/// 0, 1, ... n - 1 as i32 scalars.
Dataset<1> range(std::int64_t n);
/// Images as they are in the file, such as u8 [rows, columns], and labels as i32 scalars, from IDX files, plain or
/// gzip. DataError if a file is damaged or their counts differ; Unavailable if one cannot be read.
Dataset<2> from_idx(const std::filesystem::path& images, const std::filesystem::path& labels);

}  // namespace data
}  // namespace gradus
