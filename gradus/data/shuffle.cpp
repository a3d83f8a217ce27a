/// Shuffles: the elements of the source through an order of indices.
#include <algorithm>
#include <mutex>
#include "gradus/data/order.h"
#include "gradus/data/stage.h"

namespace gradus {
namespace {

using Order = std::vector<std::uint32_t>;

class OrderedPass : public Pass {
 public:
  OrderedPass(std::unique_ptr<Pass> source, std::shared_ptr<const Order> order)
      : source_(std::move(source)), order_(std::move(order)) {}
  Tensors at(std::int64_t index) override { return source_->at(moved(index)); }
  void write(std::span<const std::int64_t> indices, std::span<std::byte* const> out) override {
    moved_.resize(indices.size());
    std::ranges::transform(indices, moved_.begin(), [this](std::int64_t index) { return moved(index); });
    source_->write(moved_, out);
  }

 private:
  std::int64_t moved(std::int64_t index) const { return (*order_)[static_cast<std::size_t>(index)]; }
  std::unique_ptr<Pass> source_;
  std::shared_ptr<const Order> order_;
  std::vector<std::int64_t> moved_;
};

/// Through a buffer over what has no end: the order is made as far as it is read, and again from its begin for what
/// lies behind.
class EndlessPass : public Pass {
 public:
  EndlessPass(std::unique_ptr<Pass> source, const BufferedOrder& order)
      : source_(std::move(source)), fresh_(order), order_(order) {}
  Tensors at(std::int64_t index) override { return source_->at(moved(index)); }
  void write(std::span<const std::int64_t> indices, std::span<std::byte* const> out) override {
    moved_.clear();
    for (const std::int64_t index : indices) moved_.push_back(moved(index));
    source_->write(moved_, out);
  }

 private:
  std::int64_t moved(std::int64_t index) {
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
  std::unique_ptr<Pass> source_;
  const BufferedOrder fresh_;
  BufferedOrder order_;
  std::int64_t asked_ = 0, last_ = 0;
  std::vector<std::int64_t> moved_;
};

class ShuffleStage : public DerivedStage {
 public:
  /// Without a buffer every order is as likely.
  ShuffleStage(StagePointer source, std::optional<std::int64_t> buffer, std::uint64_t seed, bool reshuffle)
      : DerivedStage(source), buffer_(buffer), seed_(seed), reshuffle_(reshuffle) {}

  std::unique_ptr<Pass> open(std::int64_t epoch) const override {
    const Counter random(seed_, static_cast<std::uint64_t>(reshuffle_ ? epoch : 0));
    const std::int64_t length = source().length(epoch);
    if (source().is_endless())
      return std::make_unique<EndlessPass>(source().open(epoch), BufferedOrder(length, *buffer_, random));
    require<OutOfRange>(length <= largest_order, "shuffle: at most ", largest_order, " elements, got ", length);
    return std::make_unique<OrderedPass>(source().open(epoch), order_of(epoch, length, random));
  }

 private:
  /// The newest order is kept: whoever skips about in an epoch opens many passes of it.
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
