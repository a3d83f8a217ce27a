/// Random graphs of formulas, reductions, views, aliases, indexes and constants over a few related shapes.
#pragma once
#include "tests/backend_cpu/random_ops.h"
#include "gradus/base/rooms.h"

namespace gradus::testing_loops {

class RandomGraph : RandomOps {
 public:
  /// Over shapes made of `base`: the whole, with single dimensions, merged, transposed, cut.
  /// `all_types`: also those that the float64 oracle does not follow closely.
  RandomGraph(unsigned seed, Shape base, bool all_types = true)
      : RandomOps(seed), base_(std::move(base)), all_types_(all_types) {}

  Graph make(int length) {
    const int inputs = 1 + below(3);
    for (int i = 0; i < inputs; ++i) add_input();
    while (static_cast<int>(pool_.size()) < inputs + length) add_something();
    add_outputs();
    return std::move(graph_);
  }

 private:
  DType any_dtype() {
    if (below(2)) return f32;
    for (;;)
      if (const DType t = all_dtypes[below(std::size(all_dtypes))]; all_types_ || (!is_narrow(t) && t != u64)) return t;
  }

  void add_input() {
    Shape shape = base_;
    for (int i = 0; i < shape.rank(); ++i)
      if (below(5) == 0) shape.set(i, 1);
    pool_.push_back(RandomOps::add_input({any_dtype(), shape}));
  }

  void add_something() {
    switch (below(12)) {
      case 0:
      case 1: add_unary(); return;
      case 2:
      case 3:
      case 4: add_binary(); return;
      case 5:
      case 6: add_reduction(); return;
      case 7:
      case 8: add_view(); return;
      case 9: add_reshape(); return;
      case 10: add_cast(); return;
      default: add_leaf(); return;
    }
  }

  void add_cast() {
    const int a = pick();
    apply("cast", text("to=", any_dtype()), {a});
  }

  void add_unary() {
    constexpr std::string_view names[] = {"negative", "abs",   "square",      "relu", "exp",   "tanh",
                                          "sqrt",     "round", "logical_not", "sign", "floor", "is_nan"};
    const int a = pick();
    apply(names[below(std::size(names))], "", {a});
  }

  void add_binary() {
    constexpr std::string_view names[] = {
        "add",        "subtract",    "multiply",   "divide",      "maximum", "minimum",      "less", "equal",
        "less_equal", "logical_and", "logical_or", "logical_xor", "mod",     "floor_divide", "add",  "multiply"};
    const int a = pick();
    const int b = partner_of(a);
    if (below(6) == 0 && choose(a, b)) return;
    apply(names[below(std::size(names))], "", {a, b});
  }

  void add_reduction() {
    constexpr std::string_view names[] = {"sum", "max", "min", "sum", "any", "all", "prod"};
    const int a = pick(), rank = spec(a).shape.rank();
    if (rank == 0) return;
    const int axis = below(2) ? -1 : -1 - below(rank);
    const int r = apply(names[below(std::size(names))], text("axis=", axis), {a});
    if (r >= 0 && below(2)) broadcast_to(r, spec(a).shape);
  }

  void broadcast_to(int value, const Shape& shape) { apply("broadcast", text("shape=", brackets(shape)), {value}); }

  void add_view() {
    const int a = pick();
    const Shape shape = spec(a).shape;
    const int rank = shape.rank();
    switch (below(4)) {
      case 0: {
        Shape wide = base_;
        if (below(3) == 0) wide = spec(pick()).shape;
        broadcast_to(a, wide);
        return;
      }
      case 1: {
        Shape order;
        std::vector<int> numbers;
        for (int i = 0; i < rank; ++i) numbers.push_back(i);
        std::shuffle(numbers.begin(), numbers.end(), random_);
        for (int i : numbers) order.push_back(i);
        apply("transpose", text("order=", brackets(order)), {a});
        return;
      }
      case 2: {
        Shape begin, size;
        for (std::int64_t d : shape) {
          const std::int64_t first = d > 1 && below(2) ? below(static_cast<int>(std::min<std::int64_t>(d, 5))) : 0;
          begin.push_back(first);
          size.push_back(d > 0 ? d - first - (d - first > 1 && below(2) ? 1 : 0) : d);
        }
        apply("slice", text("begin=", brackets(begin), "; size=", brackets(size)), {a});
        return;
      }
      default: apply("reverse", text("dimensions=", rank ? 1 + below((1 << rank) - 1) : 0), {a});
    }
  }

  void add_reshape() {
    const int a = pick();
    Shape shape = spec(a).shape;
    const int rank = shape.rank();
    if (rank > 1 && below(2)) {
      const int axis = below(rank - 1);
      shape.set(axis, dimension::multiply(shape[axis], shape[axis + 1]));
      shape.erase(axis + 1);
    } else if (rank < 5 && below(2)) {
      shape.insert(below(rank + 1), 1);
    } else if (spec(a).shape.size() == base_.size()) {
      shape = base_;
    }
    apply("reshape", text("shape=", brackets(shape)), {a});
  }

  void add_leaf() {
    if (below(2)) {
      apply("iota", text("shape=", brackets(base_)), {});
      return;
    }
    const DType t = any_dtype();
    pool_.push_back(graph_.add(
        {.spec = {t, base_}, .is_constant = true, .constant = scalar::Literal(below(2) ? 3 : 1).bits_as(t)}));
  }

  Shape base_;
  bool all_types_;
};

}  // namespace gradus::testing_loops
