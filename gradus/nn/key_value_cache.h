/// Sequences that a model makes place by place: what its attention layers have seen is kept, so that each further place
/// costs one row of work.
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
  std::int64_t max_length = 512;      // places that each of them may have
  std::int64_t initial_length = 512;  // places that there is memory for at first; at most max_length
  double growth = 2;                  // factor by which that grows when it is too small, until it is max_length
  static constexpr auto ranges() {
    return std::array{Allowed::positive("batch max_length initial_length"), Allowed::more_than(1, "growth")};
  }
};

/// Options of call_with_cache.
struct CacheCallOptions {
  Tensor counts = {};  // i32 [batch]: how many of the new places each sequence has, the first ones; all by default
};

/// All places of a layer that there is memory for, after those of a call.
struct CachedPlaces {
  Tensor keys, values;  // [batch, heads, capacity, width]
  Tensor mask;          // bool [batch, 1, time, capacity]: those that a new place sees
};

/// The keys and values of the places that the attention layers of a model have seen, and how many places each sequence
/// has. The memory, batch * capacity * (width of keys + width of values) a layer, is made at the first call and written
/// in place. Where a call needs more places than the capacity, it grows by the factor .growth, up to max_length: a
/// `function` then traces the call again, so that it does so as often as the logarithm of the length says; while the
/// capacity is below max_length, each call of the function begins with a look at the lengths. It belongs to one model,
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
  /// Places of each sequence that there is memory for.
  std::int64_t capacity() const;
  /// Grows now, where the capacity is less than `length` places, so that no call has to; what the cache holds stays.
  /// OutOfRange past max_length.
  void reserve(std::int64_t length);
  /// The options that it was made with.
  const KeyValueCacheOptions& options() const { return options_; }

  // For the layers that call_with_cache() runs.
  /// Adds the places of this call: [batch, heads, time, width]. `mask`: bool [batch, time], those that count; or empty.
  CachedPlaces extended(const detail::Layer& layer, const Tensor& keys, const Tensor& values, const Tensor& mask);
  /// The numbers of the places of this call, from 0 on: i32 [batch, time].
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
/// The result of `model` for x: [batch, time, ...], whose places follow those that the cache holds; the cache has them
/// afterwards. The results are those that the model has for the whole sequences, for models that treat each place by
/// itself but for causal self-attention (MultiHeadAttention, GroupedQueryAttention) and PositionEmbedding; the mode is
/// inference. Works within `function`, where it is one program.
///
/// InvalidArgument if x has another batch than the cache, for attention that is not causal or has several inputs, and
/// for recurrent layers, pools and others that look at several places; OutOfRange past max_length, when the result is
/// observed. A model of one's own that mixes places by ops must not be called so.
Tensor call_with_cache(const Module& model, const Tensor& x, KeyValueCache& cache, CacheCallOptions options);
inline Tensor call_with_cache(const Module& model, const Tensor& x, KeyValueCache& cache) {
  return call_with_cache(model, x, cache, {});
}

}  // namespace gradus
