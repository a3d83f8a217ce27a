/// Attention in blocks of queries. The scores of a block stand in the worker's scratch, a row for each key, so that
/// neighbours in memory are queries: maxima and sums of all queries of the block advance together, and nothing but the
/// block's queries has to be transposed for the products. Sums along keys follow the contract's order of rows. Keys
/// beyond the last query of half a causal block are never read. Few queries, as of a text that is made token by token,
/// go one by one, since nearly all of a block would be missing, and keys and values are read once, in place.
#include <algorithm>
#include <limits>
#include "gradus/backend/cpu/run/data_image.h"
#include "gradus/backend/cpu/tiles/strips.h"
#include "gradus/backend/cpu/tiles/used_tiles.h"
#include "gradus/backend/cpu/kernels/attention_rows.h"
#include "gradus/backend/cpu/kernels/kernels.h"
#include "gradus/ops/attention_ops.h"

namespace gradus::library {
namespace {

using namespace attention;

/// Visits the products of a call, but for blocks that are like others.
template <class Visit> void for_each_product(const Call& c, const Visit& visit) {
  if (c.has_few_queries()) {
    for (std::int64_t q = 0; q < c.queries; ++q) {
      const std::int64_t seen = c.keys_before(q + 1);
      visit(c.scores_in_place(seen)), visit(c.values_in_place(seen));
    }
    return;
  }
  const auto consider = [&](const Parts& parts) {
    for (const Part& part : parts) visit(part.product);
  };
  for (std::int64_t number = 0; number < c.blocks(); ++number) {
    const Block block = c.block(c.first_query(number), c.queries);
    consider(c.scores(block, c.width));
    consider(c.of_queries(block, c.value_width));
    if (c.is_forward()) continue;
    consider(c.scores(block, c.value_width));
    consider(c.of_queries(block, c.width));
    consider(c.of_keys(block, c.width, c.is_narrow() ? c.heads * c.width : c.width));
    consider(c.of_keys(block, c.value_width, c.heads * c.value_width));
    if (!c.causal && number > 0 && number + 2 < c.blocks()) number = c.blocks() - 2;  // those between are alike
  }
}

std::int64_t scratch_of_products(const Call& c) {
  std::size_t most = 0;
  for_each_product(c, [&](const Product& p) { most = std::max(most, cpu_backend::scratch_bytes(p)); });
  return round_up(static_cast<std::int64_t>(most), 64);
}

cpu_backend::TileSet tiles_for(const Call& c) {
  constexpr std::int64_t enough_keys = 64;  // columns of one row, which have met the tiles of one vector and of two
  cpu_backend::TileSet all;
  if (!c.is_narrow()) all |= cpu_backend::tiles_for_transpose(c.dtype);
  for_each_product(c, [&](const Product& p) { all |= cpu_backend::tiles_for(p); });
  if (c.mask < 0 || !c.has_few_queries()) return all;
  // A mask says only when it is read how many keys a query sees.
  for (std::int64_t seen = 1; seen <= std::min(c.keys, enough_keys); ++seen)
    for (const Product& p : {c.scores_in_place(seen), c.values_in_place(seen)}) all |= cpu_backend::tiles_for(p);
  return all;
}

template <class T> class Worker {
 public:
  Worker(const KernelArguments* arguments, const Call& call) : c_(call), slots_(arguments->slots) {
    products_ = static_cast<std::byte*>(arguments->scratch);
    weights_ = reinterpret_cast<T*>(products_ + c_.product_scratch);
    gradients_ = weights_ + c_.keys * block_queries;
    across_ = c_.is_forward() ? gradients_ : gradients_ + c_.keys * block_queries;
    scaled_ = across_ + rows_across(c_) * block_queries;
    keys_ = scaled_ + c_.width * block_queries;
    values_ = keys_ + c_.keys * c_.width;
    by_keys_ = values_ + c_.keys * c_.value_width;
    by_values_ = by_keys_ + c_.keys * c_.width;
  }
  static std::int64_t scratch_bytes(const Call& c) {
    const std::int64_t matrices = c.is_forward() ? 1 : 2;  // weights, and their gradients
    const std::int64_t of_keys = matrices * c.keys * (block_queries + c.width + c.value_width);
    const std::int64_t elements = of_keys + (rows_across(c) + c.width) * block_queries;
    return c.product_scratch + elements * static_cast<std::int64_t>(sizeof(T)) + 64;
  }

  /// Some queries of one head.
  void forward(std::int64_t unit) {
    const std::int64_t chunk = unit % c_.chunks(), head = unit / c_.chunks() % c_.heads;
    const std::int64_t batch = unit / (c_.chunks() * c_.heads),
                       last = std::min(c_.queries, (chunk + 1) * queries_at_once);
    gather_keys(c_, slots_, batch, head / c_.group(), c_.keys_before(last), keys_, values_);
    for (std::int64_t i = chunk * queries_at_once; i < last; i += block_queries) {
      const Block block = c_.block(i, last);
      find_weights(batch, head, block);
      run(c_.of_queries(block, c_.value_width), weights_, values_,
          static_cast<T*>(slots_[c_.result]) + ((batch * c_.queries + i) * c_.heads + head) * c_.value_width);
    }
  }

  /// All queries that share one head of keys.
  void backward(std::int64_t unit) {
    const std::int64_t batch = unit / c_.key_heads, key_head = unit % c_.key_heads;
    T* const by_queries = static_cast<T*>(slots_[c_.result]) + batch * c_.elements_of_example();
    T* const by_keys = by_queries + c_.queries * c_.heads * c_.width + key_head * c_.width;
    T* const by_values =
        by_queries + c_.queries * c_.heads * c_.width + c_.keys * c_.key_heads * c_.width + key_head * c_.value_width;
    gather_keys(c_, slots_, batch, key_head, c_.keys, keys_, values_);
    std::fill_n(by_keys_, c_.keys * (c_.width + c_.value_width), T(0));
    for (std::int64_t head = key_head * c_.group(); head < (key_head + 1) * c_.group(); ++head)
      for (std::int64_t i = 0; i < c_.queries; i += block_queries) {
        const Block block = c_.block(i, c_.queries);
        const T* dy = pointer(c_.cotangent) + ((batch * c_.queries + i) * c_.heads + head) * c_.value_width;
        find_weights(batch, head, block);
        run(c_.of_keys(block, c_.value_width, c_.heads * c_.value_width), weights_, dy, by_values_);
        transpose(dy, c_.value_width, block.count, T(1));
        run(c_.scores(block, c_.value_width), values_, across_, gradients_);
        differentiate(block.keys, c_.diagonal(i, block.keys));
        run(c_.of_keys(block, c_.width, c_.width), gradients_, scaled_, by_keys_);
        T* const dq = by_queries + (i * c_.heads + head) * c_.width;
        run(c_.of_queries(block, c_.width), gradients_, keys_, dq);
        for (std::int64_t q = 0; q < block.count; ++q)
          for (std::int64_t w = 0; w < c_.width; ++w) dq[q * c_.heads * c_.width + w] *= static_cast<T>(c_.scale);
      }
    scatter(by_keys_, c_.width, by_keys);
    scatter(by_values_, c_.value_width, by_values);
  }

 private:
  /// Transposing writes whole vectors.
  static std::int64_t rows_across(const Call& c) { return round_up(std::max(c.width, c.value_width), 16); }
  const T* pointer(int slot) const { return static_cast<const T*>(slots_[slot]); }
  void run(const Parts& parts, const T* a, const T* b, T* c) const { c_.run(parts, a, b, c, products_); }
  void soften(std::int64_t keys, std::int64_t diagonal) const {
    if constexpr (std::is_same_v<T, float>) rows_.soften(weights_, keys, diagonal, 1, false);
    else rows_.soften_double(weights_, keys, diagonal, 1, false);
  }
  void differentiate(std::int64_t keys, std::int64_t diagonal) const {
    if constexpr (std::is_same_v<T, float>) rows_.differentiate(weights_, gradients_, keys, diagonal, 1);
    else rows_.differentiate_double(weights_, gradients_, keys, diagonal, 1);
  }
  /// Sums over queries as rows that lie `key_heads` of them apart.
  void scatter(const T* sums, std::int64_t width, T* target) const {
    for (std::int64_t j = 0; j < c_.keys; ++j) std::copy_n(sums + j * width, width, target + j * c_.key_heads * width);
  }
  /// Rows of r queries, `heads` heads apart, as columns, multiplied by `factor`.
  void transpose(const T* rows, std::int64_t width, std::int64_t r, T factor) const {
    if (r * width == 0) return;
    cpu_backend::transpose(c_.dtype, rows, r, width, c_.heads * width, block_queries, across_);
    if (factor == 1) return;
    for (std::int64_t i = 0; i < width * block_queries; ++i) across_[i] *= factor;
  }

  /// weights_: those of a block, [keys, block_queries], and scaled_: its queries, as rows.
  void find_weights(std::int64_t batch, std::int64_t head, const Block& block) {
    const T* rows = pointer(c_.query) + ((batch * c_.queries + block.first) * c_.heads + head) * c_.width;
    transpose(rows, c_.width, block.count, static_cast<T>(c_.scale));
    if (!c_.is_forward())
      for (std::int64_t q = 0; q < block.count; ++q)
        for (std::int64_t w = 0; w < c_.width; ++w)
          scaled_[q * c_.width + w] = rows[q * c_.heads * c_.width + w] * static_cast<T>(c_.scale);
    run(c_.scores(block, c_.width), keys_, across_, weights_);
    const Sees sees = hide(c_, slots_, weights_, batch, head, block);
    soften(block.keys, c_.diagonal(block.first, block.keys));
    for (std::int64_t q = 0; c_.mask >= 0 && q < block.count; ++q)
      for (std::int64_t j = 0; !sees[static_cast<std::size_t>(q)] && j < block.keys; ++j)
        weights_[j * block_queries + q] = 0;
  }

  const Call& c_;
  const RowFunctions& rows_ = row_functions();
  void* const* slots_;
  std::byte* products_;
  T *weights_, *gradients_;  // [keys, block_queries]
  T *across_, *scaled_;      // a block's queries or cotangents, as columns; queries, as rows
  T *keys_, *values_;        // of one head, [keys, width] and [keys, value_width]
  T *by_keys_, *by_values_;  // sums over queries, alike
};

/// The worker for few queries.
template <class T> class FewQueriesWorker {
 public:
  FewQueriesWorker(const KernelArguments* arguments, const Call& call) : c_(call), slots_(arguments->slots) {
    products_ = static_cast<std::byte*>(arguments->scratch);
    weights_ = reinterpret_cast<T*>(products_ + c_.product_scratch);
    scaled_ = weights_ + round_up(c_.keys, row_lanes);
  }
  static std::int64_t scratch_bytes(const Call& c) {
    return c.product_scratch + (round_up(c.keys, row_lanes) + c.width) * static_cast<std::int64_t>(sizeof(T));
  }

  /// All queries of one head.
  void forward(std::int64_t unit) {
    const std::int64_t batch = unit / c_.heads, head = unit % c_.heads, key_head = head / c_.group();
    const T* const keys = pointer(c_.key) + c_.first_key(batch, key_head, c_.width);
    const T* const values = pointer(c_.value) + c_.first_key(batch, key_head, c_.value_width);
    for (std::int64_t q = 0; q < c_.queries; ++q) {
      const std::int64_t row = (batch * c_.queries + q) * c_.heads + head, seen = last_seen(batch, head, q);
      const T* const query = pointer(c_.query) + row * c_.width;
      for (std::int64_t w = 0; w < c_.width; ++w) scaled_[w] = query[w] * static_cast<T>(c_.scale);
      run(scores_of(seen, c_.keys_before(q + 1)), keys, scaled_, weights_);
      hide(batch, head, q, seen);
      soften(seen);
      run(c_.values_in_place(seen), weights_, values, static_cast<T*>(slots_[c_.result]) + row * c_.value_width);
    }
  }

 private:
  static constexpr std::int64_t row_lanes = 16;
  const T* pointer(int slot) const { return static_cast<const T*>(slots_[slot]); }
  void run(const Product& p, const T* a, const T* b, T* c) const {
    cpu_backend::run_units(p, a, b, c, 0, cpu_backend::units(p), products_);
  }
  /// The scores of the keys that are seen, or of all where packing takes more memory for fewer of them.
  Product scores_of(std::int64_t seen, std::int64_t all) const {
    const Product p = c_.scores_in_place(seen);
    const bool has_room = static_cast<std::int64_t>(cpu_backend::scratch_bytes(p)) <= c_.product_scratch;
    return has_room ? p : c_.scores_in_place(all);
  }
  void soften(std::int64_t keys) const {
    if constexpr (std::is_same_v<T, float>) row_functions().soften_row(weights_, keys);
    else row_functions().soften_row_double(weights_, keys);
  }
  /// The summand that the mask has for the score of key j. A mask of booleans has 0 or -infinity.
  T added(std::int64_t first, std::int64_t j) const {
    const std::int64_t at = first + j * c_.mask_strides[3];
    if (c_.mask_adds) return static_cast<const T*>(slots_[c_.mask])[at];
    return static_cast<const bool*>(slots_[c_.mask])[at] ? T(0) : hidden;
  }
  std::int64_t first_of_mask(std::int64_t batch, std::int64_t head, std::int64_t q) const {
    return batch * c_.mask_strides[0] + head * c_.mask_strides[1] + q * c_.mask_strides[2];
  }
  /// The number of keys up to the last one that a query sees. Keys behind it, as in the unfilled part of a cache, are
  /// not read.
  std::int64_t last_seen(std::int64_t batch, std::int64_t head, std::int64_t q) const {
    std::int64_t seen = c_.keys_before(q + 1);
    if (c_.mask < 0) return seen;
    const std::int64_t first = first_of_mask(batch, head, q);
    while (seen > 0 && added(first, seen - 1) == hidden) --seen;
    return seen;
  }
  void hide(std::int64_t batch, std::int64_t head, std::int64_t q, std::int64_t seen) const {
    const std::int64_t first = c_.mask < 0 ? 0 : first_of_mask(batch, head, q);
    for (std::int64_t j = 0; c_.mask >= 0 && j < seen; ++j) {
      const T score = added(first, j);
      weights_[j] = c_.mask_adds ? weights_[j] + score : score == hidden ? hidden : weights_[j];
    }
  }

  static constexpr T hidden = -std::numeric_limits<T>::infinity();
  const Call& c_;
  void* const* slots_;
  std::byte* products_;
  T *weights_, *scaled_;
};

bool is_heads_first(const BlockedAttention& op) { return op.heads_first; }
bool is_heads_first(const AttentionGradient&) { return false; }

template <class Op> Call call_of(const Graph& graph, int value, Symbols symbols, std::size_t operands) {
  const Value& v = graph[value];
  const Op& op = *v.op.as<Op>();
  const auto shape = [&](std::size_t i) { return graph[v.in[i]].spec.shape.evaluated(symbols); };
  const Shape q = shape(0), k = shape(1), values = shape(2);
  Call c{.dtype = v.spec.dtype,
         .batch = q[0],
         .queries = q[1],
         .keys = k[is_heads_first(op) ? 2 : 1],
         .heads = q[2],
         .key_heads = k[is_heads_first(op) ? 1 : 2],
         .width = q[3],
         .value_width = values[3],
         .scale = op.scale,
         .causal = op.causal,
         .heads_first = is_heads_first(op)};
  c.query = storage_of(graph, v.in[0]);
  c.key = storage_of(graph, v.in[1]);
  c.value = storage_of(graph, v.in[2]);
  if (operands > 3) c.cotangent = storage_of(graph, v.in[3]);
  c.result = value;
  if (op.masked) {
    c.mask = storage_of(graph, v.in[operands]);
    c.mask_adds = graph[v.in[operands]].spec.dtype != boolean;
    const Shape mask = shape(operands);
    std::int64_t stride = 1;
    for (int i = 3; i >= 0; --i) {
      c.mask_strides[i] = mask[i] == 1 ? 0 : stride;
      stride *= mask[i];
    }
  }
  c.product_scratch = scratch_of_products(c);
  return c;
}

BoundThunk bound_to(const Graph& graph, int value, Symbols symbols, Call call, std::int64_t units,
                    std::int64_t products) {
  const Value& v = graph[value];
  BoundThunk bound{.extent = v.spec.shape.evaluated(symbols).size() == 0 ? 0 : units};
  for (int operand : v.in)
    bound.bytes += graph[operand].spec.shape.evaluated(symbols).size() * size_of(graph[operand].spec.dtype);
  bound.bytes += v.spec.shape.evaluated(symbols).size() * size_of(v.spec.dtype);
  bound.flops = products * call.batch * call.heads * call.queries * call.keys * (call.width + call.value_width);
  if (call.causal) bound.flops /= 2;
  bound.worker_scratch = call.has_few_queries() ? (call.dtype == f32 ? FewQueriesWorker<float>::scratch_bytes(call)
                                                                     : FewQueriesWorker<double>::scratch_bytes(call))
                         : call.dtype == f32    ? Worker<float>::scratch_bytes(call)
                         : call.dtype == f64    ? Worker<double>::scratch_bytes(call)
                                                : NarrowWorker::scratch_bytes(call);
  bound.tiles = tiles_for(call);
  bound.data = std::make_shared<const Call>(std::move(call));
  bound.image = image_of<Call>;
  return bound;
}

template <class Visit> void with_worker(const KernelArguments* arguments, Visit visit) {
  const auto& call = *static_cast<const Call*>(arguments->data);
  if (call.dtype == f32) visit(Worker<float>(arguments, call));
  else if (call.dtype == f64) visit(Worker<double>(arguments, call));
  else visit(NarrowWorker(arguments, call));
}

}  // namespace

BoundThunk bind_attention(const Graph& graph, int value, Symbols symbols) {
  const Call call = call_of<BlockedAttention>(graph, value, symbols, 3);
  return bound_to(graph, value, symbols, call, call.batch * call.heads * call.chunks(), 2);
}

void run_attention(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  const auto& call = *static_cast<const Call*>(arguments->data);
  const auto run = [&](auto worker) {
    for (std::int64_t unit = begin; unit < end; ++unit) worker.forward(unit);
  };
  if (!call.has_few_queries()) with_worker(arguments, run);
  else if (call.dtype == f32) run(FewQueriesWorker<float>(arguments, call));
  else run(FewQueriesWorker<double>(arguments, call));
}

BoundThunk bind_attention_gradient(const Graph& graph, int value, Symbols symbols) {
  const Call call = call_of<AttentionGradient>(graph, value, symbols, 4);
  return bound_to(graph, value, symbols, call, call.batch * call.key_heads, 5);
}

void run_attention_gradient(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  with_worker(arguments, [&](auto worker) {
    for (std::int64_t unit = begin; unit < end; ++unit) worker.backward(unit);
  });
}

}  // namespace gradus::library
