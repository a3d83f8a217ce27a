/// Arguments are checked here, stages chained, and passes read.
#include "gradus/data/pipeline.h"
#include "gradus/data/order.h"
#include "gradus/data/prefetch.h"
#include "gradus/data/stage.h"
#include "gradus/ops/random_key.h"

namespace gradus {
namespace {

constexpr std::int64_t largest_epoch = std::int64_t{1} << 53;

class PassReading : public Reading {
 public:
  PassReading(StagePointer stage, Position start, int buffers)
      : stage_(std::move(stage)),
        epoch_(start.epoch),
        index_(start.index),
        length_(stage_->length(start.epoch)),
        buffers_(buffers) {}

  bool at_end() const override { return index_ >= length_; }
  const Tensors& element() override {
    require_more();
    if (element_.empty()) element_ = fetch();
    return element_;
  }
  void advance() override {
    require_more();
    if (prefetcher_ && element_.empty()) fetch();
    element_.clear();
    ++index_;
    if (at_end()) prefetcher_.reset();
  }
  Position position() const override { return {epoch_, index_}; }

 private:
  void require_more() const {
    require<OutOfRange>(!at_end(), "the pass over this dataset has ended after ", index_,
                        " elements; compare the iterator with end(), or call begin() for the next pass");
  }
  Tensors fetch() {
    try {
      if (buffers_ == 0) {
        if (!pass_) pass_ = stage_->open(epoch_);
        return pass_->at(index_);
      }
      if (!prefetcher_) prefetcher_ = std::make_unique<Prefetcher>(stage_, epoch_, index_, length_, buffers_);
      return prefetcher_->next();
    } catch (...) {
      length_ = index_;
      prefetcher_.reset();
      throw;
    }
  }

  const StagePointer stage_;
  const std::int64_t epoch_;
  std::int64_t index_, length_;
  const int buffers_;
  Tensors element_;  // empty: not read yet
  std::unique_ptr<Pass> pass_;
  std::unique_ptr<Prefetcher> prefetcher_;
};

}  // namespace

Pipeline& Pipeline::operator=(const Pipeline& other) {
  stage_ = other.stage_;
  start_ = other.start_;
  buffers_ = other.buffers_;
  passes_ = 0;
  return *this;
}

/// A stage whose epoch 0 is the first pass of this value.
StagePointer Pipeline::with_start() const {
  if (start_.position == Position{} && !start_.same_epoch) return stage_;
  return start_stage(stage_, start_.position, start_.same_epoch);
}

/// Reading ahead is a matter of the whole chain.
Pipeline Pipeline::derived(StagePointer stage) const {
  Pipeline result(std::move(stage));
  result.buffers_ = buffers_;
  return result;
}

Pipeline Pipeline::map(const ElementFunction& trace, ElementFunction run, MapOptions options) const {
  require(options.num_parallel_calls == autotune || options.num_parallel_calls > 0,
          "map: num_parallel_calls must be positive or autotune, got ", options.num_parallel_calls);
  return derived(map_stage(with_start(), trace, std::move(run), options));
}

Pipeline Pipeline::shuffle(ShuffleOptions options) const {
  require(!stage_->is_endless(),
          "shuffle: this dataset has no end, so all of it cannot be permuted; shuffle before "
          "repeat(), or give a buffer size");
  return derived(
      shuffle_stage(with_start(), options.seed ? *options.seed : next_seed(), options.reshuffle_each_iteration));
}

Pipeline Pipeline::shuffle(std::int64_t buffer_size, ShuffleOptions options) const {
  require(buffer_size > 0 && buffer_size <= largest_order, "shuffle: expected a buffer of 1 to ", largest_order,
          " elements, got ", buffer_size);
  return derived(buffered_shuffle_stage(with_start(), buffer_size, options.seed ? *options.seed : next_seed(),
                                        options.reshuffle_each_iteration));
}

Pipeline Pipeline::batch(std::int64_t size, BatchOptions options) const {
  require(size > 0, "batch: size must be positive, got ", size);
  return derived(batch_stage(with_start(), size, options.drop_remainder));
}

Pipeline Pipeline::cache() const {
  require(!stage_->is_endless(), "cache: this dataset has no end; cache before repeat()");
  return derived(cache_stage(with_start()));
}

Pipeline Pipeline::repeat(std::int64_t times) const {
  require(times >= -1, "repeat: expected a number of rounds, or -1 for without end, got ", times);
  if (stage_->is_endless()) return times == 0 ? take(0) : derived(with_start());
  const std::int64_t length = stage_->length(1);
  require(times <= 0 || length <= endless_length / times, "repeat: ", times, " rounds of ", length,
          " elements are more than 2^63 - 1");
  return derived(repeat_stage(with_start(), times < 0 ? std::nullopt : std::optional(times)));
}

Pipeline Pipeline::take(std::int64_t n) const {
  require(n >= 0, "take: expected a number of elements, got ", n);
  return derived(window_stage(with_start(), 0, n));
}

Pipeline Pipeline::skip(std::int64_t n) const {
  require(n >= 0, "skip: expected a number of elements, got ", n);
  return derived(window_stage(with_start(), n, endless_length));
}

Pipeline Pipeline::epoch(std::int64_t e) const {
  require(e >= 0 && e <= largest_epoch, "epoch: expected a number from 0 to ", largest_epoch, ", got ", e);
  Pipeline result(*this);
  result.start_ = {{e, 0}, true};
  return result;
}

Pipeline Pipeline::from(Position position) const {
  require(position.epoch >= 0 && position.epoch <= largest_epoch && position.index >= 0,
          "from: expected an epoch from 0 to ", largest_epoch, " and an index from 0, got epoch ", position.epoch,
          ", index ", position.index);
  const std::int64_t length = stage_->length(position.epoch);
  require<OutOfRange>(position.index <= length, "from: index ", position.index, " is past the ", length,
                      " elements of epoch ", position.epoch);
  Pipeline result(*this);
  result.start_ = {position, false};
  return result;
}

Pipeline Pipeline::prefetch(int buffers) const {
  require(buffers == autotune || buffers > 0, "prefetch: buffers must be positive or autotune, got ", buffers);
  Pipeline result(*this);
  result.buffers_ = buffers;
  return result;
}

std::optional<std::int64_t> Pipeline::cardinality() const {
  if (stage_->is_endless()) return {};
  return stage_->length(start_.position.epoch + 1);
}

const std::vector<Spec>& Pipeline::specs() const { return stage_->specs(); }

std::unique_ptr<Reading> Pipeline::read(std::int64_t pass, int buffers) const {
  Position start = start_.position;
  if (pass > 0) start = {start.epoch + (start_.same_epoch ? 0 : pass), 0};
  return std::make_unique<PassReading>(stage_, start, buffers);
}

std::unique_ptr<Reading> Pipeline::begin() const { return read(passes_++, buffers_); }

Tensors Pipeline::first() const {
  const auto reading = read(0, 0);
  require<OutOfRange>(!reading->at_end(), "first: this dataset has no elements");
  return reading->element();
}

}  // namespace gradus
