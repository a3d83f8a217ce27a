/// Lists of tensors, as functions take and give them.
#pragma once
#include <span>
#include <vector>

namespace gradus {

class Tensor;

/// Tensors in their order, such as the results of a function.
using Tensors = std::vector<Tensor>;
/// Tensors that are only read. Tensors and arrays convert to it; `{&x, 1}` is one tensor.
using In = std::span<const Tensor>;

}  // namespace gradus
