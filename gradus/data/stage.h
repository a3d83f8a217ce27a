/// Stages: a stage describes what is read, a Pass reads it in the order of one epoch. Every element can be reached by
/// its index; stages that only move elements about translate indices, so that a batch is written once: by the program
/// of a map, or as a copy of rows of the source.
#pragma once
#include <atomic>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include "gradus/data/pipeline.h"

namespace gradus {

/// The length of what has no end: no index reaches it.
inline constexpr std::int64_t endless_length = std::numeric_limits<std::int64_t>::max();

/// Elements as rows of arrays that lie in memory, an array a field.
struct ChosenRows {
  Tensors arrays;
  std::vector<std::int64_t> rows;
  bool is_batch = false;  // they are one element
};

/// Used by one thread at a time. Indices are within the stage's length in that epoch. The stage outlives its passes.
class Pass {
 public:
  virtual ~Pass() = default;
  /// The element: tensors that have their values. None past the end of a stage that is not counted.
  virtual Tensors at(std::int64_t index) = 0;
  /// Copies the elements at `indices`, one behind the other, to out[field]. Only where no spec has any_size, and of
  /// stages that are counted.
  virtual void write(std::span<const std::int64_t> indices, std::span<std::byte* const> out);
  /// Copies `count` elements from `first` on, or as many as there are, one behind the other to out[field]: their
  /// number. Only where no spec has any_size.
  virtual std::int64_t write_from(std::int64_t first, std::int64_t count, std::span<std::byte* const> out);

  /// What write() copies as one new tensor a field. `specs`: of an element. Who makes such tensors anyway hands them
  /// on; the others are asked to write.
  virtual Tensors stack(const std::vector<Spec>& specs, std::span<const std::int64_t> indices);
  /// Where the elements are rows of arrays, or the only one is a batch of such: which. Who computes with them need not
  /// have them copied.
  virtual std::optional<ChosenRows> chosen(std::span<const std::int64_t>) { return {}; }
  /// The same of write_from(). No tensors if there is no element.
  virtual Tensors stack_from(const std::vector<Spec>& specs, std::int64_t first, std::int64_t count);
};

/// New tensors for `count` elements one behind the other, and where they begin.
struct Stacked {
  Tensors fields;
  std::vector<std::byte*> rows;
  Stacked(const std::vector<Spec>& specs, std::int64_t count);
};

/// Of all passes of a stage so far, in nanoseconds; the stages that it reads are included in `making`.
struct StageTimes {
  std::atomic<std::int64_t> elements = 0, making = 0;
  // Of the last stage of a chain: how long readers waited for elements, and background threads for room.
  std::atomic<std::int64_t> reads = 0, readers_waited = 0, threads_waited = 0;
};

/// While it lives, passes that this thread reads throw Stopped once `stop` is set: nobody wants the element any more.
class StopScope {
 public:
  struct Stopped {};
  explicit StopScope(const std::atomic<bool>& stop);
  ~StopScope();
  StopScope(const StopScope&) = delete;
  static void check();

  /// While it lives, nothing stops this thread: what is made now will be kept.
  class Pause {
   public:
    Pause();
    ~Pause();
    Pause(const Pause&) = delete;

   private:
    const std::atomic<bool>* const paused_;
  };
};

/// Of what can only be read in order: an index before the last one starts over, and so does whatever comes after a
/// failure.
class ForwardPass : public Pass {
 public:
  Tensors at(std::int64_t index) final;

 protected:
  /// To the first element; also called before anything is read.
  virtual void restart() = 0;
  /// The next element, or no tensors: the end.
  virtual Tensors next() = 0;

 private:
  std::int64_t next_ = -1;  // the index of what next() gives; -1: restart first
  Tensors last_;
};

/// Every element has `per_element` rows, but for the last one, which may have fewer.
struct RowLayout {
  std::int64_t rows, per_element;
};

class Stage {
 public:
  explicit Stage(std::vector<Spec> specs) : specs_(std::move(specs)) {}
  virtual ~Stage() = default;
  Stage(const Stage&) = delete;

  /// Of an element; any_size where a dimension varies.
  const std::vector<Spec>& specs() const { return specs_; }
  virtual std::int64_t length(std::int64_t epoch) const = 0;
  virtual bool is_endless() const { return false; }
  /// Whether length() is known without reading. Where it is not, length() is a bound, and elements are read in order:
  /// an earlier index may cost a pass.
  virtual bool is_counted() const { return true; }
  /// How the rows of axis 0 of all fields are divided among the elements of an epoch; nothing if that is not known.
  virtual std::optional<RowLayout> layout(std::int64_t epoch) const;
  /// How many batches lie within one another in an element; 0: it is one example. Nothing where that is not known, as
  /// of what a generator gives.
  virtual std::optional<int> batchings() const { return 0; }
  /// How many elements may be made at once: a number that the user gave, or autotune.
  virtual int parallel_calls() const { return autotune; }
  /// "batch(32)", for explanations and messages.
  virtual std::string name() const = 0;
  virtual std::vector<const Stage*> sources() const { return {}; }
  /// What decides about its elements beside name(), specs() and sources(), the same in every run: keys caches on disk.
  virtual std::uint64_t identity() const { return 0; }
  /// Several passes may be read at once. What they take is counted.
  std::unique_ptr<Pass> open(std::int64_t epoch) const;
  StageTimes& times() const { return times_; }

 protected:
  virtual std::unique_ptr<Pass> make_pass(std::int64_t epoch) const = 0;

 private:
  const std::vector<Spec> specs_;
  mutable StageTimes times_;
};
using StagePointer = std::shared_ptr<const Stage>;

/// A stage that reads another one, and is like it where it does not say otherwise.
class DerivedStage : public Stage {
 public:
  DerivedStage(StagePointer source, std::vector<Spec> specs) : Stage(std::move(specs)), source_(std::move(source)) {}
  explicit DerivedStage(const StagePointer& source) : DerivedStage(source, source->specs()) {}
  std::int64_t length(std::int64_t epoch) const override { return source_->length(epoch); }
  bool is_endless() const override { return source_->is_endless(); }
  bool is_counted() const override { return source_->is_counted(); }
  std::optional<int> batchings() const override { return source_->batchings(); }
  int parallel_calls() const override { return source_->parallel_calls(); }
  std::vector<const Stage*> sources() const override { return {source_.get()}; }

 protected:
  const Stage& source() const { return *source_; }

 private:
  const StagePointer source_;
};

bool has_any_size(const Spec& spec);
bool have_any_size(const std::vector<Spec>& specs);
/// For so many elements of known sizes memory may be set aside before it is known whether there are so many: 64 MiB.
std::int64_t most_set_aside(const std::vector<Spec>& specs);

// One by one. Their arguments have been checked.
StagePointer map_stage(StagePointer source, const ElementFunction& trace, ElementFunction run, MapOptions options);
StagePointer shuffle_stage(StagePointer source, std::uint64_t seed, bool reshuffle);
StagePointer buffered_shuffle_stage(StagePointer source, std::int64_t buffer, std::uint64_t seed, bool reshuffle);
StagePointer batch_stage(StagePointer source, std::int64_t size, bool drop_remainder);
StagePointer cache_stage(StagePointer source);
StagePointer disk_cache_stage(StagePointer source, const std::filesystem::path& file);
StagePointer repeat_stage(StagePointer source, std::optional<std::int64_t> times);
/// Elements [begin, begin + count), as far as there are such.
StagePointer window_stage(StagePointer source, std::int64_t begin, std::int64_t count);
/// Elements index, index + count, index + 2 count ...
StagePointer shard_stage(StagePointer source, std::int64_t count, std::int64_t index);
/// Its epoch p is epoch start.epoch + p, or always start.epoch; its epoch 0 begins at start.index.
StagePointer start_stage(StagePointer source, Position start, bool same_epoch);
StagePointer filter_stage(StagePointer source, const ElementFunction& trace, ElementFunction run);
StagePointer unbatch_stage(StagePointer source);
StagePointer zip_stage(std::vector<StagePointer> sources);
StagePointer interleave_stage(StagePointer source, PipelineFunction f, InterleaveOptions options);
StagePointer padded_batch_stage(StagePointer source, std::int64_t size, PaddedBatchOptions options);
StagePointer bucket_stage(StagePointer source, const ElementFunction& trace, ElementFunction run,
                          BucketOptions options);
StagePointer generator_stage(std::vector<Spec> specs, GeneratorFunction next);

}  // namespace gradus
