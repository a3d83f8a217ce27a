/// Random graphs of matrix products, single ones and batches, and of formulas, views, sums and updates of rows around
/// them, over a few dimensions, which may be open.
#pragma once
#include "tests/backend_cpu/random_ops.h"

namespace gradus::testing_loops {

class RandomProducts : RandomOps {
 public:
  /// Of values of this type, and what it may be cast to. Some inputs die.
  RandomProducts(unsigned seed, DType dtype, std::vector<std::int64_t> dimensions)
      : RandomOps(seed), dtype_(dtype), dimensions_(std::move(dimensions)) {}

  /// Formulas of products of inputs, all of one shape: the first two dimensions. Others are those that are summed over.
  Graph make_sums(int products, int formulas) {
    const Shape shape{dimensions_[0], dimensions_[1]};
    const auto input = [&](Shape of) { return RandomOps::add_input({dtype_, std::move(of)}); };
    for (int i = 0; i < 1 + below(3); ++i) pool_.push_back(input(shape));
    for (int i = 0; i < products; ++i) {
      const std::int64_t k = dimensions_[static_cast<std::size_t>(2 + below(dimensions_.size() - 2))];
      int x = input({k, shape[0]}), y = input({k, shape[1]});
      if (below(3) == 0) {
        x = apply("square", "", {x});
        pool_.pop_back();
      }
      apply("matmul", "transpose_a=true; transpose_b=false", {x, y});
      if (below(2)) combine(pool_.back());
    }
    for (int i = 0; i < formulas; ++i) below(4) ? combine(pick()) : add_unary();
    return finished();
  }

  Graph make(int length) {
    for (int i = 0; i < 4 + below(3); ++i) add_input();
    const std::size_t inputs = pool_.size();
    for (int tries = 0; tries < 20 * length && pool_.size() < inputs + static_cast<std::size_t>(length); ++tries)
      add_something();
    return finished();
  }

 private:
  Graph finished() {
    add_outputs();
    for (int input : graph_.inputs)
      if (below(3) > 0) graph_.dying.push_back(input);
    return std::move(graph_);
  }

  std::int64_t dimension() { return dimensions_[static_cast<std::size_t>(below(dimensions_.size()))]; }

  void add_input() {
    Shape shape{dimension(), dimension()};
    if (below(6) == 0) shape.insert(0, 1 + below(3));
    pool_.push_back(RandomOps::add_input({dtype_, shape}));
  }

  void add_something() {
    const int kind = below(20);
    if (kind < 6) add_product();
    else if (kind < 13) add_binary();
    else if (kind < 15) add_unary();
    else if (kind == 15) add_sum();
    else if (kind == 16) add_view();
    else if (kind == 17) add_reshape();
    else if (kind == 18) add_rows();
    else apply("barrier", "", {pick(), pick()});
  }

  /// Mostly with a formula of it, and another value of the same shape.
  void add_product() {
    const auto flag = [&] { return below(2) ? "true" : "false"; };
    int made = -1;
    for (int tries = 0; tries < 12 && made < 0; ++tries) {
      const int a = pick(), b = pick();
      const auto *transpose_a = flag(), *transpose_b = flag();
      made = apply("matmul", text("transpose_a=", transpose_a, "; transpose_b=", transpose_b), {a, b});
    }
    if (made < 0 || below(4) == 0) return;
    if (dtype_ == bf16 && below(2)) made = apply("cast", "to=f32", {made});
    combine(made);
  }

  void combine(int a) {
    constexpr std::string_view names[] = {"add", "subtract", "multiply", "maximum", "add", "subtract", "less"};
    const int b = below(4) ? partner_of(a) : spread_over(a);
    if (below(8) == 0 && choose(a, b)) return;
    if (below(2)) apply(names[below(std::size(names))], "", {a, b});
    else apply(names[below(std::size(names))], "", {b, a});
  }
  void add_binary() { combine(pick()); }

  /// A value for each column or for each row, of the shape of `a`.
  int spread_over(int a) {
    const Spec all = spec(a);
    Shape shape = all.shape;
    if (shape.rank() == 0) return partner_of(a);
    if (below(3) == 0) shape.set(shape.rank() - 1, 1);
    else shape = {shape.back()};
    const int value = RandomOps::add_input({all.dtype, shape});
    const int spread = apply("broadcast", text("shape=", brackets(all.shape)), {value});
    return spread >= 0 ? spread : partner_of(a);
  }

  void add_unary() {
    constexpr std::string_view names[] = {"negative", "relu", "square", "tanh", "abs"};
    const int a = pick();
    if (below(4) == 0) apply("cast", text("to=", below(2) ? f32 : dtype_), {a});
    else apply(names[below(std::size(names))], "", {a});
  }

  void add_sum() {
    const int a = pick(), rank = spec(a).shape.rank();
    if (rank == 0) return;
    const int sum = apply("sum", text("axis=", -1 - below(rank)), {a});
    if (sum >= 0 && below(2)) apply("broadcast", text("shape=", brackets(spec(a).shape)), {sum});
  }

  void add_view() {
    const int a = pick(), rank = spec(a).shape.rank();
    if (rank >= 2 && below(2)) apply("transpose", rank == 2 ? "order=[0,1]" : "order=[0,1,2]", {a});
    else if (rank >= 2 && rank <= 3 && below(2)) apply("transpose", rank == 2 ? "order=[1,0]" : "order=[1,0,2]", {a});
    else if (rank > 0) apply("reverse", "dimensions=1", {a});
  }

  void add_reshape() {
    const int a = pick();
    Shape shape = spec(a).shape;
    if (shape.rank() > 1 && below(2)) {
      shape.set(0, dimension::multiply(shape[0], shape[1]));
      shape.erase(1);
    } else {
      const int b = pick();
      if (spec(b).shape.size() == shape.size()) shape = spec(b).shape;
      else shape.insert(0, 1);
    }
    apply("reshape", text("shape=", brackets(shape)), {a});
  }

  /// Some rows of one value become those of another, sliced off it.
  void add_rows() {
    const int a = pick(), b = pick();
    if (spec(a) != spec(b) || spec(a).shape.rank() < 2 || spec(a).shape[0] < 3) return;
    Shape begin, size = spec(a).shape;
    for (int i = 0; i < size.rank(); ++i) begin.push_back(0);
    size.set(0, 2);
    const int rows = apply("slice", text("begin=", brackets(begin), "; size=", brackets(size)), {b});
    const int places = graph_.add({.spec = {i32, {2}}, .is_constant = true, .constant = 1});
    if (rows >= 0) apply("update_rows", "", {a, places, rows});
  }

  DType dtype_;
  std::vector<std::int64_t> dimensions_;
};

}  // namespace gradus::testing_loops
