/// Steering inputs, read on the host as vectors: tensors whose values decide how a graph is built, such as shapes,
/// axes, pads.
#pragma once
#include <string_view>
#include <vector>
#include "gradus/graph/tensor.h"

namespace gradus::onnx {

/// Values of an integer or boolean tensor. DataError, opened by `what`, if it is of another type, has more than 2^20
/// elements, or depends on the arguments of a trace.
std::vector<std::int64_t> host_integers(const Tensor& x, std::string_view what);
/// Values of any tensor.
std::vector<double> host_numbers(const Tensor& x, std::string_view what);
/// Values of a tensor of rank 0 or 1 as extents. They are symbolic if they follow from the shape of a symbolic tensor.
Shape host_shape(const Tensor& x, std::string_view what);

}  // namespace gradus::onnx
