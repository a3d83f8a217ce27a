#include "gradus/data/rows.h"
#include <algorithm>
#include "gradus/base/hash.h"
#include "gradus/base/rooms.h"
#include "gradus/data/on_processor.h"

namespace gradus {
namespace {

/// Rows of one machine word: labels.
template <class Word> void gather_words(const std::byte* rows, std::span<const std::int64_t> indices, std::byte* out) {
  for (std::size_t i = 0; i < indices.size(); ++i)
    std::memcpy(out + i * sizeof(Word), rows + indices[i] * static_cast<std::int64_t>(sizeof(Word)), sizeof(Word));
}

constexpr std::int64_t line_bytes = 64;
/// Rows, and bytes of each, that are prefetched before they are copied: the processor itself notices longer runs. 1.29x
/// on shuffled rows of 784 bytes, 1.14x of 3072, 1.01x of 150,528.
constexpr std::size_t rows_ahead = 2;
constexpr std::int64_t bytes_ahead = 512;

void ask_for(const std::byte* row, std::int64_t bytes) {
  for (std::int64_t at = 0; at < std::min(bytes, bytes_ahead); at += line_bytes) __builtin_prefetch(row + at);
}

}  // namespace

Rows::Rows(Tensor array)
    : array_(on_processor(array)),
      spec_{array.dtype(), array.shape()},
      begin_(array_.host_buffer()->data<std::byte>()),
      bytes_(0) {
  spec_.shape.erase(0);
  bytes_ = bytes_of(spec_);
}

std::uint64_t Rows::hash(std::uint64_t seed) const {
  return hash_of_bytes({begin_, static_cast<std::size_t>(count() * bytes_)}, seed);
}

std::uint64_t Rows::hash_of_ends(std::uint64_t seed) const {
  if (count() == 0) return seed;
  const auto bytes = static_cast<std::size_t>(bytes_);
  return hash_of_bytes({row(count() - 1), bytes}, hash_of_bytes({begin_, bytes}, seed));
}

Tensor Rows::at(std::int64_t index) const {
  Ref<Buffer> copy = Buffer::allocate(bytes_, "element of a dataset");
  gather({&index, 1}, copy->data<std::byte>());
  return Tensor::of_buffer(spec_, std::move(copy));
}

void Rows::gather(std::span<const std::int64_t> indices, std::byte* out) const {
  if (bytes_ == 1) return gather_words<std::uint8_t>(begin_, indices, out);
  if (bytes_ == 4) return gather_words<std::uint32_t>(begin_, indices, out);
  if (bytes_ == 8) return gather_words<std::uint64_t>(begin_, indices, out);
  if (bytes_ == 0) return;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (i + rows_ahead < indices.size()) ask_for(row(indices[i + rows_ahead]), bytes_);
    std::memcpy(out + static_cast<std::int64_t>(i) * bytes_, row(indices[i]), static_cast<std::size_t>(bytes_));
  }
}

}  // namespace gradus
