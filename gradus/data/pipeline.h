/// Implementation of Dataset<N> without the static number of fields: a chain of stages, the begin of its passes, and
/// its read-ahead.
#pragma once
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>
#include "gradus/base/given.h"
#include "gradus/base/ranges.h"
#include "gradus/data/element.h"
#include "gradus/data/explanation.h"

namespace gradus {

namespace detail {
class Stage;
class BatchReaders;
class ElementRows;
class ElementSource;
struct PipelineChanges;
}  // namespace detail

/// The library chooses, and goes on choosing while it runs.
inline constexpr int autotune = -1;

/// Options of batch.
struct BatchOptions {
  bool drop_remainder = false;  // drop the last batch if it is smaller
};
/// Options of shuffle.
struct ShuffleOptions {
  std::optional<std::uint64_t> seed = {};  // none: one that follows from set_seed
  bool reshuffle_each_iteration = true;    // a new order in each epoch
  static constexpr auto ranges() { return std::array{Allowed::any("seed")}; }
};
/// Options of map.
struct MapOptions {
  int num_parallel_calls = autotune;  // elements made at once
  static constexpr auto ranges() { return std::array{Allowed::at_least(autotune, "num_parallel_calls")}; }
};
/// Options of padded_batch: one entry per field, in order; defaults as described.
struct PaddedBatchOptions {
  /// Shapes of an element. any_size, or no entry: the size of the largest in the batch.
  std::vector<Shape> padded_shapes = {};
  /// One per field, or one for all. Empty: 0.
  std::vector<double> padding_values = {};
  bool drop_remainder = false;  // drop the last batch if it is smaller
  static constexpr auto ranges() { return std::array{Allowed::any("padding_values")}; }
};
/// Options of bucket_by_sequence_length.
struct BucketOptions {
  /// Ascending: bucket i holds the elements with boundaries[i - 1] <= length < boundaries[i].
  std::vector<std::int64_t> bucket_boundaries;
  /// One per bucket, which is one more than there are boundaries.
  std::vector<std::int64_t> bucket_batch_sizes;
  /// Padding of the batches. drop_remainder drops buckets that are not full at the end.
  PaddedBatchOptions padding = {};
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("bucket_boundaries"), Allowed::positive("bucket_batch_sizes")};
  }
};
/// Options of prefetch.
struct PrefetchOptions {
  int buffers = autotune;  // elements that may be ready
  /// Bytes that autotune may hold ready; it measures elements as they come.
  std::int64_t max_bytes = std::int64_t{32} << 20;
  detail::Given given = {};  // never set: marks options of fit that are left out
  static constexpr auto ranges() {
    return std::array{Allowed::at_least(autotune, "buffers"), Allowed::positive("max_bytes")};
  }

  /// False only for the default of FitOptions.
  explicit operator bool() const { return detail::is_given(*this); }
  bool operator==(const PrefetchOptions&) const = default;
};
/// Options of interleave.
struct InterleaveOptions {
  int cycle_length = 4;           // datasets that are read alternately
  std::int64_t block_length = 1;  // elements per turn
  static constexpr auto ranges() { return std::array{Allowed::positive("cycle_length block_length")}; }
};
/// Options of window.
struct WindowingOptions {
  std::optional<std::int64_t> shift = {};  // elements from the begin of a window to that of the next; none: the size
  std::int64_t stride = 1;                 // elements from one in a window to the next in it
  bool drop_remainder = false;             // drop windows at the end that have fewer elements
  static constexpr auto ranges() { return std::array{Allowed::positive("shift stride")}; }
};
/// Options of sample_from_datasets.
struct SampleOptions {
  std::optional<std::uint64_t> seed = {};   // none: one that follows from set_seed
  bool stop_on_empty_dataset = false;       // end when a dataset that has ended is drawn; else go on with the others
  bool rerandomize_each_iteration = false;  // draw again in each epoch
  static constexpr auto ranges() { return std::array{Allowed::any("seed")}; }
};
/// Options of choose_from_datasets.
struct ChooseOptions {
  bool stop_on_empty_dataset = true;  // end when a dataset that has ended is chosen; else skip that choice
};
/// Options of rejection_resample.
struct RejectionOptions {
  std::vector<double> initial_dist = {};   // of the classes in this dataset; empty: estimated while it is read
  std::optional<std::uint64_t> seed = {};  // none: one that follows from set_seed
  static constexpr auto ranges() { return std::array{Allowed::not_negative("initial_dist"), Allowed::any("seed")}; }
};
/// Options of ignore_errors.
struct IgnoreErrorsOptions {
  bool log_warning = false;  // give a notice (set_notice_sink) of each error that is ignored
};
/// Epoch and index of the element that comes next.
struct Position {
  std::int64_t epoch = 0, index = 0;  // both from 0
  bool operator==(const Position&) const = default;
};

namespace detail {

/// One pass over a dataset, at its current place. Not for several threads at once.
class Reading {
 public:
  virtual ~Reading() = default;
  /// True behind the last element. If the number of elements is not known, this reads one, and throws as element()
  /// would.
  virtual bool at_end() = 0;
  /// The element at this place. OutOfRange at the end. An error in a stage is thrown here once, with the stage and the
  /// element in its message; then the pass has ended.
  virtual const Tensors& element() = 0;
  /// Goes to the next element.
  virtual void advance() = 0;
  /// The place of this element.
  virtual Position position() const = 0;
};

}  // namespace detail

/// A function of the fields of an element, for map.
using ElementFunction = std::function<Tensors(In)>;
/// Gives the next element, or none at the end. A copy goes on by itself.
using GeneratorFunction = std::function<std::optional<Tensors>()>;
/// Begins a source of elements (element_source.h), for one pass.
using ElementSourceFunction = std::function<std::unique_ptr<detail::ElementSource>()>;

/// The number of elements that a window of this key holds, for group_by_window.
using GroupSize = std::function<std::int64_t(std::int64_t)>;

class Pipeline;
/// A function from the fields of an element to a pipeline, for interleave.
using PipelineFunction = std::function<Pipeline(In)>;

/// A chain of stages, with the state of its passes.
class Pipeline {
 public:
  /// Starts from a stage.
  explicit Pipeline(std::shared_ptr<const detail::Stage> stage) : stage_(std::move(stage)) {}
  /// A copy counts its own passes.
  Pipeline(const Pipeline& other)
      : stage_(other.stage_), start_(other.start_), ahead_(other.ahead_), readers_(other.readers_) {}
  Pipeline& operator=(const Pipeline& other);

  /// As Dataset::map. `trace` is called with symbols, to learn the specs of the results and to make many elements at
  /// once; `run` is called with the fields of an element.
  Pipeline map(const ElementFunction& trace, ElementFunction run, MapOptions options) const;
  /// As Dataset::shuffle.
  Pipeline shuffle(ShuffleOptions options) const;
  Pipeline shuffle(std::int64_t buffer_size, ShuffleOptions options) const;
  /// As Dataset::batch.
  Pipeline batch(std::int64_t size, BatchOptions options) const;
  /// As Dataset::padded_batch.
  Pipeline padded_batch(std::int64_t size, PaddedBatchOptions options) const;
  /// As Dataset::bucket_by_sequence_length; `trace` and `run` as for map.
  Pipeline bucket_by_sequence_length(const ElementFunction& trace, ElementFunction run, BucketOptions options) const;
  /// As Dataset::filter; `trace` and `run` as for map.
  Pipeline filter(const ElementFunction& trace, ElementFunction run) const;
  /// As Dataset::take_while; `trace` and `run` as for map.
  Pipeline take_while(const ElementFunction& trace, ElementFunction run) const;
  /// As Dataset::unbatch.
  Pipeline unbatch() const;
  /// As Dataset::rebatch.
  Pipeline rebatch(std::vector<std::int64_t> sizes, BatchOptions options) const;
  /// As Dataset::concatenate.
  Pipeline concatenate(const Pipeline& other) const;
  /// As Dataset::enumerate.
  Pipeline enumerate(std::int64_t start) const;
  /// As Dataset::unique.
  Pipeline unique() const;
  /// As Dataset::scan; `trace` and `run` take the tensors of the state and then the fields of an element, and give them
  /// likewise.
  Pipeline scan(const Tensors& state, const ElementFunction& trace, ElementFunction run) const;
  /// As Dataset::reduce; `step` takes the tensors of the state and then the fields of an element.
  Tensors reduce(Tensors state, const ElementFunction& step) const;
  /// Windows as elements: the fields of all elements of a window, one after the other. For Dataset::window.
  Pipeline windows(std::int64_t size, WindowingOptions options) const;
  /// As WindowedDataset::batch.
  Pipeline joined_windows(std::int64_t size, WindowingOptions options) const;
  /// The elements whose fields these are, one after the other, as a dataset with the specs of this one.
  Pipeline holding(In fields) const;
  /// As Dataset::group_by_window: `reduce` is called with the key of a group and then the fields of all its elements;
  /// `trace` and `run` as for map.
  Pipeline group_by_window(const ElementFunction& trace, ElementFunction run, GroupSize size,
                           PipelineFunction reduce) const;
  /// As data::sample_from_datasets.
  static Pipeline sample(const std::vector<Pipeline>& parts, std::vector<double> weights, SampleOptions options);
  /// As data::choose_from_datasets.
  static Pipeline choose(const std::vector<Pipeline>& parts, const Pipeline& choices, ChooseOptions options);
  /// As Dataset::rejection_resample; `trace` and `run` as for map.
  Pipeline rejection_resample(const ElementFunction& trace, ElementFunction run, std::vector<double> target_dist,
                              RejectionOptions options) const;
  /// As Dataset::ignore_errors.
  Pipeline ignore_errors(IgnoreErrorsOptions options) const;
  /// Every step-th element, from the first on.
  Pipeline every(std::int64_t step) const;
  /// As Dataset::interleave. `name` opens errors; empty: that of interleave.
  Pipeline interleave(PipelineFunction f, InterleaveOptions options, std::string name = {}) const;
  /// As Dataset::shard.
  Pipeline shard(int count, int index) const;
  /// As data::zip.
  static Pipeline zip(const std::vector<Pipeline>& parts);
  /// As data::from_generator.
  static Pipeline generate(std::vector<Spec> specs, GeneratorFunction next);
  static Pipeline generate(std::vector<Spec> specs, ElementSourceFunction begin);
  /// As Dataset::cache.
  Pipeline cache() const;
  Pipeline cache(const std::filesystem::path& file) const;
  /// As Dataset::repeat.
  Pipeline repeat(std::int64_t times) const;
  /// As Dataset::take.
  Pipeline take(std::int64_t n) const;
  /// As Dataset::skip.
  Pipeline skip(std::int64_t n) const;
  /// As Dataset::epoch.
  Pipeline epoch(std::int64_t e) const;
  /// As Dataset::from.
  Pipeline from(Position position) const;
  /// As Dataset::prefetch.
  Pipeline prefetch(PrefetchOptions options) const;
  /// As Strategy::distribute: of each element the rows of one of these ranks. If the number of elements is not known,
  /// a pass ends where that of every rank has.
  Pipeline read_by(std::shared_ptr<const detail::BatchReaders> readers) const;
  /// The same data set with something changed, for trials: another chain of stages with the same start (see
  /// pipeline_changes.h).
  Pipeline changed(const detail::PipelineChanges& changes) const;
  /// As prefetch, in place of what was said before; without buffers nothing is made ahead.
  Pipeline read_ahead_by(PrefetchOptions options) const;
  /// The options by which it reads ahead; without buffers it does not.
  PrefetchOptions ahead() const { return ahead_; }
  /// The last stage.
  const detail::Stage& stage() const { return *stage_; }
  /// True if a strategy has distributed it.
  bool is_distributed() const { return readers_ != nullptr; }
  /// As Dataset::explain.
  PipelineExplanation explain() const;

  /// As Dataset::cardinality.
  std::optional<std::int64_t> cardinality() const;
  /// Specs of the fields; any_size where a dimension varies.
  const std::vector<Spec>& specs() const;
  /// Begins the next pass of this value.
  std::unique_ptr<detail::Reading> begin() const;
  /// As Dataset::first.
  Tensors first() const;
  /// The number of nested batches in an element; 0: it is one example. Empty if it is not known.
  std::optional<int> batchings() const;
  /// The number of rows of all elements of epoch 0 together, and of each; empty if it is not known without reading.
  std::optional<std::pair<std::int64_t, std::int64_t>> rows() const;
  /// True if it has no end, as far as is known without reading.
  bool is_endless() const;
  /// A stage whose epoch 0 is the first pass of this value.
  std::shared_ptr<const detail::Stage> with_start() const;

 private:
  /// The begin of the passes. Pass number p reads epoch start.epoch + p, or always start.epoch. The first one begins at
  /// start.index.
  struct Start {
    Position position;
    bool same_epoch = false;
  };
  Pipeline derived(std::shared_ptr<const detail::Stage> stage) const;
  std::unique_ptr<detail::Reading> read(std::int64_t pass, PrefetchOptions ahead) const;

  std::shared_ptr<const detail::Stage> stage_;
  Start start_;
  PrefetchOptions ahead_{.buffers = 0};                  // 0: does not read ahead
  std::shared_ptr<const detail::BatchReaders> readers_;  // null: one process reads all
  mutable std::atomic<std::int64_t> passes_{0};
};

}  // namespace gradus
