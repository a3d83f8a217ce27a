/// vmap of the gradient over examples, and results computed from factors without multiplying them out.
#include "gradus/gradients/per_example.h"
#include "gradus/autodiff/vmap.h"
#include "gradus/base/ranges.h"
#include "gradus/gradients/chunks.h"
#include "gradus/gradients/micro_batches.h"
#include "gradus/graph/context.h"
#include "gradus/graph/mask.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/control_ops.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/matmul_ops.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/size_choice.h"
#include "gradus/ops/widened.h"

namespace gradus {
namespace {

using Part = PerExampleGradients::Part;

/// [n, 1 ...]: a number for each example beside a tensor of this rank.
Tensor beside(const Tensor& per_example, int rank) {
  Shape shape{per_example.shape()[0]};
  while (shape.rank() < rank) shape.push_back(1);
  return reshape(per_example, shape);
}

std::vector<int> all_but_first(int rank) {
  std::vector<int> axes;
  for (int i = 1; i < rank; ++i) axes.push_back(i);
  return axes;
}

Tensor sum_per_example(const Tensor& x) {
  return x.shape().rank() == 1 ? x : reduce_sum(x, {.axis = all_but_first(x.shape().rank())});
}

/// The factors of a gradient that is a product of one matrix for each example with another.
Part part_of(const Tensor& gradient) {
  const Node& node = *gradient.node();
  const Matmul* product = node.op.as<Matmul>();
  const auto is_batch = [](const Ref<Node>& operand) { return operand->spec.shape.rank() == 3; };
  if (!product || !is_batch(node.inputs[0]) || !is_batch(node.inputs[1])) return {.whole = gradient};
  const Tensor a(node.inputs[0]), b(node.inputs[1]);
  return {.left = product->transpose_a ? transpose(a) : a, .right = product->transpose_b ? transpose(b) : b};
}

/// |A B|^2 = sum of (A'A) * (B B'), elementwise: small matrices where the inner dimension k is small.
Tensor squared_norms(const Part& part) {
  if (part.whole.defined()) return sum_per_example(square(widened(part.whole)));
  const Tensor a = widened(part.left), b = widened(part.right);
  const std::int64_t rows = a.shape()[1], k = a.shape()[2], columns = b.shape()[2];
  if (k == 1) return sum_per_example(square(a)) * sum_per_example(square(b));
  const bool known = rows >= 0 && k >= 0 && columns >= 0;
  if (SizeChoice::choose(known && k * (rows + columns) > rows * columns)) return sum_per_example(square(matmul(a, b)));
  return sum_per_example(matmul(transpose(a), a) * matmul(b, transpose(b)));
}

}  // namespace

PerExampleGradients::PerExampleGradients(Variables variables, std::vector<Part> parts, std::int64_t examples)
    : variables_(std::move(variables)), parts_(std::move(parts)), examples_(examples) {}

/// Times the factor of each example, widened: a factor of narrow elements may be too small for their type.
Tensor PerExampleGradients::scaled(const Tensor& x) const {
  if (!scale_.defined()) return x;
  const Tensor wide = widened(x);
  return wide * beside(cast(scale_, wide.dtype()), x.shape().rank());
}

Tensor PerExampleGradients::whole(std::size_t i) const {
  const Part& part = parts_[i];
  const Tensor unscaled = part.whole.defined() ? part.whole : matmul(part.left, part.right);
  return scale_.defined() ? cast(scaled(unscaled), unscaled.dtype()) : unscaled;
}

Tensor PerExampleGradients::operator[](const Variable& variable) const {
  const std::ptrdiff_t i = variables_.find(*variable.cell());
  require(i >= 0, "per-example gradients: there is none of variable ", variable.name());
  return whole(static_cast<std::size_t>(i));
}

Tensor PerExampleGradients::norms() const {
  Tensor total;
  for (const Part& part : parts_) {
    const Tensor squares = squared_norms(part);
    total = total.defined() ? total + cast(squares, total.dtype()) : squares;
  }
  const Tensor norms = sqrt(total);
  return scale_.defined() ? norms * cast(scale_, norms.dtype()) : norms;
}

PerExampleGradients PerExampleGradients::clip_by_norm(double norm) const {
  check_number("clip_by_norm", "the norm", Allowed::positive("norm"), norm);
  const Tensor own = norms();
  const Tensor factor = norm / maximum(own, norm) + (own - own);  // NaN of an example whose norm is not finite
  PerExampleGradients clipped = *this;
  clipped.scale_ = scale_.defined() ? scale_ * factor : factor;
  return clipped;
}

/// The sum of factors is one product, as tall as all examples together.
Tensor PerExampleGradients::sum_of(const Part& part) const {
  if (part.whole.defined()) return reduce_sum(scaled(part.whole), {.axis = {0}});
  const std::int64_t rows = part.left.shape()[1], columns = part.right.shape()[2];
  const std::int64_t inner = dimension::multiply(part.left.shape()[0], part.left.shape()[2]);
  const Tensor left = reshape(transpose(scaled(part.left)), {inner, rows});
  return matmul(transpose(left), cast(reshape(part.right, {inner, columns}), left.dtype()));
}

Gradients PerExampleGradients::sum() const {
  std::vector<Tensor> means;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Tensor total = sum_of(parts_[i]);
    means.push_back(cast(total / extent(examples_, total.dtype()), variables_[i].dtype()));
  }
  const DType dtype = means.empty() ? f32 : means[0].dtype();
  return {variables_, std::move(means), extent(examples_, dtype)};
}

namespace {

/// One example as a batch, with its mask.
Tensor as_batch(const Tensor& example) {
  const Tensor batch = expand_dims(example, 0);
  if (const Tensor mask = SequenceMask::of(example); mask.defined()) SequenceMask::set(batch, expand_dims(mask, 0));
  else if (SequenceMask::is_lost(example)) SequenceMask::lose(batch);
  return batch;
}

}  // namespace

PerExampleGradients detail::per_example_gradients(const std::function<Tensor(In)>& losses, const Variables& sources,
                                                  In batch, const JacobianOptions& options) {
  constexpr std::string_view op = "per_example_gradients";
  const std::int64_t examples = rows_of_batch(op, batch);
  require(examples != 0, op, ": the batch has no examples");
  require(sources.size() > 0, op, ": there are no sources");
  const auto of_one = [&](In example) {
    Tensors rows;
    for (const Tensor& x : example) rows.push_back(as_batch(x));
    GradientTape tape;
    const Tensor loss = losses(rows);
    require(loss.spec().shape == Shape{1}, op, ": of a batch of one example the losses are ", loss.spec(),
            ", expected [1]: one number for each example");
    const Gradients found = tape.gradient(reduce_sum(loss), sources);
    Tensors gradients;
    for (std::size_t i = 0; i < found.size(); ++i) gradients.push_back(found[i]);
    return gradients;
  };
  std::vector<bool> in_factors(sources.size());
  const auto of_examples = [&](In, In some) {
    const RecordingScope keep;  // the products are looked at
    Tensors results;
    const Tensors gradients = vmap(of_one, some, some[0].shape()[0]);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const Part part = part_of(gradients[i]);
      in_factors[i] = part.left.defined();
      for (const Tensor& t : {part.whole, part.left, part.right})
        if (t.defined()) results.push_back(t);
    }
    return results;
  };
  const auto work = [&](std::int64_t rows) {
    return rows == examples ? of_examples({}, batch) : scan_rows(op, of_examples, {}, batch, rows);
  };
  const Tensors found = within_budget(op, options.max_bytes, new_sequence(), examples, work);
  std::vector<Part> parts;
  for (std::size_t i = 0, k = 0; i < sources.size(); ++i) {
    if (in_factors[i]) parts.push_back({.left = found[k], .right = found[k + 1]});
    else parts.push_back({.whole = found[k]});
    k += in_factors[i] ? 2u : 1u;
  }
  return {sources, std::move(parts), examples};
}

}  // namespace gradus
