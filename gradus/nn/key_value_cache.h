/// Sequences that a model generates place by place: the keys and values of its attention layers are kept, so that each
/// further place costs one row of work.
#pragma once
#include <cstdint>
#include <memory>
#include "gradus/base/ranges.h"
#include "gradus/nn/module.h"

namespace gradus {

namespace detail::inline rooms {
class Layer;
}  // namespace detail::inline rooms

/// Options of KeyValueCache.
struct KeyValueCacheOptions {
  std::int64_t batch = 1;             // sequences
  std::int64_t max_length = 512;      // largest number of places of each
  std::int64_t initial_length = 512;  // places of each with memory at first; at most max_length
  double growth = 2;                  // factor of that number when it is too small, up to max_length
  static constexpr auto ranges() {
    return std::array{Allowed::positive("batch max_length initial_length"), Allowed::more_than(1, "growth")};
  }
};

/// Options of call_with_cache.
struct CacheCallOptions {
  Tensor counts = {};  // i32 [batch]: new places of each sequence, which are the first ones of x; empty: all
};

/// The memory of a layer after a call: all places, also those that are not used yet.
struct CachedPlaces {
  Tensor keys, values;  // [batch, heads, capacity, width]
  Tensor mask;          // bool [batch, 1, time, capacity]: the places that a new place sees
};

/// The keys and values of the places that the attention layers of a model have seen, and how many places each sequence
/// has. The memory, batch * capacity * (width of keys + width of values) a layer, is made at the first call and written
/// in place. Where a call needs more places than the capacity, it grows by the factor .growth, up to max_length. A
/// `function` then traces the call again, so the number of traces grows with the logarithm of the length. While the
/// capacity is below max_length, each call of the function first waits for the lengths. A cache belongs to one model,
/// and one thread at a time uses it.
class KeyValueCache {
 public:
  explicit KeyValueCache(KeyValueCacheOptions options = {});
  ~KeyValueCache();
  KeyValueCache(const KeyValueCache&) = delete;

  /// Places of each sequence so far: i32 [batch].
  Tensor lengths() const;
  /// Begins new sequences: no sequence has a place. The capacity stays.
  void reset();
  /// The number of places of each sequence that fit into the present memory.
  std::int64_t capacity() const;
  /// Grows now if the capacity is less than `length` places, so that no call has to; the contents stay. OutOfRange past
  /// max_length.
  void reserve(std::int64_t length);
  /// The options that it was made with.
  const KeyValueCacheOptions& options() const { return options_; }

  // For the layers that call_with_cache() runs.
  /// Adds the places of this call: [batch, heads, time, width]. `mask`: bool [batch, time], those that count; or empty.
  CachedPlaces extended(const detail::Layer& layer, const Tensor& keys, const Tensor& values, const Tensor& mask);
  /// The numbers of the places of this call, counted from 0: i32 [batch, time].
  const Tensor& positions() const;

 private:
  friend Tensor call_with_cache(const Module& model, const Tensor& x, KeyValueCache& cache, CacheCallOptions options);
  struct Call;
  struct Rows;
  void make_room(const Tensor& lengths, std::int64_t time);
  void grow_to(std::int64_t capacity);
  Rows& rows_of(const detail::Layer& layer, const Tensor& keys, const Tensor& values, bool masked);

  const KeyValueCacheOptions options_;
  struct State;
  std::unique_ptr<State> state_;
};
/// The result of `model` for x: [batch, time, ...], whose places follow those in the cache, and are added to it. The
/// results are those of the model for the whole sequences. That holds for models in which only causal self-attention
/// (MultiHeadAttention, GroupedQueryAttention) and PositionEmbedding depend on other places or on the position; the
/// mode is inference. Works within `function`, where it is one program.
///
/// InvalidArgument if x has another batch than the cache, for attention that is not causal or has several inputs, and
/// for recurrent layers, pools and others that combine several places; OutOfRange past max_length, when the result is
/// observed. Do not call a model this way that combines places by ops.
Tensor call_with_cache(const Module& model, const Tensor& x, KeyValueCache& cache, CacheCallOptions options);
inline Tensor call_with_cache(const Module& model, const Tensor& x, KeyValueCache& cache) {
  return call_with_cache(model, x, cache, {});
}

}  // namespace gradus
