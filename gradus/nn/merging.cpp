/// Sums, products and other merges of several tensors.
#include "gradus/nn/merging.h"
#include <algorithm>
#include "gradus/base/rooms.h"
#include "gradus/nn/call_scope.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/normalization.h"
#include "gradus/ops/numeric.h"
#include "gradus/ops/shape.h"

namespace gradus {
namespace {

/// `mask`, of the first dimensions of an input of `rank`, with 1 for those of the result before and after them: of
/// `dimensions` in all, counted from the result's first.
Tensor beside(const Tensor& mask, int rank, int result_rank, int dimensions) {
  Tensor each = mask;
  for (int i = rank; i < result_rank; ++i) each = expand_dims(each, 0);
  while (each.shape().rank() < dimensions) each = expand_dims(each, -1);
  return each;
}

/// `result` with the joint mask of the inputs.
Tensor with_mask(Tensor result, const std::vector<Tensor>& inputs) {
  const int rank = result.shape().rank();
  int dimensions = 0;
  for (const Tensor& input : inputs) {
    const Tensor mask = SequenceMask::of(input);
    if (!mask.defined()) return result;
    dimensions = std::max(dimensions, rank - input.shape().rank() + mask.shape().rank());
  }
  Tensor joint;
  for (const Tensor& input : inputs) {
    const Tensor mask = beside(SequenceMask::of(input), input.shape().rank(), rank, dimensions);
    joint = joint.defined() ? logical_or(joint, mask) : mask;
  }
  Shape places = result.shape();
  while (places.rank() > dimensions) places.erase(-1);
  SequenceMask::set(result, broadcast_to(joint, places));
  return result;
}

Tensor any_of(const std::vector<Tensor>& masks) {
  Tensor any = masks[0];
  for (std::size_t i = 1; i < masks.size(); ++i) any = logical_or(any, masks[i]);
  return any;
}

Tensor folded(std::string_view layer, const std::vector<Tensor>& inputs,
              Tensor (*combine)(const Tensor&, const Tensor&)) {
  require(!inputs.empty(), layer, ": expected at least one tensor");
  Tensor result = inputs[0];
  for (std::size_t i = 1; i < inputs.size(); ++i) result = combine(result, inputs[i]);
  return with_mask(std::move(result), inputs);
}

}  // namespace

namespace merging {

Tensor add(const std::vector<Tensor>& inputs) { return folded("Add", inputs, operator+); }
Tensor subtract(const std::vector<Tensor>& inputs) {
  require(inputs.size() == 2, "Subtract: expected 2 tensors, got ", inputs.size());
  return with_mask(inputs[0] - inputs[1], inputs);
}
Tensor multiply(const std::vector<Tensor>& inputs) { return folded("Multiply", inputs, operator*); }
Tensor average(const std::vector<Tensor>& inputs) {
  return with_mask(folded("Average", inputs, operator+) / static_cast<double>(inputs.size()), inputs);
}
Tensor maximum(const std::vector<Tensor>& inputs) { return folded("Maximum", inputs, gradus::maximum); }
Tensor minimum(const std::vector<Tensor>& inputs) { return folded("Minimum", inputs, gradus::minimum); }

}  // namespace merging

Tensor Concatenate::operator()(const std::vector<Tensor>& inputs) const {
  Tensor result = concat(inputs, axis);
  int dimensions = 0;
  for (const Tensor& input : inputs)
    if (const Tensor mask = SequenceMask::of(input); mask.defined())
      dimensions = std::max(dimensions, mask.shape().rank());
  if (dimensions == 0) return result;
  std::vector<Tensor> masks;
  for (const Tensor& input : inputs) {
    Shape places = input.shape();
    while (places.rank() > dimensions) places.erase(-1);
    const Tensor mask = SequenceMask::of(input);
    masks.push_back(mask.defined() ? spread_mask(mask, places) : fill(places, 1, boolean));
  }
  const int at = result.shape().normalized(axis);
  SequenceMask::set(result, at < dimensions ? concat(masks, at) : any_of(masks));
  return result;
}

Tensor Dot::operator()(const Tensor& a, const Tensor& b) const {
  require(a.shape().rank() >= 2 && b.shape().rank() >= 2 && a.shape()[0] == b.shape()[0], "Dot: a is ", a.spec(),
          ", b is ", b.spec(), "; expected [batch, ...] of one batch");
  const int of_a = a.shape().normalized(axes[0]), of_b = b.shape().normalized(axes[1]);
  require(of_a > 0 && of_b > 0 && a.shape()[of_a] == b.shape()[of_b], "Dot: axes ", axes[0], " of ", a.spec(), " and ",
          axes[1], " of ", b.spec(), " do not agree");
  const Tensor x = moveaxis(normalize ? l2_normalize(a, {of_a}) : a, of_a, -1);
  const Tensor y = moveaxis(normalize ? l2_normalize(b, {of_b}) : b, of_b, -1);
  std::int64_t left = 1, right = 1;
  Shape result{a.shape()[0]};
  for (int i = 1; i + 1 < x.shape().rank(); ++i) {
    left = dimension::multiply(left, x.shape()[i]);
    result.push_back(x.shape()[i]);
  }
  for (int i = 1; i + 1 < y.shape().rank(); ++i) {
    right = dimension::multiply(right, y.shape()[i]);
    result.push_back(y.shape()[i]);
  }
  if (result.rank() == 1) result.push_back(1);
  const std::int64_t n = x.shape().back();
  const Tensor product = matmul(reshape(x, {a.shape()[0], left, n}), transpose(reshape(y, {a.shape()[0], right, n})));
  return reshape(product, result);
}

}  // namespace gradus
