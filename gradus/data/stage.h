/// Stages: a stage describes what is read, a Pass reads it in the order of one epoch. Every element can be reached by
/// its index; stages that only move elements about translate indices, so that a batch is copied once, from the rows of
/// the source into its place.
#pragma once
#include <limits>
#include <span>
#include "gradus/data/pipeline.h"

namespace gradus {

/// The length of what has no end: no index reaches it.
inline constexpr std::int64_t endless_length = std::numeric_limits<std::int64_t>::max();

/// Used by one thread at a time. Indices are within the stage's length in that epoch. The stage outlives its passes.
class Pass {
 public:
  virtual ~Pass() = default;
  /// The element: tensors that have their values.
  virtual Tensors at(std::int64_t index) = 0;
  /// Copies the elements at `indices`, one behind the other, to out[field]. Only where no spec has any_size.
  virtual void write(std::span<const std::int64_t> indices, std::span<std::byte* const> out);
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
  /// How many elements may be made at once: a number that the user gave, or autotune.
  virtual int parallel_calls() const { return autotune; }
  /// Several passes may be read at once.
  virtual std::unique_ptr<Pass> open(std::int64_t epoch) const = 0;

 private:
  const std::vector<Spec> specs_;
};
using StagePointer = std::shared_ptr<const Stage>;

/// A stage that reads another one, and is like it where it does not say otherwise.
class DerivedStage : public Stage {
 public:
  DerivedStage(StagePointer source, std::vector<Spec> specs) : Stage(std::move(specs)), source_(std::move(source)) {}
  explicit DerivedStage(const StagePointer& source) : DerivedStage(source, source->specs()) {}
  std::int64_t length(std::int64_t epoch) const override { return source_->length(epoch); }
  bool is_endless() const override { return source_->is_endless(); }
  int parallel_calls() const override { return source_->parallel_calls(); }

 protected:
  const Stage& source() const { return *source_; }

 private:
  const StagePointer source_;
};

bool has_any_size(const Spec& spec);
bool have_any_size(const std::vector<Spec>& specs);

// One by one. Their arguments have been checked.
StagePointer map_stage(StagePointer source, const ElementFunction& trace, ElementFunction run, MapOptions options);
StagePointer shuffle_stage(StagePointer source, std::uint64_t seed, bool reshuffle);
StagePointer buffered_shuffle_stage(StagePointer source, std::int64_t buffer, std::uint64_t seed, bool reshuffle);
StagePointer batch_stage(StagePointer source, std::int64_t size, bool drop_remainder);
StagePointer cache_stage(StagePointer source);
StagePointer repeat_stage(StagePointer source, std::optional<std::int64_t> times);
/// Elements [begin, begin + count), as far as there are such.
StagePointer window_stage(StagePointer source, std::int64_t begin, std::int64_t count);
/// Its epoch p is epoch start.epoch + p, or always start.epoch; its epoch 0 begins at start.index.
StagePointer start_stage(StagePointer source, Position start, bool same_epoch);

}  // namespace gradus
