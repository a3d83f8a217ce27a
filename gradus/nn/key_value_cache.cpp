/// Caches of keys and values: rows of Variables, which the program that reads them writes in place.
#include "gradus/nn/key_value_cache.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include "gradus/base/floating_point_state.h"
#include "gradus/function/begin_again.h"
#include "gradus/function/trace.h"
#include "gradus/function/watched_state.h"
#include "gradus/graph/context.h"
#include "gradus/graph/scope.h"
#include "gradus/nn/layer.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/gather_ops.h"
#include "gradus/ops/scatter_ops.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"

namespace gradus {
namespace {

constexpr std::string_view cached_call = "call_with_cache";

const KeyValueCacheOptions& checked(const KeyValueCacheOptions& options) {
  check_options("KeyValueCache", options);
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  require<OutOfRange>(options.max_length <= most, "KeyValueCache: max_length ", options.max_length,
                      ": lengths are i32, at most ", most);
  return options;
}

Variable kept(const Tensor& first) { return Variable(first, "key_value_cache", {.trainable = false}); }

/// x: [batch, heads, length, ...] and `more` places of `value` behind its own.
Variable longer(const Variable& x, std::int64_t more, int value) {
  std::vector<std::int64_t> sizes(x.shape().begin(), x.shape().end());
  sizes[2] = more;
  return kept(concat({x.value(), full(Shape(sizes), value, x.dtype())}, 2));
}

/// x: [batch, heads, length, ...] with the rows [batch, heads, time, ...] at the numbers `places` of all its rows.
void write_rows(Variable& x, const Tensor& places, const Tensor& rows) {
  const Shape& shape = x.shape();
  const std::int64_t width = shape.rank() == 4 ? shape[3] : 1, all = shape[0] * shape[1] * shape[2];
  const Tensor flat = reshape(x.value(), {all, width}), added = reshape(rows, {places.shape()[0], width});
  x.assign(reshape(update_rows(flat, places, added), shape));
}

/// `places`, all below the length of the cache.
Tensor within(const Tensor& places, std::int64_t length) {
  const NameScope full("a KeyValueCache that is full: make it with a larger max_length, or begin again by reset()");
  return check_range(places, length, false);
}

/// `counts`, all from 0 to `time`.
Tensor counts_within(const Tensor& counts, std::int64_t time) {
  const NameScope counted("call_with_cache: counts, of the places of this call that each sequence has");
  return check_range(counts, dimension::add(time, 1), false);
}

}  // namespace

/// The places of one layer, or of one of its calls where a call of the model has several.
struct KeyValueCache::Rows {
  Variable keys, values;
  std::optional<Variable> visible;  // bool [batch, 1, capacity]: places that masks leave
};

/// A call of the model that extends the cache.
struct KeyValueCache::Call {
  Tensor positions;                             // i32 [batch, time]
  std::map<std::uint64_t, std::size_t> made{};  // calls of layers so far, by the layers' numbers
};

struct KeyValueCache::State {
  Variable lengths;
  std::int64_t capacity;
  Setup setup{};  // changes with the capacity, so that programs that used another one do not hold
  std::map<std::pair<std::uint64_t, std::size_t>, Rows> rows{};  // by a layer's number, and its calls before
  std::optional<Call> call{};                                    // that is being made
};

KeyValueCache::KeyValueCache(KeyValueCacheOptions options) : options_(checked(options)) {
  const Untraced outside;
  state_ = std::make_unique<State>(
      State{kept(zeros({options.batch}, i32)), std::min(options.initial_length, options.max_length)});
}
KeyValueCache::~KeyValueCache() = default;

Tensor KeyValueCache::lengths() const { return state_->lengths; }
void KeyValueCache::reset() { state_->lengths.assign(zeros({options_.batch}, i32)); }
std::int64_t KeyValueCache::capacity() const { return state_->capacity; }

void KeyValueCache::reserve(std::int64_t length) {
  require<OutOfRange>(length <= options_.max_length, "KeyValueCache: no room for ", length, " places: max_length is ",
                      options_.max_length, "; make it with a larger one");
  require(!Context::current(), "KeyValueCache: reserve() is called while a function is traced; call it before");
  if (length > state_->capacity) grow_to(length);
}

/// To `capacity`, or more by the factor. What fails leaves everything as it was.
void KeyValueCache::grow_to(std::int64_t capacity) {
  const Untraced outside;
  const auto grown = static_cast<std::int64_t>(std::min(std::ceil(options_.growth * double(state_->capacity)), 1e18));
  const std::int64_t next = std::min(std::max(capacity, grown), options_.max_length), more = next - state_->capacity;
  std::map<std::pair<std::uint64_t, std::size_t>, Rows> rows;
  for (const auto& [key, old] : state_->rows) {
    Rows& made = rows.emplace(key, Rows{longer(old.keys, more, 0), longer(old.values, more, 0), {}}).first->second;
    if (old.visible) made.visible.emplace(longer(*old.visible, more, 1));
  }
  state_->rows.swap(rows);
  state_->capacity = next;
  state_->setup.change("has grown");
}

/// For `time` places behind those of `lengths`. A size that a trace leaves open is not known here.
void KeyValueCache::make_room(const Tensor& lengths, std::int64_t time) {
  State& state = *state_;
  const auto is_full = [&] {
    return time > state.capacity || static_cast<bool>(reduce_max(lengths) + extent(time, i32) > state.capacity);
  };
  while (state.capacity < options_.max_length && is_full()) {
    grow_to(std::min(time, options_.max_length));
    if (Context::current())
      BeginAgain::from_trace(
          "KeyValueCache: it has to grow while it is traced by what cannot begin again: call reserve() before, or make "
          "it with .initial_length = max_length");
  }
  if (Trace* trace = Trace::current())
    trace->watch(WatchedSetup{state.setup.record(), state.setup.number(), "the cache of keys and values"});
}

const Tensor& KeyValueCache::positions() const { return state_->call->positions; }

KeyValueCache::Rows& KeyValueCache::rows_of(const Layer& layer, const Tensor& keys, const Tensor& values, bool masked) {
  const std::pair key{layer.id(), state_->call->made[layer.id()]++};
  auto found = state_->rows.find(key);
  const auto variable_like = [&](const Tensor& x) {
    return kept(zeros({options_.batch, x.shape()[1], state_->capacity, x.shape()[3]}, x.dtype()));
  };
  if (found == state_->rows.end()) {
    const Untraced outside;
    found = state_->rows.emplace(key, Rows{variable_like(keys), variable_like(values), {}}).first;
  }
  Rows& rows = found->second;
  const auto fits = [](const Variable& x, const Tensor& added) {
    return x.dtype() == added.dtype() && x.shape()[1] == added.shape()[1] && x.shape()[3] == added.shape()[3];
  };
  require(fits(rows.keys, keys) && fits(rows.values, values), cached_call, ": ", layer.called(), " has keys ",
          keys.spec(), " and values ", values.spec(), " now, the cache has ", rows.keys.value().spec(), " and ",
          rows.values.value().spec(), " of it; make a new cache");
  if (masked && !rows.visible) {
    const Untraced outside;
    rows.visible.emplace(kept(ones({options_.batch, 1, state_->capacity}, boolean)));
  }
  return rows;
}

CachedPlaces KeyValueCache::extended(const Layer& layer, const Tensor& keys, const Tensor& values, const Tensor& mask) {
  Rows& rows = rows_of(layer, keys, values, mask.defined());
  const Tensor& positions = state_->call->positions;
  const std::int64_t batch = options_.batch, length = state_->capacity, time = positions.shape()[1];
  const auto numbers = [&](std::int64_t of_heads) {  // of rows, of all that a sequence and a head has
    const Tensor first = reshape(range(batch * of_heads, i64) * length, {batch, of_heads, 1});
    return reshape(first + expand_dims(cast(positions, i64), 1), {dimension::multiply(batch * of_heads, time)});
  };
  write_rows(rows.keys, numbers(keys.shape()[1]), keys);
  write_rows(rows.values, numbers(values.shape()[1]), values);
  Tensor seen = expand_dims(positions, -1) >= reshape(range(length, i32), {1, 1, length});  // [batch, time, all]
  if (rows.visible) {
    const Tensor counts = mask.defined() ? mask : ones({batch, time}, boolean);
    write_rows(*rows.visible, numbers(1), counts);
    seen = logical_and(seen, rows.visible->value());
  }
  return {rows.keys, rows.values, expand_dims(seen, 1)};
}

Tensor call_with_cache(const Module& model, const Tensor& x, KeyValueCache& cache, CacheCallOptions options) {
  const HostFloats floats;
  const std::int64_t batch = cache.options().batch;
  require(x.shape().rank() >= 2 && x.shape()[0] == batch && x.shape()[1] != 0, cached_call, ": x is ", x.spec(),
          ", expected [", batch, ", time, ...] with the batch of the cache and at least one place");
  const Tensor& counts = options.counts;
  require(!counts.defined() || (counts.dtype() == i32 && counts.shape() == Shape{batch}), cached_call, ": counts are ",
          counts.defined() ? text(counts.spec()) : "", ", expected ", Spec{i32, {batch}});
  require(!cache.state_->call, cached_call, ": the model calls itself with the same cache");

  const std::int64_t time = x.shape()[1];
  const Tensor lengths = cache.lengths();
  cache.make_room(lengths, time);
  const Tensor places = expand_dims(lengths, 1) + expand_dims(iota({time}, i32), 0);
  struct Ended {
    std::optional<KeyValueCache::Call>& call;
    ~Ended() { call.reset(); }
  } const ended{cache.state_->call};
  cache.state_->call.emplace(KeyValueCache::Call{within(places, cache.capacity())});
  const FieldScope<&CallContext::cache> extends(&cache);
  const Tensor y = model(x, inference);
  cache.state_->lengths.assign(lengths + (counts.defined() ? counts_within(counts, time) : extent(time, i32)));
  return y;
}

}  // namespace gradus
