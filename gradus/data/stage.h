/// Stages: a stage describes a sequence of elements, a Pass reads it in the order of one epoch. Every element can be
/// reached by its index. Stages that only reorder elements translate indices, so a batch is written once: by the
/// program of a map, or as a copy of rows of the source.
#pragma once
#include <atomic>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include "gradus/data/pipeline.h"

namespace gradus {

/// The length of an endless sequence: no index reaches it.
inline constexpr std::int64_t endless_length = std::numeric_limits<std::int64_t>::max();

/// Elements as rows of arrays in memory, one array per field.
struct ChosenRows {
  Tensors arrays;
  std::vector<std::int64_t> rows;
  bool is_batch = false;  // the rows are one element, a batch
};

/// Rows [begin, end) of axis 0.
struct RowRange {
  std::int64_t begin = 0, end = 0;
  std::int64_t count() const { return end - begin; }
  bool operator==(const RowRange&) const = default;
};

/// Reads a stage in one epoch; for one thread at a time. Indices are within the stage's length in that epoch. The stage
/// outlives its passes.
class Pass {
 public:
  virtual ~Pass() = default;
  /// The element: tensors that have their values. Empty past the end of a stage that is not counted.
  virtual Tensors at(std::int64_t index) = 0;
  /// Copies the elements at `indices`, contiguously, to out[field]. Only for stages that are counted, and specs without
  /// any_size.
  virtual void write(std::span<const std::int64_t> indices, std::span<std::byte* const> out);
  /// Copies up to `count` elements from `first` on, contiguously, to out[field], and returns their number. Only for
  /// specs without any_size.
  virtual std::int64_t write_from(std::int64_t first, std::int64_t count, std::span<std::byte* const> out);

  /// The elements that write() copies, as one new tensor per field. `specs`: of an element. Stages that make such
  /// tensors anyway pass them on; the others are asked to write.
  virtual Tensors stack(const std::vector<Spec>& specs, std::span<const std::int64_t> indices);
  /// The rows that these elements are, or of which the only element is a batch; empty if they are no rows of arrays. A
  /// reader that computes with them need not have them copied.
  virtual std::optional<ChosenRows> chosen(std::span<const std::int64_t>) { return {}; }
  /// stack() for the elements of write_from(). No tensors if there is no element.
  virtual Tensors stack_from(const std::vector<Spec>& specs, std::int64_t first, std::int64_t count);

  /// The number of rows that an element has along axis 0 of its fields, where rows_at() may make some without the
  /// others; empty: it cannot, or that is not known.
  virtual std::optional<std::int64_t> rows_of(std::int64_t) { return {}; }
  /// These rows of an element that has rows_of(), at least one; empty: it takes the whole element to make them.
  virtual std::optional<Tensors> rows_at(std::int64_t, RowRange) { return {}; }
  /// chosen() for these rows of an element.
  virtual std::optional<ChosenRows> chosen_rows(std::int64_t, RowRange) { return {}; }
};

/// The pass of a stage that gives elements of its source as they are, each under another index.
class MovedPass : public Pass {
 public:
  explicit MovedPass(std::unique_ptr<Pass> source) : source_(std::move(source)) {}
  Tensors at(std::int64_t index) override { return source_->at(moved(index)); }
  void write(std::span<const std::int64_t> indices, std::span<std::byte* const> out) override {
    source_->write(all_moved(indices), out);
  }
  Tensors stack(const std::vector<Spec>& specs, std::span<const std::int64_t> indices) override {
    return source_->stack(specs, all_moved(indices));
  }
  std::optional<ChosenRows> chosen(std::span<const std::int64_t> indices) override {
    return source_->chosen(all_moved(indices));
  }
  std::optional<std::int64_t> rows_of(std::int64_t index) override { return source_->rows_of(moved(index)); }
  std::optional<Tensors> rows_at(std::int64_t index, RowRange rows) override {
    return source_->rows_at(moved(index), rows);
  }
  std::optional<ChosenRows> chosen_rows(std::int64_t index, RowRange rows) override {
    return source_->chosen_rows(moved(index), rows);
  }

 protected:
  /// The index in the source.
  virtual std::int64_t moved(std::int64_t index) = 0;
  virtual std::span<const std::int64_t> all_moved(std::span<const std::int64_t> indices);
  Pass& source() { return *source_; }

 private:
  std::unique_ptr<Pass> source_;
  std::vector<std::int64_t> moved_;
};

/// The pass of a stage whose elements are those of several passes, its parts: one after the other, or by turns.
class PartedPass : public Pass {
 public:
  /// `specs`: of an element.
  explicit PartedPass(const std::vector<Spec>& specs) : specs_(specs) {}
  Tensors at(std::int64_t index) override;
  void write(std::span<const std::int64_t> indices, std::span<std::byte* const> out) override;
  Tensors stack(const std::vector<Spec>& specs, std::span<const std::int64_t> indices) override;
  std::optional<ChosenRows> chosen(std::span<const std::int64_t> indices) override;
  std::optional<std::int64_t> rows_of(std::int64_t index) override;
  std::optional<Tensors> rows_at(std::int64_t index, RowRange rows) override;
  std::optional<ChosenRows> chosen_rows(std::int64_t index, RowRange rows) override;

 protected:
  struct Place {
    std::int64_t part, index;  // which part, and the index in it
  };
  virtual Place place_of(std::int64_t index) = 0;
  /// The pass of a part, until another one is asked for.
  virtual Pass& part(std::int64_t number) = 0;

 private:
  Pass* only_part_of(std::span<const std::int64_t> indices);
  const std::vector<Spec> specs_;
  std::vector<std::int64_t> within_;
};

/// New tensors for `count` contiguous elements, and the addresses of their first bytes.
struct Stacked {
  Tensors fields;
  std::vector<std::byte*> rows;
  Stacked(const std::vector<Spec>& specs, std::int64_t count);
};

/// Times of all passes of a stage so far, in nanoseconds. `making` includes the stages that it reads.
struct StageTimes {
  std::atomic<std::int64_t> elements = 0, making = 0;
  // For the last stage of a chain: times that readers waited for elements, and background threads for room.
  std::atomic<std::int64_t> reads = 0, readers_waited = 0, threads_waited = 0;
};

/// While it lives, passes that this thread reads throw Stopped once `stop` is set: the element is not wanted any more.
class StopScope {
 public:
  struct Stopped {};
  explicit StopScope(const std::atomic<bool>& stop);
  ~StopScope();
  StopScope(const StopScope&) = delete;
  static void check();

  /// While it lives, nothing stops this thread: the elements that it makes will be kept.
  class Pause {
   public:
    Pause();
    ~Pause();
    Pause(const Pause&) = delete;

   private:
    const std::atomic<bool>* const paused_;
  };
};

/// A pass that can only be read in order. An index before the last one starts over, and so does any index after a
/// failure.
class ForwardPass : public Pass {
 public:
  Tensors at(std::int64_t index) final;
  std::int64_t write_from(std::int64_t first, std::int64_t count, std::span<std::byte* const> out) final;

 protected:
  /// Returns to the first element; also called before anything is read.
  virtual void restart() = 0;
  /// The next element; no tensors at the end.
  virtual Tensors next() = 0;
  /// Copies up to `count` elements that come next, contiguously, to out[field], and returns their number; fewer only at
  /// the end.
  virtual std::int64_t write_next(std::int64_t count, std::span<std::byte* const> out);

 private:
  void begin();
  std::int64_t next_ = -1;  // index of the element that next() gives; -1: restart first
  bool is_over_ = false;    // there is no element next_
  std::int64_t kept_ = -1;  // index of the element last_; -1: none
  Tensors last_;
};

/// Every element has `per_element` rows, except that the last one may have fewer.
struct RowLayout {
  std::int64_t rows, per_element;
};

using detail::BatchReaders;
using detail::PipelineChanges;
using detail::Reading;
using detail::Stage;
using StagePointer = std::shared_ptr<const Stage>;

/// A step in the making of a dataset.
class detail::Stage : public std::enable_shared_from_this<Stage> {
 public:
  explicit Stage(std::vector<Spec> specs) : specs_(std::move(specs)) {}
  virtual ~Stage() = default;
  Stage(const Stage&) = delete;

  /// Specs of an element, with any_size where a dimension varies.
  const std::vector<Spec>& specs() const { return specs_; }
  /// Number of elements of an epoch; a bound if it is not counted.
  virtual std::int64_t length(std::int64_t epoch) const = 0;
  virtual bool is_endless() const { return false; }
  /// True if length() is known without reading. If not, length() is a bound and elements are read in order: an earlier
  /// index may cost a pass.
  virtual bool is_counted() const { return true; }
  /// The distribution of the rows of axis 0 of all fields over the elements of an epoch; empty if it is not known.
  virtual std::optional<RowLayout> layout(std::int64_t epoch) const;
  /// The number of nested batches in an element; 0: it is one example. Empty if it is not known, as after a generator.
  virtual std::optional<int> batchings() const { return 0; }
  /// The number of elements that may be made at once: a number from the user, or autotune.
  virtual int parallel_calls() const { return autotune; }
  /// Name for explanations and messages, such as "batch(32)".
  virtual std::string name() const = 0;
  /// Its name in profiles: stages of one name are numbered from the source on, as "map", "map 2".
  std::string name_in_chain() const;
  /// Bytes that it keeps in memory whatever is read, such as the arrays that it was made of.
  virtual std::int64_t held_bytes() const { return 0; }
  /// The stages that it reads.
  virtual std::vector<const Stage*> sources() const { return {}; }
  /// A hash of everything that decides about its elements besides name(), specs() and sources(). It is equal in every
  /// run, and keys caches on disk.
  virtual std::uint64_t identity() const { return 0; }
  /// A hash of everything that is the same on ranks that read one data set together: name(), and the cheap parts of
  /// identity(). It leaves out machine-dependent properties of equal files, such as times and paths.
  virtual std::uint64_t fingerprint() const;
  /// The remedy if ranks have different fingerprints.
  virtual std::string_view remedy() const { return "make the same data set on every rank"; }
  /// True if a number, such as a rank, chooses the elements.
  virtual bool is_shard() const { return false; }
  /// True if the elements of every epoch are those of epoch 0, in the same order.
  virtual bool repeats_itself() const { return true; }
  /// The number of elements that it joins to one, of a batch.
  virtual std::optional<std::int64_t> batch_size() const { return {}; }
  /// This stage over other sources, as `changes` say (pipeline_changes.h); null: it can be over its own alone.
  virtual StagePointer over(const std::vector<StagePointer>&, const PipelineChanges&) const { return nullptr; }
  /// Starts a pass. Several passes may be read at once. Their times are counted.
  std::unique_ptr<Pass> open(std::int64_t epoch) const;
  StageTimes& times() const { return times_; }

 protected:
  virtual std::unique_ptr<Pass> make_pass(std::int64_t epoch) const = 0;

 private:
  const std::vector<Spec> specs_;
  mutable StageTimes times_;
};

/// A stage that reads another one, and equals it in everything that it does not override.
class DerivedStage : public Stage {
 public:
  DerivedStage(StagePointer source, std::vector<Spec> specs) : Stage(std::move(specs)), source_(std::move(source)) {}
  explicit DerivedStage(const StagePointer& source) : DerivedStage(source, source->specs()) {}
  std::int64_t length(std::int64_t epoch) const override { return source_->length(epoch); }
  bool is_endless() const override { return source_->is_endless(); }
  bool is_counted() const override { return source_->is_counted(); }
  std::optional<int> batchings() const override { return source_->batchings(); }
  int parallel_calls() const override { return source_->parallel_calls(); }
  bool repeats_itself() const override { return source_->repeats_itself(); }
  std::vector<const Stage*> sources() const override { return {source_.get()}; }

 protected:
  const Stage& source() const { return *source_; }

 private:
  const StagePointer source_;
};

/// A stage that reads several others, its parts.
class JoiningStage : public Stage {
 public:
  JoiningStage(std::vector<StagePointer> parts, std::vector<Spec> specs)
      : Stage(std::move(specs)), parts_(std::move(parts)) {}
  bool is_counted() const override;
  int parallel_calls() const override;
  /// That of the part that has the fewest.
  std::optional<int> batchings() const override;
  bool repeats_itself() const override;
  std::vector<const Stage*> sources() const override;

 protected:
  const std::vector<StagePointer>& parts() const { return parts_; }

 private:
  const std::vector<StagePointer> parts_;
};

/// Specs that the elements of all parts fit, with any_size where they differ. InvalidArgument, opened by `stage`, if
/// they have other numbers of fields, dtypes or ranks.
std::vector<Spec> specs_of_all(std::string_view stage, const std::vector<StagePointer>& parts);

/// a + b, or the length of an endless sequence if that is more.
std::int64_t sum_of_lengths(std::int64_t a, std::int64_t b);

/// The elements of the source in each window: window i has those at i * shift, i * shift + stride ... `size` of them,
/// or fewer at the end.
struct WindowShape {
  std::int64_t size, shift, stride = 1;
  bool drop_remainder = false;  // without those that have fewer
  /// The number of elements from the first to the last of a window.
  std::int64_t span() const { return (size - 1) * stride + 1; }
  /// The number of windows over n elements.
  std::int64_t count(std::int64_t n) const;
  /// The number of elements of window `index` over n.
  std::int64_t size_of(std::int64_t index, std::int64_t n) const;
};

/// Sizes of batches, by turns.
struct BatchTurns {
  std::vector<std::int64_t> sizes;
  bool drop_remainder = false;  // without a last batch that is smaller than its turn says
  /// The elements of one round.
  std::int64_t all() const;
  /// The elements of batch `index` of n.
  RowRange rows(std::int64_t index, std::int64_t n) const;
  /// The number of batches of n elements.
  std::int64_t count(std::int64_t n) const;
};

/// Up to `count` elements of a pass from number `first` on.
std::vector<Tensors> elements_from(Pass& source, std::int64_t first, std::int64_t count);
/// Elements joined to a batch, of which the first has this index and the others follow at `stride`. InvalidArgument if
/// they differ in size.
Tensors joined_elements(const std::vector<Tensors>& elements, std::int64_t first, std::int64_t stride);

/// The elements of windows in one epoch. Where windows overlap, elements are read once.
class WindowElements {
 public:
  WindowElements(const Stage& source, std::int64_t epoch, WindowShape shape);
  /// The elements of window `index`; none past the last window.
  std::vector<Tensors> at(std::int64_t index);

 private:
  bool hold(std::int64_t index);
  const WindowShape shape_;
  const bool counted_;
  const std::int64_t length_;
  const std::unique_ptr<Pass> source_;
  std::map<std::int64_t, Tensors> held_;  // by index in the source
};

/// The remedy() of stages that read arrays and files.
inline constexpr std::string_view rows_of_source =
    "every rank reads the same rows; the strategy gives each its own of every batch";

bool has_any_size(const Spec& spec);
bool have_any_size(const std::vector<Spec>& specs);
/// Sets any_size at the axes where the shapes differ. True if that changed `shape`.
bool widen_sizes(Shape& shape, const Shape& other);
/// Number of elements of known sizes that memory may be allocated for before their number is known: 64 MiB.
std::int64_t most_set_aside(const std::vector<Spec>& specs);

// One function per stage. Their arguments have been checked.
StagePointer map_stage(StagePointer source, const ElementFunction& trace, ElementFunction run, MapOptions options);
StagePointer shuffle_stage(StagePointer source, std::uint64_t seed, bool reshuffle);
StagePointer buffered_shuffle_stage(StagePointer source, std::int64_t buffer, std::uint64_t seed, bool reshuffle);
StagePointer batch_stage(StagePointer source, std::int64_t size, bool drop_remainder);
StagePointer turned_batch_stage(StagePointer source, BatchTurns sizes);
/// Windows, each joined to one element as by batch.
StagePointer joined_windows_stage(StagePointer source, WindowShape shape);
/// Windows whose element is the fields of all their elements, one after the other: to be read by interleave_stage.
StagePointer windows_stage(StagePointer source, WindowShape shape);
/// Elements of one key each, in the form of windows_stage, behind the key as an i64 scalar.
StagePointer groups_stage(StagePointer source, const ElementFunction& trace, ElementFunction run, GroupSize size);
/// These elements, of so many nested batches.
StagePointer held_stage(std::vector<Spec> specs, std::optional<int> batchings, std::vector<Tensors> elements);
StagePointer concatenate_stage(StagePointer first, StagePointer second);
StagePointer enumerate_stage(StagePointer source, std::int64_t start);
StagePointer unique_stage(StagePointer source);
/// `state`: settled tensors. `trace` and `run` take the state and then an element, and give them likewise.
StagePointer scan_stage(StagePointer source, Tensors state, const ElementFunction& trace, ElementFunction run);
StagePointer sample_stage(std::vector<StagePointer> parts, std::vector<double> weights, SampleOptions options,
                          std::uint64_t seed);
StagePointer choose_stage(std::vector<StagePointer> parts, StagePointer choices, bool stop_on_empty);
StagePointer resample_stage(StagePointer source, const ElementFunction& trace, ElementFunction run,
                            std::vector<double> target, std::vector<double> initial, std::uint64_t seed);
StagePointer ignore_errors_stage(StagePointer source, bool log_warning);
StagePointer cache_stage(StagePointer source);
StagePointer disk_cache_stage(StagePointer source, const std::filesystem::path& file);
StagePointer repeat_stage(StagePointer source, std::optional<std::int64_t> times);
/// Elements [begin, begin + count), as far as they exist.
StagePointer window_stage(StagePointer source, std::int64_t begin, std::int64_t count);
/// Every step-th element, from the first on.
StagePointer stride_stage(StagePointer source, std::int64_t step);
/// Elements index, index + count, index + 2 count ...
StagePointer shard_stage(StagePointer source, std::int64_t count, std::int64_t index);
/// Epoch p is epoch start.epoch + p of the source, or always start.epoch. Epoch 0 begins at start.index.
StagePointer start_stage(StagePointer source, Position start, bool same_epoch);
StagePointer filter_stage(StagePointer source, const ElementFunction& trace, ElementFunction run);
StagePointer take_while_stage(StagePointer source, const ElementFunction& trace, ElementFunction run);
StagePointer unbatch_stage(StagePointer source);
StagePointer zip_stage(std::vector<StagePointer> sources);
/// `name` opens errors; empty: that of interleave.
StagePointer interleave_stage(StagePointer source, PipelineFunction f, InterleaveOptions options,
                              std::string name = {});
StagePointer padded_batch_stage(StagePointer source, std::int64_t size, PaddedBatchOptions options);
StagePointer bucket_stage(StagePointer source, const ElementFunction& trace, ElementFunction run,
                          BucketOptions options);
StagePointer generator_stage(std::vector<Spec> specs, GeneratorFunction next);
StagePointer generator_stage(std::vector<Spec> specs, ElementSourceFunction begin);
/// The rows of one rank of each element, as parts of a batch (batch_readers.h).
StagePointer rank_rows_stage(StagePointer source, std::shared_ptr<const BatchReaders> readers);

}  // namespace gradus
