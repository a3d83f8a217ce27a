/// Op rows: one row of data per op, from which rows_test.cpp generates every check. A family registers its rows in a
/// file rows_<family>.cpp; an op that no row covers fails the suite.
#pragma once
#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>
#include "gradus/graph/tensor.h"

namespace gradus::rows {

/// A dense array of numbers as references see it, row-major. Booleans are 0 and 1.
struct Array {
  Shape shape;
  std::vector<double> values;
};
using Arrays = std::span<const Array>;

/// Where the random elements of an operand lie. Integer dtypes get integers from the same range.
struct Operand {
  double low = -2, high = 2;
  double gap = 0;                   // no element closer to 0: away from a pole or kink
  std::optional<DType> dtype = {};  // unless it is the row's: indices, conditions
  bool has_gradient = true;
};

/// `x` as the nearest number of `t`, if that is a floating type.
inline double rounded_to(DType t, double x) {
  return with_type(t, [x]<class T>(T) {
    if constexpr (FloatingElement<T>) return static_cast<double>(static_cast<T>(x));
    else return x;
  });
}

/// A random element of `operand` in dtype `t`.
template <class Random> double draw_element(const Operand& operand, DType t, Random& random) {
  std::uniform_real_distribution<double> any(operand.low, operand.high);
  for (;;) {
    double x = any(random);
    if (t == boolean) return x > (operand.low + operand.high) / 2;
    if (is_integer(t)) x = std::nearbyint(x);
    if (is_integer(t) && !is_signed(t)) x = std::abs(x);
    if (t == u8) x = std::min(x, 255.0);
    if (t == i8) x = std::clamp(x, -128.0, 127.0);
    x = rounded_to(t, x);
    if (std::abs(x) >= operand.gap) return x;
  }
}

/// Gradients at one point of an elementwise op: ties, kinks and poles. One number an operand.
struct Slope {
  std::vector<double> at;
  std::vector<double> gradient;  // for an operand without one: anything
  double cotangent = 1;
};

/// A call that must throw InvalidArgument or OutOfRange with a message that contains `expected`.
struct Mistake {
  std::function<void()> call;
  std::string expected;
};

struct Row {
  std::string name;
  std::vector<std::string> covers;  // registered names; those of primitives must stand in the graph that apply makes
  std::function<Tensor(In)> apply;
  std::vector<Operand> operands;
  std::vector<std::vector<Shape>> shapes;  // a case each: the shapes of the operands
  std::vector<DType> dtypes = {f32, f64};
  /// Rows of f32 and f64 take f16 and bf16 too, rows of i32 and i64 all integers: tested on fewer cases.
  bool takes_narrow = true, takes_other_integers = true;
  std::vector<DType> further_dtypes() const;

  /// An independent definition of the values, in double. Empty: the oracle, which runs the op's own formula in double,
  /// is enough, since the formula consists of exact instructions.
  std::function<Array(Arrays)> reference = {};
  double tolerance = 4;  // |got - want| <= tolerance * epsilon * max(|want|, magnitude)
  double magnitude = 0;
  bool differentiable = true;  // else every gradient must be absent
  bool smooth = true;          // else differences tell nothing: what rounds to a coarser type
  double slack = 1;            // of differences: multiplies the tolerance of gradients
  double result_gap = 0;       // of differences: an element of the result closer to 0 is at a kink
  /// Of differences: false for data at which higher gradients are not finite, or steeper than a step; empty: nowhere.
  std::function<bool(Arrays)> is_smooth_at = {};

  bool elementwise = false;                        // the rest is for these
  std::vector<std::vector<double>> specials = {};  // operand tuples; empty: all combinations of the usual ones
  bool skip_specials = false;
  std::vector<Slope> slopes = {};
  std::optional<std::vector<DType>> refuses = {};  // dtypes of operands that are a mistake; else all but `dtypes`

  std::string called = {};  // how errors call the op; else by the row's name
  std::vector<Mistake> mistakes = {};
};

/// What GoogleTest prints of a row.
inline void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

/// A row of an elementwise op: shapes of every length, broadcasting, zero-size and scalar, and a reference by element.
using Scalars = std::span<const double>;
Row elementwise(std::string name, std::function<Tensor(In)> apply, std::vector<Operand> operands,
                std::function<double(Scalars)> reference);

/// The values of a reference that works element by element on operands broadcast to one shape.
Array by_element(Arrays in, const std::function<double(Scalars)>& f);
/// The offset, in an array of `shape`, of the element that stands at `index` of an array that it broadcasts to.
std::int64_t broadcast_offset(const Shape& shape, std::span<const std::int64_t> index);
/// Calls visit(index, flat) for every element of `shape`.
void for_each_index(const Shape& shape, const std::function<void(std::span<const std::int64_t>, std::int64_t)>& visit);

/// The rows of all families.
std::vector<Row>& all_rows();
/// Registers a family: `const bool registered = add_rows(rows_of_family());`
bool add_rows(std::vector<Row> rows);

Tensor to_tensor(const Array& array, DType dtype);
Array to_array(const Tensor& x);

}  // namespace gradus::rows
