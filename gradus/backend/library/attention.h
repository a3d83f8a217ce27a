/// What a call of attention, or of its gradient, is: sizes, slots, and the products of its blocks of queries.
#pragma once
#include <algorithm>
#include <array>
#include <limits>
#include "gradus/backend/cpu/tiles/product.h"
#include "gradus/backend/program.h"
#include "gradus/base/divide.h"

namespace gradus::library::attention {

using cpu_backend::Product;

constexpr std::int64_t block_queries = 64;
constexpr std::int64_t queries_at_once = 512;  // of a unit of the forward direction, which transposes nothing twice

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
  /// The last key that the first query of a block sees, of n keys.
  std::int64_t diagonal(std::int64_t first, std::int64_t n) const { return causal ? first : n; }
  std::int64_t chunks() const { return divide_up(queries, queries_at_once); }
  std::int64_t group() const { return heads / key_heads; }
  std::int64_t elements_of_example() const {
    return queries * heads * width + keys * key_heads * (width + value_width);
  }
  bool is_forward() const { return cotangent < 0; }
  bool is_narrow() const { return dtype == bf16; }

  // Products of a block of r queries and n keys. Rows of keys and values are a head apart.

  /// Queries are columns; of bf16 they are read as they are, and scores are f32.
  Product scores(std::int64_t n, std::int64_t r, std::int64_t depth) const {
    return {.dtype = dtype,
            .m = n,
            .n = r,
            .k = depth,
            .a_row = key_heads * depth,
            .b_row = is_narrow() ? 1 : block_queries,
            .b_column = is_narrow() ? heads * depth : 1,
            .c_row = block_queries,
            .wide = is_narrow()};
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
  /// [n, r] [r, columns], added to what is there: of bf16 to sums in f32, row by row, else to the result.
  Product of_keys(std::int64_t n, std::int64_t r, std::int64_t columns, std::int64_t row) const {
    return {.dtype = dtype,
            .m = n,
            .n = columns,
            .k = r,
            .a_row = block_queries,
            .b_row = row,
            .b_column = 1,
            .c_row = is_narrow() ? columns : key_heads * columns,
            .resume = true,
            .wide = is_narrow()};
  }
};

/// Which of a block's queries see any key.
using Sees = std::array<bool, block_queries>;

/// Adds the mask to the scores [n, block_queries] of queries i ... i + r - 1, and hides what they must not see: -inf.
template <class T>
Sees hide(const Call& c, void* const* slots, T* scores, std::int64_t batch, std::int64_t head, std::int64_t i,
          std::int64_t r, std::int64_t n) {
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

struct RowFunctions;

/// What bf16 is computed by. Scores are f32; weights and gradients by scores are rounded where they stand.
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
  const std::uint16_t* rows_of_keys(int slot, std::int64_t batch, std::int64_t key_head, std::int64_t width) const {
    return pointer(slot) + (batch * c_.keys * c_.key_heads + key_head) * width;
  }
  void run(const Product& p, const void* a, const void* b, void* c) const {
    cpu_backend::run_units(p, a, b, c, 0, p.m * p.n == 0 ? 0 : cpu_backend::units(p), products_);
  }
  void find_weights(std::int64_t batch, std::int64_t head, std::int64_t i, std::int64_t r, std::int64_t n, bool rounds);
  void round_sums(const float* sums, std::int64_t width, std::uint16_t* target) const;

  const Call& c_;
  const RowFunctions& rows_;
  void* const* slots_;
  std::byte* products_;
  float *weights_, *gradients_;  // [keys, block_queries]
  float *by_keys_, *by_values_;  // sums over queries, [keys, width] and [keys, value_width]
};

}  // namespace gradus::library::attention
