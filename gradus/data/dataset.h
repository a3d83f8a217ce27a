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
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include "gradus/data/pipeline.h"
#include "gradus/function/function.h"

namespace gradus {

template <std::size_t N> class WindowedDataset;

/// A restartable sequence of elements with N fields, as tf.data.Dataset.
template <std::size_t N> class Dataset {
 public:
  /// A Tensor for N = 1, else std::array<Tensor, N>.
  using element = typename detail::element_of<N>::type;

  /// Applies f to each element. f takes N tensors and gives a Tensor, or a pair, tuple or array of them. It is traced
  /// once per signature and runs as compiled code. After a batch it sees whole batches. Before one it is vectorised
  /// over the elements of the batch where possible: if f has a batched form, and sizes are known. Random numbers in f
  /// belong to (seed, epoch, index of the element), so the bits are the same. A C++ `if` on a value of the element is
  /// allowed, here and in the functions of other stages: each path is compiled once, elements are made one by one, and
  /// the sizes of the results are those of the first element.
  template <class F>
  auto map(F f, MapOptions options = {}) const -> Dataset<detail::arity_of<detail::with_tensors_t<F, N>>::value> {
    return Dataset<detail::arity_of<detail::with_tensors_t<F, N>>::value>(
        pipeline_.map(traced(f), compiled(f, "map"), options));
  }
  template <class F>
    requires(!requires { typename detail::with_tensors_t<F, N>; })
  void map(F, MapOptions = {}) const = delete;  // the function takes one Tensor for each field of an element
  /// Keeps the elements for which the predicate, which gives one boolean, is true. Their number is not known without
  /// reading them: there is no cardinality, and resuming within an epoch evaluates the predicate again for all earlier
  /// elements.
  template <class F>
    requires std::same_as<detail::with_tensors_t<F, N>, Tensor>
  Dataset filter(F predicate) const {
    return Dataset(pipeline_.filter(traced(predicate), compiled(predicate, "filter")));
  }
  template <class F>
    requires(!requires { typename detail::with_tensors_t<F, N>; })
  void filter(F) const = delete;  // the function takes one Tensor for each field of an element
  /// The elements before the first one for which the predicate, which gives one boolean, is false. As after a filter
  /// there is no cardinality.
  template <class F>
    requires std::same_as<detail::with_tensors_t<F, N>, Tensor>
  Dataset take_while(F predicate) const {
    return Dataset(pipeline_.take_while(traced(predicate), compiled(predicate, "take_while")));
  }
  /// f(state, fields...) gives a pair (or tuple, or array): the state for the next element, and an element of the
  /// result. A state is a Tensor, or a pair, tuple or array of them; its dtypes and numbers of dimensions stay. f is
  /// compiled. Elements are made in order: there is no cardinality, and resuming within an epoch makes all earlier
  /// elements again.
  template <detail::StateOfTensors State, class F>
    requires(std::tuple_size<detail::with_state_t<F, State, N>>::value == 2)
  auto scan(State initial_state, F f) const
      -> Dataset<detail::arity_of<std::tuple_element_t<1, detail::with_state_t<F, State, N>>>::value> {
    using Result = detail::with_state_t<F, State, N>;
    static_assert(detail::arity_of<std::tuple_element_t<0, Result>>::value == detail::arity_of<State>::value,
                  "scan: the function gives a state with as many tensors as the first one, and then an element");
    const auto step = [f](const Tensors& all) -> Tensors {
      auto [state, element] = detail::call_with_state<State, N>(f, all);
      Tensors fields = detail::to_fields(std::move(state));
      for (Tensor& field : detail::to_fields(std::move(element))) fields.push_back(std::move(field));
      return fields;
    };
    return Dataset<detail::arity_of<std::tuple_element_t<1, Result>>::value>(pipeline_.scan(
        detail::to_fields(std::move(initial_state)), over_vector(step), over_vector(function(step, {.name = "scan"}))));
  }
  /// Reads the next pass, as a loop does: f(state, fields...) of each element gives the state for the next one, and
  /// that after the last is the result. States as for scan. f is compiled.
  template <detail::StateOfTensors State, class F>
    requires(detail::arity_of<detail::with_state_t<F, State, N>>::value == detail::arity_of<State>::value)
  State reduce(State initial_state, F f) const {
    const auto step = [f](const Tensors& all) -> Tensors {
      return detail::to_fields(detail::call_with_state<State, N>(f, all));
    };
    return detail::to_state<State>(
        pipeline_.reduce(detail::to_fields(std::move(initial_state)), over_vector(function(step, {.name = "reduce"}))));
  }
  /// Windows of `size` elements, as datasets: window i begins at element i * .shift and takes every .stride-th element
  /// from there. Windows at the end have fewer elements, or are dropped: `window(5, {.shift = 1, .drop_remainder =
  /// true}).batch()` makes sequences of 5.
  WindowedDataset<N> window(std::int64_t size, WindowingOptions options = {}) const;
  /// Elements of one key, a scalar integer that key_func gives, are collected until there are window_size of them.
  /// reduce_func(key, window) gets them as a Dataset<N>, and the elements of the Dataset that it gives come next.
  /// Groups that are not full at the end follow in the order of their keys. window_size may be a function of the key.
  /// key_func is compiled; reduce_func is called when a group is full, its key is a std::int64_t.
  template <class K, class R>
    requires std::same_as<detail::with_tensors_t<K, N>, Tensor>
  auto group_by_window(K key_func, R reduce_func, std::int64_t window_size) const
      -> std::invoke_result_t<R&, std::int64_t, Dataset> {
    return group_by_window(key_func, reduce_func, [window_size](std::int64_t) { return window_size; });
  }
  template <class K, class R, std::invocable<std::int64_t> S>
    requires std::same_as<detail::with_tensors_t<K, N>, Tensor>
  auto group_by_window(K key_func, R reduce_func, S window_size) const
      -> std::invoke_result_t<R&, std::int64_t, Dataset> {
    const auto reduce = [reduce_func, source = pipeline_](In group) {
      return reduce_func(*group[0].host<std::int64_t>(), Dataset(source.holding(group.subspan(1)))).pipeline();
    };
    return std::invoke_result_t<R&, std::int64_t, Dataset>(
        pipeline_.group_by_window(traced(key_func), compiled(key_func, "group_by_window"), window_size, reduce));
  }
  /// Calls f with the fields of each element; f gives a Dataset. `cycle_length` of these are read alternately,
  /// `block_length` elements per turn; when one ends, the next takes its place. f is called when an element's turn
  /// comes, not traced.
  template <class F> auto interleave(F f, InterleaveOptions options = {}) const -> detail::with_tensors_t<F, N> {
    return detail::with_tensors_t<F, N>(
        pipeline_.interleave([f](In fields) { return detail::call_with<N>(f, fields).pipeline(); }, options));
  }
  /// Concatenates the datasets that f gives: interleave, one at a time.
  template <class F> auto flat_map(F f) const -> detail::with_tensors_t<F, N> {
    return interleave(f, {.cycle_length = 1});
  }
  /// Shuffles by a full permutation of indices, without a buffer. The default seed follows from set_seed, at this call.
  /// After a batch it permutes batches.
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
    requires std::same_as<detail::with_tensors_t<F, N>, Tensor>
  Dataset bucket_by_sequence_length(F element_length, BucketOptions options) const {
    return Dataset(pipeline_.bucket_by_sequence_length(
        traced(element_length), compiled(element_length, "bucket_by_sequence_length"), std::move(options)));
  }
  /// Inverse of batch: every row of axis 0 becomes an element.
  Dataset unbatch() const { return Dataset(pipeline_.unbatch()); }
  /// Batches of another size: unbatch, then batch. Several sizes are used in order, and again from the first one.
  Dataset rebatch(std::int64_t size, BatchOptions options = {}) const {
    return Dataset(pipeline_.rebatch({size}, options));
  }
  Dataset rebatch(std::vector<std::int64_t> sizes, BatchOptions options = {}) const {
    return Dataset(pipeline_.rebatch(std::move(sizes), options));
  }
  /// The elements of this dataset, then those of another one with the same dtypes and numbers of dimensions.
  Dataset concatenate(const Dataset& other) const { return Dataset(pipeline_.concatenate(other.pipeline_)); }
  /// Puts the number of each element before its fields: start, start + 1 ... as i64 scalars.
  Dataset<N + 1> enumerate(std::int64_t start = 0) const { return Dataset<N + 1>(pipeline_.enumerate(start)); }
  /// Each element once, where it comes first. Elements are integers of any shape; those that were seen are kept in
  /// memory. As after a filter there is no cardinality.
  Dataset unique() const
    requires(N == 1)
  {
    return Dataset(pipeline_.unique());
  }
  /// Drops elements so that their classes are distributed as target_dist says. class_func gives the class, a scalar
  /// integer from 0 on, which becomes the first field of the element. An element is kept with a probability in
  /// proportion to target_dist / initial_dist of its class, which is 1 for one class. Without initial_dist, that is
  /// estimated from all elements so far. The choice of elements follows from seed, epoch and index. OutOfRange for a
  /// class that target_dist does not have.
  template <class F>
    requires std::same_as<detail::with_tensors_t<F, N>, Tensor>
  Dataset<N + 1> rejection_resample(F class_func, std::vector<double> target_dist,
                                    RejectionOptions options = {}) const {
    return Dataset<N + 1>(pipeline_.rejection_resample(traced(class_func), compiled(class_func, "rejection_resample"),
                                                       std::move(target_dist), std::move(options)));
  }
  /// Leaves out elements that cannot be made: those whose map, file or batch throws an Error. These stay errors: a lack
  /// of memory (ResourceExhausted), and an error that the stages before cannot pass, as in a filter or generator, since
  /// no later element can be reached.
  Dataset ignore_errors(IgnoreErrorsOptions options = {}) const { return Dataset(pipeline_.ignore_errors(options)); }
  /// Every count-th element, from number `index` on. Each element is in exactly one shard.
  Dataset shard(int count, int index) const { return Dataset(pipeline_.shard(count, index)); }
  /// Keeps elements in memory once they are made. A shuffle before it is frozen in the order of epoch 0, so shuffle
  /// after it.
  Dataset cache() const { return Dataset(pipeline_.cache()); }
  /// Keeps elements in a file. Later runs read it if the data and the stages before are the same. A map is compared by
  /// its program and the values that it captured; a generator, an interleave and a function that branches in C++ on
  /// values only by their specs. Elements that a killed process had made are kept. DataError if the file was made from
  /// other data or stages, or is no cache: it is never overwritten. Unavailable while another process fills it.
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
  /// Makes elements ahead in the background, at most `buffers` of them, as the last stage gives them, wherever prefetch
  /// stands.
  Dataset prefetch(int buffers = autotune) const { return Dataset(pipeline_.prefetch({.buffers = buffers})); }
  /// prefetch within a number of bytes; two elements are always allowed.
  Dataset prefetch(PrefetchOptions options) const { return Dataset(pipeline_.prefetch(options)); }
  /// A report of the time that each stage took in all passes so far.
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
    element operator*() const { return detail::to_element<N>(pass().element()); }
    iterator& operator++() {
      pass().advance();
      return *this;
    }
    void operator++(int) { pass().advance(); }
    bool operator==(std::default_sentinel_t) const { return pass().at_end(); }
    /// The position of *it. Elements that were prefetched do not count.
    Position position() const { return pass().position(); }
    /// The pass that it reads. InvalidArgument for an empty iterator.
    detail::Reading& pass() const {
      require(static_cast<bool>(reading), "this iterator of a dataset is empty: it was default-constructed or moved ",
              "from; assign what begin() gives");
      return *reading;
    }

    std::shared_ptr<detail::Reading> reading;  // shared with copies
  };
  /// Starts the next pass.
  iterator begin() const { return {pipeline_.begin()}; }
  /// The end of every pass.
  std::default_sentinel_t end() const { return {}; }
  element first() const { return detail::to_element<N>(pipeline_.first()); }  // of epoch 0; OutOfRange if there is none

  // For the rooms of the library.
  explicit Dataset(Pipeline pipeline) : pipeline_(std::move(pipeline)) {}
  /// The stages behind this dataset.
  const Pipeline& pipeline() const { return pipeline_; }

 private:
  template <class F> static ElementFunction over_vector(F f) {
    return [f](In all) { return f(Tensors(all.begin(), all.end())); };
  }
  template <class F> static ElementFunction traced(F f) {
    return [f](In fields) { return detail::to_fields(detail::call_with<N>(f, fields)); };
  }
  template <class F> static ElementFunction compiled(F f, const char* name) {
    return [f = function(f, {.name = name})](In fields) { return detail::to_fields(detail::call_with<N>(f, fields)); };
  }
  Pipeline pipeline_;
};

/// The result of Dataset::window: a dataset of datasets.
template <std::size_t N> class WindowedDataset {
 public:
  /// Each window as one element: its elements joined along a new axis 0, as by batch. Works by index: windows can be
  /// shuffled, resumed and read by several ranks without reading those before. InvalidArgument for elements of
  /// different sizes.
  Dataset<N> batch() const { return Dataset<N>(source_.joined_windows(size_, options_)); }
  /// Calls f with each window, a Dataset<N>; f gives a Dataset. The result has the elements of all of these, one window
  /// after the other. `flat_map([](Dataset<1> window) { return window.batch(5); })` is TensorFlow's way to write
  /// batch().
  template <class F> auto flat_map(F f) const -> std::invoke_result_t<F&, Dataset<N>> {
    return interleave(f, {.cycle_length = 1});
  }
  /// As Dataset::interleave, for windows.
  template <class F>
  auto interleave(F f, InterleaveOptions options = {}) const -> std::invoke_result_t<F&, Dataset<N>> {
    return std::invoke_result_t<F&, Dataset<N>>(windows_.interleave(
        [f, source = source_](In fields) { return f(Dataset<N>(source.holding(fields))).pipeline(); }, options,
        "window"));
  }
  /// The number of windows if it is known without reading.
  std::optional<std::int64_t> cardinality() const { return windows_.cardinality(); }

  /// An input iterator over the windows: copies share one pass.
  struct iterator {
    using value_type = Dataset<N>;           // a window
    using difference_type = std::ptrdiff_t;  // as iterators need it
    Dataset<N> operator*() const { return Dataset<N>(source.holding(reading->element())); }
    iterator& operator++() {
      reading->advance();
      return *this;
    }
    void operator++(int) { reading->advance(); }
    bool operator==(std::default_sentinel_t) const { return reading->at_end(); }

    std::shared_ptr<detail::Reading> reading;  // shared with copies
    Pipeline source;                           // whose elements the windows hold
  };
  /// Starts the next pass.
  iterator begin() const { return {windows_.begin(), source_}; }
  /// The end of every pass.
  std::default_sentinel_t end() const { return {}; }

  // For the rooms of the library.
  WindowedDataset(Pipeline source, std::int64_t size, WindowingOptions options)
      : source_(std::move(source)), windows_(source_.windows(size, options)), size_(size), options_(options) {}

 private:
  Pipeline source_, windows_;
  std::int64_t size_;
  WindowingOptions options_;
};

template <std::size_t N> WindowedDataset<N> Dataset<N>::window(std::int64_t size, WindowingOptions options) const {
  return {pipeline_, size, options};
}

/// A Dataset of any number of fields, for options.
class AnyDataset {
 public:
  template <std::size_t N> AnyDataset(const Dataset<N>& dataset) : pipeline_(dataset.pipeline()) {}
  /// The number of fields.
  std::size_t fields() const { return pipeline_.specs().size(); }
  /// The dataset as one of N fields. InvalidArgument if it has another number of them.
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

/// The stages behind several datasets.
template <std::size_t N> std::vector<Pipeline> pipelines_of(const std::vector<Dataset<N>>& datasets) {
  std::vector<Pipeline> pipelines;
  for (const Dataset<N>& dataset : datasets) pipelines.push_back(dataset.pipeline());
  return pipelines;
}

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
  requires(detail::arity_of<typename std::invoke_result_t<F&>::value_type>::value == N)
Dataset<N> from_generator(const std::array<Spec, N>& specs, F next) {
  return Dataset<N>(Pipeline::generate({specs.begin(), specs.end()}, [next]() mutable -> std::optional<Tensors> {
    auto element = next();
    if (!element) return std::nullopt;
    return detail::to_fields(std::move(*element));
  }));
}
/// The fields of all datasets side by side, as long as the shortest.
template <std::size_t... N>
  requires(sizeof...(N) > 0)
Dataset<(N + ...)> zip(const Dataset<N>&... parts) {
  return Dataset<(N + ...)>(Pipeline::zip({parts.pipeline()...}));
}
/// Draws the next element from one of the datasets at random, until all have ended. Without weights all are equally
/// likely; a dataset of weight 0 is left out. Random numbers belong to the seed, and to the epoch with
/// .rerandomize_each_iteration. If the number of elements of every dataset is known, elements are reached by index.
/// InvalidArgument for weights that are negative or not as many as datasets.
template <std::size_t N>
Dataset<N> sample_from_datasets(const std::vector<Dataset<N>>& datasets, std::vector<double> weights = {},
                                SampleOptions options = {}) {
  return Dataset<N>(Pipeline::sample(pipelines_of(datasets), std::move(weights), options));
}
template <std::size_t N>
Dataset<N> sample_from_datasets(std::initializer_list<Dataset<N>> datasets, std::vector<double> weights = {},
                                SampleOptions options = {}) {
  return sample_from_datasets(std::vector<Dataset<N>>(datasets), std::move(weights), options);
}
/// Takes the next element of the dataset whose number, from 0, is the next element of `choice_dataset`, a scalar
/// integer. OutOfRange for another number. Without .stop_on_empty_dataset, choices of a dataset that has ended are
/// skipped.
template <std::size_t N>
Dataset<N> choose_from_datasets(const std::vector<Dataset<N>>& datasets, const Dataset<1>& choice_dataset,
                                ChooseOptions options = {}) {
  return Dataset<N>(Pipeline::choose(pipelines_of(datasets), choice_dataset.pipeline(), options));
}
template <std::size_t N>
Dataset<N> choose_from_datasets(std::initializer_list<Dataset<N>> datasets, const Dataset<1>& choice_dataset,
                                ChooseOptions options = {}) {
  return choose_from_datasets(std::vector<Dataset<N>>(datasets), choice_dataset, options);
}
/// MNIST's format: images as they are in the file, such as u8 [rows, columns], and labels as i32 scalars, from IDX
/// files, plain or gzip. DataError if a file is damaged or their counts differ. Unavailable if one cannot be read.
Dataset<2> from_idx(const std::filesystem::path& images, const std::filesystem::path& labels);

}  // namespace data
}  // namespace gradus
