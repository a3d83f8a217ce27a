/// ONNX's elementwise ops.
#include "gradus/onnx/row.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/special.h"

namespace gradus::onnx {
namespace {

/// One after the other over any number of inputs.
template <class F> Tensor folded(const Call& c, const F& f) {
  Tensor result = c[0];
  for (int i = 1; i < c.inputs(); ++i) result = f(result, c[i]);
  return result;
}

Tensor sum(const Call& c) {
  return folded(c, [](auto& a, auto& b) { return a + b; });
}

/// The second operand. Before 7 it was stretched only if `broadcast` said so, and `axis` told where it begins.
Tensor second(const Call& c) {
  const Tensor& b = c[1];
  if (c.version() >= 7 || !c.has_attribute("axis")) return b;
  const int rank = c[0].shape().rank(), axis = c.axis(c.integer("axis"), rank);
  c.require(axis + b.shape().rank() <= rank, "the second operand, ", b.spec(), ", does not fit at axis ", axis, " of ",
            c[0].spec());
  Shape shape = b.shape();
  for (int i = axis + b.shape().rank(); i < rank; ++i) shape.push_back(1);
  return reshape(b, shape);
}

/// Without bounds, one of them, or both: attributes before 11, inputs since.
Tensor clip(const Call& c) {
  Tensor x = c[0];
  if (c.version() < 11) {
    if (c.has_attribute("min")) x = maximum(x, c.number("min"));
    return c.has_attribute("max") ? minimum(x, c.number("max")) : x;
  }
  if (c.has(1)) x = maximum(x, c[1]);
  return c.has(2) ? minimum(x, c[2]) : x;
}

/// The exponent may be of another dtype; the result is of that of the base.
Tensor power(const Call& c) {
  const DType t = c[0].dtype();
  if (is_floating(t)) return pow(c[0], cast(second(c), t));
  if (is_integer(c[1].dtype())) return integer_pow(c[0], cast(c[1], t));
  return cast(pow(cast(c[0], f64), cast(c[1], f64)), t);
}

Tensor is_infinite(const Call& c) {
  return is_inf(
      c[0], {.detect_negative = c.flag("detect_negative", true), .detect_positive = c.flag("detect_positive", true)});
}

const Table elementwise_table{
    {"Abs", {6, 13}, [](const Call& c) { return abs(c[0]); }},
    {"Add", {1, 6, 7, 13, 14}, [](const Call& c) { return c[0] + second(c); }},
    {"And", {1, 7}, [](const Call& c) { return logical_and(c[0], second(c)); }},
    {"Ceil", {6, 13}, [](const Call& c) { return ceil(c[0]); }},
    {"Clip", {6, 11, 12, 13}, clip},
    {"Cos", {7, 22}, [](const Call& c) { return cos(c[0]); }},
    {"Div", {1, 6, 7, 13, 14}, [](const Call& c) { return c[0] / second(c); }},
    {"Equal", {1, 7, 11, 13, 19}, [](const Call& c) { return equal(c[0], second(c)); }},
    {"Erf", {9, 13}, [](const Call& c) { return erf(c[0]); }},
    {"Exp", {6, 13}, [](const Call& c) { return exp(c[0]); }},
    {"Floor", {6, 13}, [](const Call& c) { return floor(c[0]); }},
    {"Greater", {1, 7, 9, 13}, [](const Call& c) { return c[0] > second(c); }},
    {"GreaterOrEqual", {12, 16}, [](const Call& c) { return c[0] >= c[1]; }},
    {"Identity", {1, 13, 14, 16, 19, 21, 23, 24, 25}, [](const Call& c) { return c[0]; }},
    {"IsInf", {10, 20}, is_infinite},
    {"IsNaN", {9, 13, 20}, [](const Call& c) { return is_nan(c[0]); }},
    {"Less", {1, 7, 9, 13}, [](const Call& c) { return c[0] < second(c); }},
    {"LessOrEqual", {12, 16}, [](const Call& c) { return c[0] <= c[1]; }},
    {"Log", {6, 13}, [](const Call& c) { return log(c[0]); }},
    {"Max", {6, 8, 12, 13}, [](const Call& c) { return folded(c, [](auto& a, auto& b) { return maximum(a, b); }); }},
    {"Mean", {6, 8, 13}, rounded_once([](const Call& c) { return sum(c) / c.inputs(); })},
    {"Min", {6, 8, 12, 13}, [](const Call& c) { return folded(c, [](auto& a, auto& b) { return minimum(a, b); }); }},
    {"Mod", {10, 13, 28}, [](const Call& c) { return c.flag("fmod") ? truncatemod(c[0], c[1]) : mod(c[0], c[1]); }},
    {"Mul", {1, 6, 7, 13, 14}, [](const Call& c) { return c[0] * second(c); }},
    {"Neg", {6, 13}, [](const Call& c) { return -c[0]; }},
    {"Not", {1}, [](const Call& c) { return logical_not(c[0]); }},
    {"Or", {1, 7}, [](const Call& c) { return logical_or(c[0], second(c)); }},
    {"Pow", {1, 7, 12, 13, 15}, power},
    {"Reciprocal", {6, 13}, [](const Call& c) { return 1 / c[0]; }},
    {"Relu", {6, 13, 14}, [](const Call& c) { return relu(c[0]); }},
    {"Round", {11, 22}, [](const Call& c) { return round(c[0]); }},
    {"Sigmoid", {6, 13}, [](const Call& c) { return sigmoid(c[0]); }},
    {"Sign", {9, 13}, [](const Call& c) { return sign(c[0]); }},
    {"Sin", {7, 22}, [](const Call& c) { return sin(c[0]); }},
    {"Softplus", {1, 22}, [](const Call& c) { return softplus(c[0]); }},
    {"Sqrt", {6, 13}, [](const Call& c) { return sqrt(c[0]); }},
    {"Sub", {1, 6, 7, 13, 14}, [](const Call& c) { return c[0] - second(c); }},
    {"Sum", {6, 8, 13}, rounded_once(sum)},
    {"Tan", {7, 22}, [](const Call& c) { return tan(c[0]); }},
    {"Tanh", {6, 13}, [](const Call& c) { return tanh(c[0]); }},
    {"Where", {9, 16}, [](const Call& c) { return where(c[0], c[1], c[2]); }},
    {"Xor", {1, 7}, [](const Call& c) { return logical_xor(c[0], second(c)); }},
};

}  // namespace
}  // namespace gradus::onnx
