/// The operators as functions, under TensorFlow's names.
#include "gradus/ops/special.h"

namespace gradus {

Tensor add(const NumberOrTensor& left, const NumberOrTensor& right) {
  const auto [a, b] = side_by_side("add", left, right);
  return a + b;
}
Tensor subtract(const NumberOrTensor& left, const NumberOrTensor& right) {
  const auto [a, b] = side_by_side("subtract", left, right);
  return a - b;
}
Tensor multiply(const NumberOrTensor& left, const NumberOrTensor& right) {
  const auto [a, b] = side_by_side("multiply", left, right);
  return a * b;
}
Tensor divide(const NumberOrTensor& left, const NumberOrTensor& right) {
  const auto [a, b] = side_by_side("divide", left, right);
  return a / b;
}
Tensor less(const NumberOrTensor& left, const NumberOrTensor& right) {
  const auto [a, b] = side_by_side("less", left, right);
  return a < b;
}
Tensor less_equal(const NumberOrTensor& left, const NumberOrTensor& right) {
  const auto [a, b] = side_by_side("less_equal", left, right);
  return a <= b;
}
Tensor greater(const NumberOrTensor& left, const NumberOrTensor& right) {
  const auto [a, b] = side_by_side("greater", left, right);
  return a > b;
}
Tensor greater_equal(const NumberOrTensor& left, const NumberOrTensor& right) {
  const auto [a, b] = side_by_side("greater_equal", left, right);
  return a >= b;
}
Tensor floordiv(const NumberOrTensor& left, const NumberOrTensor& right) {
  const auto [a, b] = side_by_side("floordiv", left, right);
  return floor_divide(a, b);
}
Tensor floormod(const NumberOrTensor& left, const NumberOrTensor& right) {
  const auto [a, b] = side_by_side("floormod", left, right);
  return mod(a, b);
}

}  // namespace gradus
