/// The fixture of tests that are generated from op rows: random cases of a row.
#pragma once
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include "gradus/autodiff/vjp.h"
#include "gradus/graph/context.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/elementwise.h"
#include "tests/ops/rows.h"

namespace gradus::rows {

/// "(3, 5) (5) "
inline std::string listed(const std::vector<Shape>& shapes) {
  std::string out;
  for (const Shape& shape : shapes) out += text(shape, ' ');
  return out;
}

inline double epsilon_of(DType t) {
  return with_type(t, []<class T>(T) {
    if constexpr (FloatingElement<T>) return static_cast<double>(std::numeric_limits<T>::epsilon());
    else return std::numeric_limits<double>::epsilon();
  });
}

/// One application of a row's op: shapes and dtype of its operands, and their values.
struct Case {
  std::vector<Shape> shapes;
  DType dtype;
  std::vector<Array> arrays;
  Tensors inputs;
};

class RowTest : public ::testing::TestWithParam<Row> {
 protected:
  const Row& row() const { return GetParam(); }

  Array draw(const Operand& operand, const Shape& shape, DType t) {
    Array array{shape, {}};
    for (std::int64_t i = 0; i < shape.size(); ++i) array.values.push_back(draw_element(operand, t, random_));
    return array;
  }
  DType dtype_of(std::size_t operand, DType t) const { return row().operands[operand].dtype.value_or(t); }

  /// A case of several elements, and the last.
  std::vector<std::vector<Shape>> few_shapes() const {
    std::vector<std::vector<Shape>> few{row().shapes.back()};
    const auto some = std::ranges::find_if(row().shapes, [](const std::vector<Shape>& shapes) {
      return std::ranges::any_of(shapes, [](const Shape& shape) { return shape.size() > 4 && shape.size() <= 64; });
    });
    if (some != row().shapes.end() && *some != row().shapes.back()) few.push_back(*some);
    return few;
  }
  Case make_case(const std::vector<Shape>& shapes, DType t) {
    Case made{shapes, t, {}, {}};
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      made.arrays.push_back(draw(row().operands[i], shapes[i], dtype_of(i, t)));
      made.inputs.push_back(to_tensor(made.arrays.back(), dtype_of(i, t)));
    }
    return made;
  }
  /// Random numbers, such as cotangents and directions.
  Tensor noise(const Tensor& like) { return to_tensor(draw({-1, 1}, like.shape(), like.dtype()), like.dtype()); }

  bool has_gradient(std::size_t operand, DType t) const {
    return row().differentiable && row().operands[operand].has_gradient && is_floating(dtype_of(operand, t));
  }
  /// The operands that have a gradient.
  Tensors sources(const Tensors& inputs, DType t) const {
    Tensors out;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (has_gradient(i, t)) out.push_back(inputs[i]);
    return out;
  }
  /// The op, and its gradients by the operands that have one; the cotangent is made of the index.
  Tensors results(In in, DType t) const {
    const RecordingScope keep;
    const Tensor y = row().apply(in);
    Tensors all{y};
    if (!row().differentiable || !is_floating(y.dtype())) return all;
    const Tensor seed = cos(iota(y.shape(), y.dtype()));
    const Tensors operands(in.begin(), in.end());
    for (const Tensor& gradient : vjp(y, sources(operands, t), seed))
      if (gradient.defined()) all.push_back(gradient);
    return all;
  }
  /// Whether anything can be differentiated.
  bool has_gradients() const {
    return row().differentiable && std::ranges::any_of(row().dtypes, [](DType t) { return is_floating(t); });
  }
  bool worth_differences(const std::vector<Shape>& shapes) const {
    std::int64_t most = 0, least = 1;
    for (const Shape& shape : shapes) most = std::max(most, shape.size()), least = std::min(least, shape.size());
    return least > 0 && most <= 64;
  }

  std::mt19937_64 random_{std::hash<std::string>()(GetParam().name)};
};

/// What a row's test is called.
inline std::string test_name(const ::testing::TestParamInfo<Row>& info) {
  std::string name = info.param.name;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

}  // namespace gradus::rows
