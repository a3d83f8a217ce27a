/// A call of attention or of its gradient: sizes, slots, and the products of its blocks of queries.
#pragma once
#include <algorithm>
#include <array>
#include <limits>
#include "gradus/backend/cpu/tiles/product.h"
#include "gradus/backend/cpu/run/program.h"
#include "gradus/base/divide.h"
#include "gradus/ops/attention_ops.h"

namespace gradus::library::attention {

using cpu_backend::Product;

constexpr std::int64_t block_queries = 64, half_block = 32;
constexpr std::int64_t queries_at_once = 512;  // of a unit of the forward direction, which transposes nothing twice

/// Queries first ... first + count - 1 and the keys that some of them see. The first half_block queries of a causal
/// block see no keys past near_keys.
struct Block {
  std::int64_t first = 0, count = 0, keys = 0, near_keys = 0;
  std::int64_t far_keys() const { return keys - near_keys; }
};

/// A product of a block, and where its operands begin, in elements from the block's; then another one, or nothing.
struct Part {
  Product product;
  std::int64_t a = 0, b = 0, c = 0;
};
using Parts = std::array<Part, 2>;

/// The rest of a product after `rows` of its rows, `columns` columns and `steps` steps.
inline Part rest_of(Product p, std::int64_t rows, std::int64_t columns, std::int64_t steps) {
  p.m -= rows, p.n -= columns, p.k -= steps;
  return {.product = p,
          .a = rows * p.a_row + steps * p.a_column,
          .b = steps * p.b_row + columns * p.b_column,
          .c = rows * p.c_row + columns};
}

struct Call {
  DType dtype = f32;
  std::int64_t batch = 0, queries = 0, keys = 0, heads = 0, key_heads = 0, width = 0, value_width = 0;
  double scale = 1;
  bool causal = false, heads_first = false;
  int query = -1, key = -1, value = -1, cotangent = -1, mask = -1, result = -1;  // slots; -1: there is none
  bool mask_adds = false;
  std::int64_t mask_strides[4] = {};  // 0 where it is the same for all
  std::int64_t product_scratch = 0;   // bytes

  std::int64_t blocks() const { return divide_up(queries, block_queries); }
  std::int64_t first_query(std::int64_t block) const { return std::min(queries, block * block_queries); }
  /// How many keys some query before `end` sees.
  std::int64_t keys_before(std::int64_t end) const { return causal ? std::min(end, keys) : keys; }
  /// The last key that the first query of a block sees, of n keys.
  std::int64_t diagonal(std::int64_t first, std::int64_t n) const { return causal ? first : n; }
  std::int64_t chunks() const { return divide_up(queries, queries_at_once); }
  std::int64_t group() const { return heads / key_heads; }
  std::int64_t elements_of_example() const {
    return queries * heads * width + keys * key_heads * (width + value_width);
  }
  bool is_forward() const { return cotangent < 0; }
  bool has_few_queries() const { return is_forward() && queries <= BlockedAttention::few_queries && !is_narrow(); }
  /// Elements from a key or value of such a width to the next one, and from the first one on to those of a head.
  std::int64_t key_row(std::int64_t columns) const { return heads_first ? columns : key_heads * columns; }
  std::int64_t first_key(std::int64_t example, std::int64_t key_head, std::int64_t columns) const {
    return (example * keys * key_heads + key_head * (heads_first ? keys : 1)) * columns;
  }
  bool is_narrow() const { return dtype == bf16; }

  Block block(std::int64_t first, std::int64_t end) const {
    Block b{.first = first, .count = std::min(block_queries, end - first)};
    b.keys = b.near_keys = keys_before(first + b.count);
    if (b.count > half_block) b.near_keys = keys_before(first + half_block);
    return b;
  }

  // Products of a block, with keys, values and sums over queries as a worker copies them: row after row.

  /// [keys, block_queries]: queries are columns; bf16 ones are read as they are, and scores are f32. Scores that near
  /// queries do not see are left as they are.
  Parts scores(const Block& b, std::int64_t depth) const {
    const Product all{.dtype = dtype,
                      .m = b.keys,
                      .n = b.count,
                      .k = depth,
                      .a_row = depth,
                      .b_row = is_narrow() ? 1 : block_queries,
                      .b_column = is_narrow() ? heads * depth : 1,
                      .c_row = block_queries,
                      .wide = is_narrow()};
    if (b.far_keys() == 0) return {Part{all}};
    Product near = all;
    near.m = b.near_keys;
    return {Part{near}, rest_of(all, b.near_keys, half_block, 0)};
  }
  /// [keys, queries]' [keys, columns]; rows of the result are `heads` apart.
  Parts of_queries(const Block& b, std::int64_t columns) const {
    const Product all{.dtype = dtype,
                      .m = b.count,
                      .n = columns,
                      .k = b.keys,
                      .a_row = 1,
                      .a_column = block_queries,
                      .b_row = columns,
                      .b_column = 1,
                      .c_row = heads * columns};
    if (b.far_keys() == 0) return {Part{all}};
    Product near = all;
    near.m = half_block, near.k = b.near_keys;
    return {Part{near}, rest_of(all, half_block, 0, 0)};
  }
  /// [keys, queries] [queries, columns], whose rows are so far apart, added to sums; those of bf16 are f32.
  Parts of_keys(const Block& b, std::int64_t columns, std::int64_t row) const {
    const Product all{.dtype = dtype,
                      .m = b.keys,
                      .n = columns,
                      .k = b.count,
                      .a_row = block_queries,
                      .b_row = row,
                      .b_column = 1,
                      .c_row = columns,
                      .resume = true,
                      .wide = is_narrow()};
    if (b.far_keys() == 0) return {Part{all}};
    Product near = all;
    near.m = b.near_keys;
    return {Part{near}, rest_of(all, b.near_keys, 0, half_block)};
  }
  /// The scores of one query, which follow each other, of keys in place.
  Product scores_in_place(std::int64_t seen) const {
    return {.dtype = dtype,
            .m = seen,
            .n = 1,
            .k = width,
            .a_row = key_row(width),
            .b_row = 1,
            .b_column = width,
            .c_row = 1};
  }
  /// The weights of one query times values in place.
  Product values_in_place(std::int64_t seen) const {
    return {.dtype = dtype,
            .m = 1,
            .n = value_width,
            .k = seen,
            .a_row = seen,
            .b_row = key_row(value_width),
            .c_row = value_width};
  }
  void run(const Parts& parts, const void* a, const void* b, void* c, void* scratch) const {
    for (const Part& part : parts) {
      const Product& p = part.product;
      if (p.m == 0 || p.n == 0) continue;
      const std::int64_t size = size_of(dtype), c_size = p.wide ? size_of(f32) : size;
      cpu_backend::run_units(p, static_cast<const std::byte*>(a) + part.a * size,
                             static_cast<const std::byte*>(b) + part.b * size,
                             static_cast<std::byte*>(c) + part.c * c_size, 0, cpu_backend::units(p), scratch);
    }
  }
};

/// For each query of a block: true if it sees any key.
using Sees = std::array<bool, block_queries>;

/// Adds the mask to the scores of a block, and sets the ones that queries must not see to -inf.
template <class T>
Sees hide(const Call& c, void* const* slots, T* scores, std::int64_t batch, std::int64_t head, const Block& block) {
  const std::int64_t i = block.first, r = block.count, n = block.keys;
  constexpr T hidden = -std::numeric_limits<T>::infinity();
  Sees sees{};
  if (c.mask >= 0) {
    const auto [of_batch, of_head, of_query, of_key] = c.mask_strides;
    const std::int64_t first = batch * of_batch + head * of_head + i * of_query;
    const void* const mask = slots[c.mask];
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t q = 0; q < r; ++q) {
        T& score = scores[j * block_queries + q];
        const std::int64_t at = first + q * of_query + j * of_key;
        const T added = c.mask_adds                          ? static_cast<const T*>(mask)[at]
                        : static_cast<const bool*>(mask)[at] ? T(0)
                                                             : hidden;
        if (c.mask_adds) score += added;
        else if (added == hidden) score = added;
        sees[static_cast<std::size_t>(q)] |= added != hidden && (!c.causal || j <= i + q);
      }
  }
  if (c.causal)
    for (std::int64_t j = i + 1; j < n; ++j) std::fill_n(scores + j * block_queries, std::min(j - i, r), hidden);
  return sees;
}

/// The first `count` keys and values of one head, row after row. In place they would fall into a few sets of the cache,
/// where a power of two lies between them, and each block would fetch them from far away again.
template <class T>
void gather_keys(const Call& c, void* const* slots, std::int64_t batch, std::int64_t key_head, std::int64_t count,
                 T* keys, T* values) {
  const auto gather = [&](int slot, std::int64_t width, T* target) {
    const T* const rows = static_cast<const T*>(slots[slot]) + c.first_key(batch, key_head, width);
    for (std::int64_t j = 0; j < count; ++j) std::copy_n(rows + j * c.key_row(width), width, target + j * width);
  };
  gather(c.key, c.width, keys);
  gather(c.value, c.value_width, values);
}

struct RowFunctions;

/// The worker for bf16. Scores are f32; weights and gradients by scores are rounded in place.
class NarrowWorker {
 public:
  NarrowWorker(const KernelArguments* arguments, const Call& call);
  static std::int64_t scratch_bytes(const Call& call);
  /// Some queries of one head.
  void forward(std::int64_t unit);
  /// All queries that share one head of keys.
  void backward(std::int64_t unit);

 private:
  const std::uint16_t* pointer(int slot) const { return static_cast<const std::uint16_t*>(slots_[slot]); }
  const std::uint16_t* rows_of_queries(int slot, std::int64_t batch, std::int64_t head, std::int64_t i,
                                       std::int64_t width) const {
    return pointer(slot) + ((batch * c_.queries + i) * c_.heads + head) * width;
  }
  void run(const Parts& parts, const void* a, const void* b, void* c) const { c_.run(parts, a, b, c, products_); }
  void find_weights(std::int64_t batch, std::int64_t head, const Block& block, bool rounds);
  void round_sums(const float* sums, std::int64_t width, std::uint16_t* target) const;

  const Call& c_;
  const RowFunctions& rows_;
  void* const* slots_;
  std::byte* products_;
  float *weights_, *gradients_;    // [keys, block_queries]
  std::uint16_t *keys_, *values_;  // of one head, [keys, width] and [keys, value_width]
  float *by_keys_, *by_values_;    // sums over queries, alike
};

}  // namespace gradus::library::attention
