/// Values of integer tensors that follow from shapes, while a function is traced: Shape -> Gather -> Concat and the
/// like, evaluated on dimensions that may be symbolic.
#pragma once
#include <optional>
#include <vector>
#include "gradus/graph/tensor.h"

namespace gradus::onnx {

/// A number, or a symbolic dimension.
struct Extent {
  std::int64_t value = 0;
  bool symbolic = false;
};

/// The elements of `x` in row-major order; empty if they depend on more than constants and shapes.
std::optional<std::vector<Extent>> symbolic_values(const Tensor& x);

}  // namespace gradus::onnx
