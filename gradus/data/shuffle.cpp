/// Shuffles: the elements of the source in an order of indices.
#include <algorithm>
#include <mutex>
#include "gradus/base/error.h"
#include "gradus/base/hash.h"
#include "gradus/base/rooms.h"
#include "gradus/data/order.h"
#include "gradus/data/stage.h"

namespace gradus {
namespace {

using Order = std::vector<std::uint32_t>;

class OrderedPass : public MovedPass {
 public:
  OrderedPass(std::unique_ptr<Pass> source, std::shared_ptr<const Order> order)
      : MovedPass(std::move(source)), order_(std::move(order)) {}

 private:
  std::int64_t moved(std::int64_t index) override { return (*order_)[static_cast<std::size_t>(index)]; }
  const std::shared_ptr<const Order> order_;
};

/// Through a buffer over what has no end: the order is made as far as it is read, and again from its begin for what
/// lies behind.
class EndlessPass : public MovedPass {
 public:
  EndlessPass(std::unique_ptr<Pass> source, const BufferedOrder& order)
      : MovedPass(std::move(source)), fresh_(order), order_(order) {}

 private:
  /// A second question about the same indices does not begin again.
  std::span<const std::int64_t> all_moved(std::span<const std::int64_t> indices) override {
    if (std::ranges::equal(indices, of_moved_)) return moved_;
    moved_.clear();
    of_moved_.clear();
    for (const std::int64_t index : indices) moved_.push_back(moved(index));
    of_moved_.assign(indices.begin(), indices.end());
    return moved_;
  }
  std::int64_t moved(std::int64_t index) override {
    if (index == asked_ - 1) return last_;
    if (index < asked_) {
      order_ = fresh_;
      asked_ = 0;
    }
    while (asked_ <= index) {
      last_ = order_.next();
      ++asked_;
    }
    return last_;
  }
  const BufferedOrder fresh_;
  BufferedOrder order_;
  std::int64_t asked_ = 0, last_ = 0;
  std::vector<std::int64_t> moved_, of_moved_;
};

/// The same order where elements can only be read as they come: the buffer holds them.
class BufferPass : public ForwardPass {
 public:
  BufferPass(const Stage& source, std::int64_t epoch, std::int64_t capacity, const Counter& random)
      : source_(source), epoch_(epoch), capacity_(static_cast<std::size_t>(capacity)), random_(random) {}

 private:
  void restart() override {
    pass_ = source_.open(epoch_);
    length_ = source_.length(epoch_);
    entered_ = left_ = 0;
    buffer_.clear();
    while (buffer_.size() < capacity_) {
      Tensors element = incoming();
      if (element.empty()) break;
      buffer_.push_back(std::move(element));
    }
  }
  Tensors next() override {
    if (buffer_.empty()) return {};
    Tensors& place = buffer_[random_.below(buffer_.size(), static_cast<std::uint64_t>(left_++))];
    Tensors drawn = std::move(place), element = incoming();
    if (!element.empty()) {
      place = std::move(element);
    } else {
      if (&place != &buffer_.back()) place = std::move(buffer_.back());
      buffer_.pop_back();
    }
    return drawn;
  }
  Tensors incoming() { return entered_ < length_ ? pass_->at(entered_++) : Tensors(); }

  const Stage& source_;
  const std::int64_t epoch_;
  const std::size_t capacity_;
  const Counter random_;
  std::unique_ptr<Pass> pass_;
  std::int64_t length_ = 0, entered_ = 0, left_ = 0;
  std::vector<Tensors> buffer_;
};

class ShuffleStage : public DerivedStage {
 public:
  /// Without a buffer every order is as likely.
  ShuffleStage(StagePointer source, std::optional<std::int64_t> buffer, std::uint64_t seed, bool reshuffle)
      : DerivedStage(source), buffer_(buffer), seed_(seed), reshuffle_(reshuffle) {}

  std::string name() const override { return buffer_ ? text("shuffle(", *buffer_, ")") : "shuffle"; }
  std::uint64_t identity() const override { return mix(seed_, reshuffle_); }
  std::string_view remedy() const override { return "give all ranks one seed, by set_seed or {.seed = 1}"; }
  bool repeats_itself() const override { return !reshuffle_ && source().repeats_itself(); }
  StagePointer over(const std::vector<StagePointer>& sources, const PipelineChanges&) const override {
    return std::make_shared<ShuffleStage>(sources[0], buffer_, seed_, reshuffle_);
  }
  std::unique_ptr<Pass> make_pass(std::int64_t epoch) const override {
    const Counter random(seed_, static_cast<std::uint64_t>(reshuffle_ ? epoch : 0));
    if (!is_counted()) return std::make_unique<BufferPass>(source(), epoch, *buffer_, random);
    const std::int64_t length = source().length(epoch);
    if (source().is_endless())
      return std::make_unique<EndlessPass>(source().open(epoch), BufferedOrder(length, *buffer_, random));
    require<OutOfRange>(length <= largest_order, "shuffle: at most ", largest_order, " elements, got ", length);
    return std::make_unique<OrderedPass>(source().open(epoch), order_of(epoch, length, random));
  }

 private:
  /// The newest order is kept: a reader that skips about in an epoch opens many passes of it.
  std::shared_ptr<const Order> order_of(std::int64_t epoch, std::int64_t length, const Counter& random) const {
    std::lock_guard lock(guard_);
    if (!newest_ || newest_epoch_ != epoch) {
      newest_ = std::make_shared<const Order>(make_order(length, random));
      newest_epoch_ = epoch;
    }
    return newest_;
  }
  Order make_order(std::int64_t length, const Counter& random) const {
    if (!buffer_) return permutation(length, random);
    BufferedOrder order(length, *buffer_, random);
    Order made(static_cast<std::size_t>(length));
    for (std::uint32_t& index : made) index = static_cast<std::uint32_t>(order.next());
    return made;
  }

  const std::optional<std::int64_t> buffer_;
  const std::uint64_t seed_;
  const bool reshuffle_;
  mutable std::mutex guard_;
  mutable std::shared_ptr<const Order> newest_;
  mutable std::int64_t newest_epoch_ = 0;
};

}  // namespace

StagePointer shuffle_stage(StagePointer source, std::uint64_t seed, bool reshuffle) {
  return std::make_shared<ShuffleStage>(std::move(source), std::nullopt, seed, reshuffle);
}
StagePointer buffered_shuffle_stage(StagePointer source, std::int64_t buffer, std::uint64_t seed, bool reshuffle) {
  return std::make_shared<ShuffleStage>(std::move(source), buffer, seed, reshuffle);
}

}  // namespace gradus
