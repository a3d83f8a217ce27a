#include "gradus/data/order.h"
#include <algorithm>
#include <numeric>

namespace gradus {

std::vector<std::uint32_t> permutation(std::int64_t n, const Counter& random) {
  std::vector<std::uint32_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0u);
  for (std::uint64_t left = order.size(); left > 1; --left) std::swap(order[left - 1], order[random.below(left, left)]);
  return order;
}

BufferedOrder::BufferedOrder(std::int64_t length, std::int64_t capacity, const Counter& random)
    : length_(length), capacity_(std::min(length, capacity)), random_(random) {}

std::int64_t BufferedOrder::next() {
  for (; entered_ < capacity_; ++entered_) buffer_.push_back(entered_);
  const auto drawn = random_.below(buffer_.size(), static_cast<std::uint64_t>(left_++));
  const std::int64_t index = buffer_[drawn];
  if (entered_ < length_) {
    buffer_[drawn] = entered_++;
  } else {
    buffer_[drawn] = buffer_.back();
    buffer_.pop_back();
  }
  return index;
}

}  // namespace gradus
