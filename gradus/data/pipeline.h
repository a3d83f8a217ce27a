/// What Dataset<N> is made of, without the static number of fields: a chain of stages, where its passes begin, and how
/// far they read ahead.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>
#include "gradus/data/element.h"

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
};
struct MapOptions {
  int num_parallel_calls = autotune;
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
  virtual bool at_end() const = 0;
  /// The element at this place. OutOfRange at the end. What goes wrong in a stage is thrown here once, with the stage
  /// and the element in its message; then the pass has ended.
  virtual const Tensors& element() = 0;
  virtual void advance() = 0;
  virtual Position position() const = 0;
};

/// What a map does with the fields of an element.
using ElementFunction = std::function<Tensors(In)>;

class Pipeline {
 public:
  explicit Pipeline(std::shared_ptr<const Stage> stage) : stage_(std::move(stage)) {}
  /// A copy counts its own passes.
  Pipeline(const Pipeline& other) : stage_(other.stage_), start_(other.start_), buffers_(other.buffers_) {}
  Pipeline& operator=(const Pipeline& other);

  /// `trace` is called with symbols, to learn what comes out; `run` with the fields of an element.
  Pipeline map(const ElementFunction& trace, ElementFunction run, MapOptions options) const;
  Pipeline shuffle(ShuffleOptions options) const;
  Pipeline shuffle(std::int64_t buffer_size, ShuffleOptions options) const;
  Pipeline batch(std::int64_t size, BatchOptions options) const;
  Pipeline cache() const;
  Pipeline repeat(std::int64_t times) const;
  Pipeline take(std::int64_t n) const;
  Pipeline skip(std::int64_t n) const;
  Pipeline epoch(std::int64_t e) const;
  Pipeline from(Position position) const;
  Pipeline prefetch(int buffers) const;

  std::optional<std::int64_t> cardinality() const;
  const std::vector<Spec>& specs() const;
  /// Begins the next pass of this value.
  std::unique_ptr<Reading> begin() const;
  Tensors first() const;

 private:
  /// Where the passes begin: pass number p reads epoch start.epoch + p, or always start.epoch; the first one begins at
  /// start.index.
  struct Start {
    Position position;
    bool same_epoch = false;
  };
  std::shared_ptr<const Stage> with_start() const;
  Pipeline derived(std::shared_ptr<const Stage> stage) const;
  std::unique_ptr<Reading> read(std::int64_t pass, int buffers) const;

  std::shared_ptr<const Stage> stage_;
  Start start_;
  int buffers_ = 0;  // 0: does not read ahead
  mutable std::atomic<std::int64_t> passes_{0};
};

}  // namespace gradus
