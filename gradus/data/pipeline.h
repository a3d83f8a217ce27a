/// What Dataset<N> is made of, without the static number of fields: a chain of stages, where its passes begin, and how
/// far they read ahead.
#pragma once
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>
#include "gradus/base/ranges.h"
#include "gradus/data/element.h"
#include "gradus/data/explanation.h"

namespace gradus {

class Stage;

/// Let the library choose, and go on choosing while it runs.
inline constexpr int autotune = -1;

struct BatchOptions {
  bool drop_remainder = false;
};
struct ShuffleOptions {
  std::optional<std::uint64_t> seed = {};
  bool reshuffle_each_iteration = true;
  static constexpr auto ranges() { return std::array{Allowed::any("seed")}; }
};
struct MapOptions {
  int num_parallel_calls = autotune;
  static constexpr auto ranges() { return std::array{Allowed::at_least(autotune, "num_parallel_calls")}; }
};
/// How elements of different sizes become one batch. Fields in order; what is not given is as said here.
struct PaddedBatchOptions {
  /// Of an element; any_size, also where nothing is given: as large as the largest in the batch.
  std::vector<Shape> padded_shapes = {};
  /// One for each field, or one for all. Nothing: 0.
  std::vector<double> padding_values = {};
  bool drop_remainder = false;
  static constexpr auto ranges() { return std::array{Allowed::any("padding_values")}; }
};
struct BucketOptions {
  /// Ascending: bucket i holds the elements with boundaries[i - 1] <= length < boundaries[i].
  std::vector<std::int64_t> bucket_boundaries;
  /// One more than there are boundaries.
  std::vector<std::int64_t> bucket_batch_sizes;
  /// Of the batches; drop_remainder drops buckets that are not full at the end.
  PaddedBatchOptions padding = {};
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("bucket_boundaries"), Allowed::positive("bucket_batch_sizes")};
  }
};
struct PrefetchOptions {
  int buffers = autotune;  // elements that may be ready
  /// What autotune may hold ready; it measures elements as they come.
  std::int64_t max_bytes = std::int64_t{32} << 20;
  static constexpr auto ranges() {
    return std::array{Allowed::at_least(autotune, "buffers"), Allowed::positive("max_bytes")};
  }
};
struct InterleaveOptions {
  int cycle_length = 4;           // so many are read by turns
  std::int64_t block_length = 1;  // elements at a turn
  static constexpr auto ranges() { return std::array{Allowed::positive("cycle_length block_length")}; }
};
/// The element that comes next.
struct Position {
  std::int64_t epoch = 0, index = 0;
  bool operator==(const Position&) const = default;
};

/// One pass over a dataset, as far as it was read. Not for several threads at once.
class Reading {
 public:
  virtual ~Reading() = default;
  /// Where the number of elements is not known this reads one, and throws what element() would.
  virtual bool at_end() = 0;
  /// The element at this place. OutOfRange at the end. What goes wrong in a stage is thrown here once, with the stage
  /// and the element in its message; then the pass has ended.
  virtual const Tensors& element() = 0;
  virtual void advance() = 0;
  virtual Position position() const = 0;
};

/// What a map does with the fields of an element.
using ElementFunction = std::function<Tensors(In)>;
/// The next element, or nothing at the end. A copy goes on by itself.
using GeneratorFunction = std::function<std::optional<Tensors>()>;

class Pipeline;
/// What interleaving makes of the fields of an element.
using PipelineFunction = std::function<Pipeline(In)>;

class Pipeline {
 public:
  explicit Pipeline(std::shared_ptr<const Stage> stage) : stage_(std::move(stage)) {}
  /// A copy counts its own passes.
  Pipeline(const Pipeline& other) : stage_(other.stage_), start_(other.start_), ahead_(other.ahead_) {}
  Pipeline& operator=(const Pipeline& other);

  /// `trace` is called with symbols, to learn what comes out and to make many elements at once; `run` with the fields
  /// of an element.
  Pipeline map(const ElementFunction& trace, ElementFunction run, MapOptions options) const;
  Pipeline shuffle(ShuffleOptions options) const;
  Pipeline shuffle(std::int64_t buffer_size, ShuffleOptions options) const;
  Pipeline batch(std::int64_t size, BatchOptions options) const;
  Pipeline padded_batch(std::int64_t size, PaddedBatchOptions options) const;
  Pipeline bucket_by_sequence_length(const ElementFunction& trace, ElementFunction run, BucketOptions options) const;
  Pipeline filter(const ElementFunction& trace, ElementFunction run) const;
  Pipeline unbatch() const;
  Pipeline interleave(PipelineFunction f, InterleaveOptions options) const;
  Pipeline shard(int count, int index) const;
  static Pipeline zip(const std::vector<Pipeline>& parts);
  static Pipeline generate(std::vector<Spec> specs, GeneratorFunction next);
  Pipeline cache() const;
  Pipeline cache(const std::filesystem::path& file) const;
  Pipeline repeat(std::int64_t times) const;
  Pipeline take(std::int64_t n) const;
  Pipeline skip(std::int64_t n) const;
  Pipeline epoch(std::int64_t e) const;
  Pipeline from(Position position) const;
  Pipeline prefetch(PrefetchOptions options) const;
  PipelineExplanation explain() const;

  std::optional<std::int64_t> cardinality() const;
  const std::vector<Spec>& specs() const;
  /// Begins the next pass of this value.
  std::unique_ptr<Reading> begin() const;
  Tensors first() const;
  /// How many batches lie within one another in an element; 0: it is one example. Nothing where that is not known.
  std::optional<int> batchings() const;
  /// Without an end, as far as is known without reading.
  bool is_endless() const;
  /// A stage whose epoch 0 is the first pass of this value.
  std::shared_ptr<const Stage> with_start() const;

 private:
  /// Where the passes begin: pass number p reads epoch start.epoch + p, or always start.epoch; the first one begins at
  /// start.index.
  struct Start {
    Position position;
    bool same_epoch = false;
  };
  Pipeline derived(std::shared_ptr<const Stage> stage) const;
  std::unique_ptr<Reading> read(std::int64_t pass, PrefetchOptions ahead) const;

  std::shared_ptr<const Stage> stage_;
  Start start_;
  PrefetchOptions ahead_{.buffers = 0};  // 0: does not read ahead
  mutable std::atomic<std::int64_t> passes_{0};
};

}  // namespace gradus
