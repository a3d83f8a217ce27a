/// Attention in blocks of queries. The scores of a block stand in the worker's scratch, a row for each key, so that
/// neighbours in memory are queries: maxima and sums of all queries of the block advance together, and nothing but the
/// block's queries has to be transposed for the products. Their sums are in the contract's order for rows of up to
/// 32,768 keys. Keys behind a causal block's last query are never looked at.
#include <immintrin.h>
#include <algorithm>
#include <limits>
#include "gradus/backend/cpu/tiles/product.h"
#include "gradus/backend/library/kernels.h"
#include "gradus/base/divide.h"
#include "gradus/ops/attention_blocks.h"

namespace gradus::library {
namespace {

using cpu_backend::Product;

constexpr std::int64_t block_queries = 64;
constexpr std::int64_t queries_at_once = 512;  // of a unit of the forward direction, which transposes nothing twice
constexpr std::int64_t lanes = 16;             // of a row reduction

struct Call {
  DType dtype = f32;
  std::int64_t batch = 0, queries = 0, keys = 0, heads = 0, key_heads = 0, width = 0, value_width = 0;
  double scale = 1;
  bool causal = false;
  int query = -1, key = -1, value = -1, cotangent = -1, mask = -1, result = -1;  // slots; -1: there is none
  bool mask_adds = false;
  std::int64_t mask_strides[4] = {};  // 0 where it is the same for all
  std::int64_t product_scratch = 0;   // bytes

  std::int64_t blocks() const { return divide_up(queries, block_queries); }
  std::int64_t first_query(std::int64_t block) const { return std::min(queries, block * block_queries); }
  /// How many keys some query before `end` sees.
  std::int64_t keys_before(std::int64_t end) const { return causal ? std::min(end, keys) : keys; }
  std::int64_t chunks() const { return divide_up(queries, queries_at_once); }
  std::int64_t group() const { return heads / key_heads; }
  std::int64_t elements_of_example() const {
    return queries * heads * width + keys * key_heads * (width + value_width);
  }
  bool is_forward() const { return cotangent < 0; }

  // Products of a block of r queries and n keys. Rows of keys and values are a head apart.
  Product scores(std::int64_t n, std::int64_t r, std::int64_t depth) const {
    return {.dtype = dtype,
            .m = n,
            .n = r,
            .k = depth,
            .a_row = key_heads * depth,
            .b_row = block_queries,
            .b_column = 1,
            .c_row = block_queries};
  }
  /// [n, r]' [n, columns], the rows of which are `heads_between` heads apart, as are those of the result.
  Product of_queries(std::int64_t n, std::int64_t r, std::int64_t columns) const {
    return {.dtype = dtype,
            .m = r,
            .n = columns,
            .k = n,
            .a_row = 1,
            .a_column = block_queries,
            .b_row = key_heads * columns,
            .b_column = 1,
            .c_row = heads * columns};
  }
  /// [n, r] [r, columns], added to what is there.
  Product of_keys(std::int64_t n, std::int64_t r, std::int64_t columns, std::int64_t row) const {
    return {.dtype = dtype,
            .m = n,
            .n = columns,
            .k = r,
            .a_row = block_queries,
            .b_row = row,
            .b_column = 1,
            .c_row = key_heads * columns,
            .resume = true};
  }
};

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
    consider(c.of_keys(n, r, c.width, c.width));
    consider(c.of_keys(n, r, c.value_width, c.heads * c.value_width));
    if (!c.causal && block > 0 && block + 2 < c.blocks()) block = c.blocks() - 2;  // those between are alike
  }
  return round_up(static_cast<std::int64_t>(most), 64);
}

// ---------------------------------------------------------------- rows of queries

template <class T> struct Exponential;
template <> struct Exponential<float> {
  using Bits = std::uint32_t;  // which wrap
  static constexpr int mantissa = 23;
  static constexpr Bits one = 0x3f800000;
  static constexpr float low = -88, high = 89, round = 12582912.0f, limit = 127;
  static constexpr float ln2_high = static_cast<float>(0.693147182464599609375),
                         ln2_low = static_cast<float>(-1.904654299957768e-9);
  static constexpr double terms[] = {0.0001990659133, 0.001393373337, 0.008333287511,
                                     0.04166646417,   0.1666666675,   0.5000000014};
};
template <> struct Exponential<double> {
  using Bits = std::uint64_t;  // which wrap
  static constexpr int mantissa = 52;
  static constexpr Bits one = 0x3ff0000000000000;
  static constexpr double low = -709, high = 710, round = 6755399441055744.0, limit = 1023;
  static constexpr double ln2_high = 0.693147180559945286227, ln2_low = 2.3190468138462996e-17;
  static constexpr double terms[] = {2.09212070756161889e-9,
                                     2.51053134845733862e-8,
                                     2.75572540665913157e-7,
                                     2.7557255167956542e-6,
                                     0.0000248015873461200463,
                                     0.000198412698750041241,
                                     0.00138888888888749244,
                                     0.0083333333333260825,
                                     0.041666666666666683,
                                     0.16666666666666671,
                                     0.5};
};

/// Vectors written out: the loops below are too much for the compiler to find them itself.
template <class T> using Vector [[gnu::vector_size(32), gnu::may_alias]] = T;
template <class T> constexpr std::int64_t vector_lanes = 32 / sizeof(T);

template <class T>
[[gnu::target("avx2,fma"), gnu::always_inline]] inline Vector<T> multiply_add(Vector<T> a, Vector<T> b, Vector<T> c) {
  if constexpr (std::is_same_v<T, float>) return _mm256_fmadd_ps(a, b, c);
  else return _mm256_fmadd_pd(a, b, c);
}

template <class T> [[gnu::target("avx2,fma"), gnu::always_inline]] inline Vector<T> all(double number) {
  return Vector<T>{} + static_cast<T>(number);
}

/// Instruction for instruction what scalar::exp records (graph/formulas_exp.cpp), so that the bits agree.
template <class T> [[gnu::target("avx2,fma"), gnu::always_inline]] inline Vector<T> exponential(Vector<T> x) {
  using E = Exponential<T>;
  using Integers [[gnu::vector_size(32)]] = typename E::Bits;
  x = x < all<T>(E::low) ? all<T>(E::low) : x;
  x = x > all<T>(E::high) ? all<T>(E::high) : x;
  const Vector<T> rounded = multiply_add<T>(x, all<T>(1.44269504088896340736), all<T>(E::round));
  const Vector<T> n = rounded - E::round;
  const Vector<T> first = multiply_add<T>(n, all<T>(-E::ln2_high), x), second = n * -E::ln2_low;
  const Vector<T> r = first + second, r_low = (first - r) + second;
  const Vector<T> last = all<T>(E::round + E::limit);
  const auto bits = reinterpret_cast<Integers>(rounded > last ? last : rounded);
  const auto power = reinterpret_cast<Vector<T>>((bits << E::mantissa) + E::one);
  Vector<T> polynomial = all<T>(E::terms[0]);
  for (std::size_t i = 1; i < std::size(E::terms); ++i)
    polynomial = multiply_add<T>(polynomial, r, all<T>(E::terms[i]));
  const Vector<T> sum = r + T(1), lost = ((T(1) - sum) + r) + r_low;
  const Vector<T> y = (sum + multiply_add<T>(r * r, polynomial, lost)) * power;
  return rounded > last ? y + y : y;
}

/// One number for each query of a block. Rows of scores are as long, and what stands there for queries that a block
/// lacks is computed with and never read.
template <class T> struct PerQuery {
  static constexpr std::int64_t vectors = block_queries / vector_lanes<T>;
  Vector<T> of[vectors];
};
/// The lanes of a sum along keys: those of key j are j modulo 16.
template <class T> struct Sums {
  PerQuery<T> lane[lanes] = {};
  [[gnu::target("avx2,fma")]] void combine() {
    for (std::int64_t half = lanes / 2; half > 0; half /= 2)
      for (std::int64_t l = 0; l < half; ++l)
        for (std::int64_t q = 0; q < PerQuery<T>::vectors; ++q) lane[l].of[q] += lane[l + half].of[q];
  }
};

/// Of [keys, block_queries] scores: their exponentials relative to each query's largest, divided by the sum of these.
template <class T> [[gnu::target("avx2,fma")]] void soften(PerQuery<T>* scores, std::int64_t keys) {
  constexpr std::int64_t vectors = PerQuery<T>::vectors;
  PerQuery<T> most;
  for (Vector<T>& x : most.of) x = Vector<T>{} - std::numeric_limits<T>::infinity();
  for (std::int64_t j = 0; j < keys; ++j)
    for (std::int64_t q = 0; q < vectors; ++q) most.of[q] = scores[j].of[q] > most.of[q] ? scores[j].of[q] : most.of[q];
  Sums<T> sums;
  for (std::int64_t j = 0; j < keys; ++j)
    for (std::int64_t q = 0; q < vectors; ++q) {
      scores[j].of[q] = exponential<T>(scores[j].of[q] - most.of[q]);
      sums.lane[j % lanes].of[q] += scores[j].of[q];
    }
  sums.combine();
  for (std::int64_t j = 0; j < keys; ++j)
    for (std::int64_t q = 0; q < vectors; ++q) scores[j].of[q] /= sums.lane[0].of[q];
}

/// The gradients by weights become those by scores: p (dp - sum(dp p)).
template <class T>
[[gnu::target("avx2,fma")]] void differentiate(const PerQuery<T>* weights, PerQuery<T>* gradients, std::int64_t keys) {
  constexpr std::int64_t vectors = PerQuery<T>::vectors;
  Sums<T> sums;
  for (std::int64_t j = 0; j < keys; ++j)
    for (std::int64_t q = 0; q < vectors; ++q) sums.lane[j % lanes].of[q] += gradients[j].of[q] * weights[j].of[q];
  sums.combine();
  for (std::int64_t j = 0; j < keys; ++j)
    for (std::int64_t q = 0; q < vectors; ++q)
      gradients[j].of[q] = weights[j].of[q] * (gradients[j].of[q] - sums.lane[0].of[q]);
}

// ---------------------------------------------------------------- one worker

template <class T> class Worker {
 public:
  Worker(const KernelArguments* arguments, const Call& call) : c_(call), slots_(arguments->slots) {
    products_ = static_cast<std::byte*>(arguments->scratch);
    weights_ = reinterpret_cast<T*>(products_ + c_.product_scratch);
    gradients_ = weights_ + c_.keys * block_queries;
    across_ = c_.is_forward() ? gradients_ : gradients_ + c_.keys * block_queries;
    scaled_ = across_ + std::max(c_.width, c_.value_width) * block_queries;
  }
  static std::int64_t scratch_bytes(const Call& c) {
    const std::int64_t matrices = c.keys * (c.is_forward() ? 1 : 2) + std::max(c.width, c.value_width) + c.width;
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
        differentiate<T>(reinterpret_cast<const PerQuery<T>*>(weights_), reinterpret_cast<PerQuery<T>*>(gradients_), n);
        run(c_.of_keys(n, r, c_.width, c_.width), gradients_, scaled_, by_keys);
        T* const dq = by_queries + (i * c_.heads + head) * c_.width;
        run(c_.of_queries(n, r, c_.width), gradients_, keys(batch, head), dq);
        for (std::int64_t q = 0; q < r; ++q)
          for (std::int64_t w = 0; w < c_.width; ++w) dq[q * c_.heads * c_.width + w] *= static_cast<T>(c_.scale);
      }
  }

 private:
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
  void clear(T* rows, std::int64_t width) const {
    for (std::int64_t j = 0; j < c_.keys; ++j) std::fill_n(rows + j * c_.key_heads * width, width, T(0));
  }
  /// Rows of r queries, `heads` heads apart, as columns, multiplied by `factor`.
  void transpose(const T* rows, std::int64_t width, std::int64_t r, T factor) const {
    for (std::int64_t q = 0; q < r; ++q)
      for (std::int64_t w = 0; w < width; ++w) across_[w * block_queries + q] = rows[q * c_.heads * width + w] * factor;
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
    bool left[block_queries] = {};
    if (c_.mask >= 0) apply_mask(batch, head, i, r, n, left);
    if (c_.causal)
      for (std::int64_t j = i + 1; j < n; ++j)
        std::fill_n(weights_ + j * block_queries, std::min(j - i, r), -std::numeric_limits<T>::infinity());
    soften<T>(reinterpret_cast<PerQuery<T>*>(weights_), n);
    for (std::int64_t q = 0; c_.mask >= 0 && q < r; ++q)
      for (std::int64_t j = 0; !left[q] && j < n; ++j) weights_[j * block_queries + q] = 0;
  }

  void apply_mask(std::int64_t batch, std::int64_t head, std::int64_t i, std::int64_t r, std::int64_t n, bool* left) {
    const auto [of_batch, of_head, of_query, of_key] = c_.mask_strides;
    const std::int64_t first = batch * of_batch + head * of_head + i * of_query;
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t q = 0; q < r; ++q) {
        T& score = weights_[j * block_queries + q];
        const std::int64_t at = first + q * of_query + j * of_key;
        const T added = c_.mask_adds                                    ? pointer(c_.mask)[at]
                        : static_cast<const bool*>(slots_[c_.mask])[at] ? T(0)
                                                                        : -std::numeric_limits<T>::infinity();
        const bool hidden = added == -std::numeric_limits<T>::infinity();
        if (c_.mask_adds) score += added;
        else if (hidden) score = added;
        left[q] = left[q] || (!hidden && (!c_.causal || j <= i + q));
      }
  }

  const Call& c_;
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
  bound.worker_scratch = call.dtype == f32 ? Worker<float>::scratch_bytes(call) : Worker<double>::scratch_bytes(call);
  bound.data = std::make_shared<const Call>(std::move(call));
  return bound;
}

template <class Visit> void with_worker(const KernelArguments* arguments, Visit visit) {
  const auto& call = *static_cast<const Call*>(arguments->data);
  if (call.dtype == f32) visit(Worker<float>(arguments, call));
  else visit(Worker<double>(arguments, call));
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
