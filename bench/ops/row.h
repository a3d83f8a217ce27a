/// Rows of the sweep over ops and layers: each says how Gradus, PyTorch and JAX are called, and with which inputs.
/// bench/ops.py asks for them one by one and compares times and values.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>
#include "gradus/graph/tensor.h"

namespace gradus::bench {

/// The results of a row, in the order in which the peers' tuples have them.
struct Results {
  std::vector<Tensor> tensors;

  Results(Tensor result) : tensors{std::move(result)} {}
  Results(std::vector<Tensor> results) : tensors(std::move(results)) {}
};

/// The inputs of a row at one size.
struct Case {
  std::vector<Tensor> inputs;
  std::int64_t n = 0;  // the size that stands for n

  const Tensor& operator[](std::size_t i) const { return inputs.at(i); }
};

/// The values of n: with few elements, with inputs and results in the second cache, and with those that no cache holds.
struct Extents {
  std::int64_t small = 0, cached = 0, beyond = 0;
};
inline constexpr Extents elements{1024, 65536, 3'000'000}, images{2, 8, 64}, rows_of_256{4, 256, 16384},
    matrices{16, 128, 1024};

/// A row is differentiated by so many of its first inputs.
inline constexpr int no_gradient = 0, by_all = -1;

struct Row {
  std::string name;  // as users call the op; the word after a space tells rows of one op apart
  /// "f32[n,256]", with bounds behind it where they are not -1 and 1: "f32[n] 0.1 3". Kinds: f32, i32, index (i64 in
  /// PyTorch), u8, bool, sorted (f32, ascending along the last axis) and spd (symmetric and positive definite).
  std::vector<std::string> inputs;
  Extents extents;
  std::function<Results(const Case&)> ours;
  std::string torch, jax;         // expressions in a, b, c ... and n; empty: no counterpart
  int gradients = by_all;         // by_all: by all of f32
  bool draws = false;             // random numbers: values are not compared
  bool shaped_by_values = false;  // no function traces it
};
using Rows = std::vector<Row>;

void add_formulas(Rows& rows);
void add_reductions(Rows& rows);
void add_shapes(Rows& rows);
void add_products(Rows& rows);
void add_signals(Rows& rows);
void add_layers(Rows& rows);

/// All rows, in the order of the report.
Rows all_rows();

/// The input that `text` describes, the same bits as bench/ops_peer.py makes; `place` is its number among the inputs.
Tensor made_input(const std::string& text, std::int64_t n, std::size_t place);

}  // namespace gradus::bench
