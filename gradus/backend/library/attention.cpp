/// Attention in blocks of queries. The scores of a block stand in the worker's scratch, a row for each key, so that
/// neighbours in memory are queries: maxima and sums of all queries of the block advance together, and nothing but the
/// block's queries has to be transposed for the products. Their sums are in the contract's order for rows of up to
/// 32,768 keys. Keys behind a causal block's last query are never looked at.
#include <algorithm>
#include <limits>
#include "gradus/backend/cpu/tiles/strips.h"
#include "gradus/backend/library/attention_rows.h"
#include "gradus/backend/library/kernels.h"
#include "gradus/ops/attention_blocks.h"

namespace gradus::library {
namespace {

using namespace attention;

std::int64_t scratch_of_products(const Call& c) {
  std::size_t most = 0;
  const auto consider = [&](const Product& p) { most = std::max(most, cpu_backend::scratch_bytes(p)); };
  for (std::int64_t block = 0; block < c.blocks(); ++block) {
    const std::int64_t end = c.first_query(block + 1), r = end - c.first_query(block), n = c.keys_before(end);
    consider(c.scores(n, r, c.width));
    consider(c.of_queries(n, r, c.value_width));
    if (c.is_forward()) continue;
    consider(c.scores(n, r, c.value_width));
    consider(c.of_queries(n, r, c.width));
    consider(c.of_keys(n, r, c.width, c.is_narrow() ? c.heads * c.width : c.width));
    consider(c.of_keys(n, r, c.value_width, c.heads * c.value_width));
    if (!c.causal && block > 0 && block + 2 < c.blocks()) block = c.blocks() - 2;  // those between are alike
  }
  return round_up(static_cast<std::int64_t>(most), 64);
}

template <class T> class Worker {
 public:
  Worker(const KernelArguments* arguments, const Call& call) : c_(call), slots_(arguments->slots) {
    products_ = static_cast<std::byte*>(arguments->scratch);
    weights_ = reinterpret_cast<T*>(products_ + c_.product_scratch);
    gradients_ = weights_ + c_.keys * block_queries;
    across_ = c_.is_forward() ? gradients_ : gradients_ + c_.keys * block_queries;
    scaled_ = across_ + rows_across(c_) * block_queries;
  }
  static std::int64_t scratch_bytes(const Call& c) {
    const std::int64_t matrices = c.keys * (c.is_forward() ? 1 : 2) + rows_across(c) + c.width;
    return c.product_scratch + matrices * block_queries * static_cast<std::int64_t>(sizeof(T)) + 64;
  }

  /// Some queries of one head.
  void forward(std::int64_t unit) {
    const std::int64_t chunk = unit % c_.chunks(), head = unit / c_.chunks() % c_.heads;
    const std::int64_t batch = unit / (c_.chunks() * c_.heads),
                       last = std::min(c_.queries, (chunk + 1) * queries_at_once);
    for (std::int64_t i = chunk * queries_at_once; i < last; i += block_queries) {
      const std::int64_t r = std::min(block_queries, last - i), n = c_.keys_before(i + r);
      find_weights(batch, head, i, r, n);
      run(c_.of_queries(n, r, c_.value_width), weights_, values(batch, head),
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
    clear(by_keys, c_.width);
    clear(by_values, c_.value_width);
    for (std::int64_t head = key_head * c_.group(); head < (key_head + 1) * c_.group(); ++head)
      for (std::int64_t i = 0; i < c_.queries; i += block_queries) {
        const std::int64_t r = std::min(block_queries, c_.queries - i), n = c_.keys_before(i + r);
        const T* dy = pointer(c_.cotangent) + ((batch * c_.queries + i) * c_.heads + head) * c_.value_width;
        find_weights(batch, head, i, r, n);
        run(c_.of_keys(n, r, c_.value_width, c_.heads * c_.value_width), weights_, dy, by_values);
        transpose(dy, c_.value_width, r, T(1));
        run(c_.scores(n, r, c_.value_width), values(batch, head), across_, gradients_);
        differentiate(n, c_.diagonal(i, n));
        run(c_.of_keys(n, r, c_.width, c_.width), gradients_, scaled_, by_keys);
        T* const dq = by_queries + (i * c_.heads + head) * c_.width;
        run(c_.of_queries(n, r, c_.width), gradients_, keys(batch, head), dq);
        for (std::int64_t q = 0; q < r; ++q)
          for (std::int64_t w = 0; w < c_.width; ++w) dq[q * c_.heads * c_.width + w] *= static_cast<T>(c_.scale);
      }
  }

 private:
  /// Transposing writes whole vectors.
  static std::int64_t rows_across(const Call& c) { return round_up(std::max(c.width, c.value_width), 16); }
  const T* pointer(int slot) const { return static_cast<const T*>(slots_[slot]); }
  const T* keys(std::int64_t batch, std::int64_t head) const {
    return pointer(c_.key) + (batch * c_.keys * c_.key_heads + head / c_.group()) * c_.width;
  }
  const T* values(std::int64_t batch, std::int64_t head) const {
    return pointer(c_.value) + (batch * c_.keys * c_.key_heads + head / c_.group()) * c_.value_width;
  }
  void run(const Product& p, const T* a, const T* b, T* c) const {
    cpu_backend::run_units(p, a, b, c, 0, p.m * p.n == 0 ? 0 : cpu_backend::units(p), products_);
  }
  void soften(std::int64_t keys, std::int64_t diagonal) const {
    if constexpr (std::is_same_v<T, float>) rows_.soften(weights_, keys, diagonal, 1, false);
    else rows_.soften_double(weights_, keys, diagonal, 1, false);
  }
  void differentiate(std::int64_t keys, std::int64_t diagonal) const {
    if constexpr (std::is_same_v<T, float>) rows_.differentiate(weights_, gradients_, keys, diagonal, 1);
    else rows_.differentiate_double(weights_, gradients_, keys, diagonal, 1);
  }
  void clear(T* rows, std::int64_t width) const {
    for (std::int64_t j = 0; j < c_.keys; ++j) std::fill_n(rows + j * c_.key_heads * width, width, T(0));
  }
  /// Rows of r queries, `heads` heads apart, as columns, multiplied by `factor`.
  void transpose(const T* rows, std::int64_t width, std::int64_t r, T factor) const {
    if (r * width == 0) return;
    cpu_backend::transpose(c_.dtype, rows, r, width, c_.heads * width, block_queries, across_);
    if (factor == 1) return;
    for (std::int64_t i = 0; i < width * block_queries; ++i) across_[i] *= factor;
  }

  /// weights_: [n, r] of queries i ... i + r - 1, and scaled_: these queries, as rows.
  void find_weights(std::int64_t batch, std::int64_t head, std::int64_t i, std::int64_t r, std::int64_t n) {
    const T* rows = pointer(c_.query) + ((batch * c_.queries + i) * c_.heads + head) * c_.width;
    transpose(rows, c_.width, r, static_cast<T>(c_.scale));
    if (!c_.is_forward())
      for (std::int64_t q = 0; q < r; ++q)
        for (std::int64_t w = 0; w < c_.width; ++w)
          scaled_[q * c_.width + w] = rows[q * c_.heads * c_.width + w] * static_cast<T>(c_.scale);
    run(c_.scores(n, r, c_.width), keys(batch, head), across_, weights_);
    const Sees sees = hide(c_, slots_, weights_, batch, head, i, r, n);
    soften(n, c_.diagonal(i, n));
    for (std::int64_t q = 0; c_.mask >= 0 && q < r; ++q)
      for (std::int64_t j = 0; !sees[static_cast<std::size_t>(q)] && j < n; ++j) weights_[j * block_queries + q] = 0;
  }

  const Call& c_;
  const RowFunctions& rows_ = row_functions();
  void* const* slots_;
  std::byte* products_;
  T *weights_, *gradients_;  // [keys, block_queries]
  T *across_, *scaled_;      // a block's queries or cotangents, as columns; queries, as rows
};

template <class Op> Call call_of(const Graph& graph, int value, Symbols symbols, std::size_t operands) {
  const Value& v = graph[value];
  const Op& op = *v.op.as<Op>();
  const auto shape = [&](std::size_t i) { return graph[v.in[i]].spec.shape.evaluated(symbols); };
  const Shape q = shape(0), k = shape(1), values = shape(2);
  Call c{.dtype = v.spec.dtype,
         .batch = q[0],
         .queries = q[1],
         .keys = k[1],
         .heads = q[2],
         .key_heads = k[2],
         .width = q[3],
         .value_width = values[3],
         .scale = op.scale,
         .causal = op.causal};
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
  bound.worker_scratch = call.dtype == f32   ? Worker<float>::scratch_bytes(call)
                         : call.dtype == f64 ? Worker<double>::scratch_bytes(call)
                                             : NarrowWorker::scratch_bytes(call);
  bound.data = std::make_shared<const Call>(std::move(call));
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
  const Call call = call_of<Attention>(graph, value, symbols, 3);
  return bound_to(graph, value, symbols, call, call.batch * call.heads * call.chunks(), 2);
}

void run_attention(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  with_worker(arguments, [&](auto worker) {
    for (std::int64_t unit = begin; unit < end; ++unit) worker.forward(unit);
  });
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
