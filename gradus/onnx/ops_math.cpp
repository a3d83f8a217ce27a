/// ONNX's special functions, activations, bitwise ops, and losses.
#include "gradus/onnx/row.h"
#include "gradus/ops/activations.h"
#include "gradus/ops/bits.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/cumulative.h"
#include "gradus/ops/gather_ops.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/softmax.h"
#include "gradus/ops/special.h"

namespace gradus::onnx {
namespace {

Tensor shift(const Call& c) {
  const std::string direction = c.word("direction", "");
  c.require(direction == "LEFT" || direction == "RIGHT", "direction must be LEFT or RIGHT, got `", direction, "`");
  return direction == "LEFT" ? left_shift(c[0], c[1]) : right_shift(c[0], c[1]);
}

Tensor cumulative_product(const Call& c) {
  const int axis = c.axis(c.integer_of(1), c[0].shape().rank());
  return cumprod(c[0], {.axis = axis, .exclusive = c.flag("exclusive"), .reverse = c.flag("reverse")});
}

/// gamma x, below 0 gamma alpha (exp(x) - 1); the defaults are numbers of f32.
Tensor scaled_elu(const Call& c) {
  const Tensor& x = c[0];
  const double alpha = c.number("alpha", 1.67326319217681884765625),
               gamma = c.number("gamma", 1.05070102214813232421875);
  return where(x >= zeros_like(x), x, expm1(minimum(x, 0)) * alpha) * gamma;
}

/// Before 7 a slope of several numbers has one for each channel.
Tensor parametric_relu(const Call& c) {
  const Tensor& x = c[0];
  Tensor slope = c[1];
  const int rank = x.shape().rank();
  if (c.version() < 7 && slope.shape().rank() == 1 && slope.shape()[0] != 1 && rank > 1) {
    Shape channels{slope.shape()[0]};
    while (channels.rank() < rank - 1) channels.push_back(1);
    slope = reshape(slope, channels);
  }
  if (is_floating(x.dtype())) return prelu(x, slope);
  return where(x > 0, x, x * slope);
}

Tensor approximate_gelu(const Call& c) {
  const std::string approximate = c.word("approximate", "none");
  c.require(approximate == "none" || approximate == "tanh", "approximate must be none or tanh, got `", approximate,
            "`");
  return gelu(c[0], {.approximate = approximate == "tanh"});
}

Tensor shrunk(const Call& c) {
  const Tensor& x = c[0];
  const Tensor y = is_floating(x.dtype()) ? x : cast(x, f64);
  return cast(shrink(y, {.bias = c.number("bias", 0), .lambd = c.number("lambd", 0.5)}), x.dtype());
}

/// Before 13 everything from the axis on is one row.
Tensor one_hot_of_largest(const Call& c) {
  const Tensor& x = c[0];
  const int rank = x.shape().rank();
  if (c.version() >= 13) return hardmax(x, c.axis(c.integer("axis", -1), rank));
  const auto given = c.integer("axis", 1);
  const int axis = given == rank ? rank : c.axis(given, rank);
  std::int64_t rows = 1, columns = 1;
  for (int d = 0; d < rank; ++d)
    (d < axis ? rows : columns) = dimension::multiply(d < axis ? rows : columns, x.shape()[d]);
  return reshape(hardmax(reshape(x, {rows, columns}), 1), x.shape());
}

/// Over a norm of 0: 0.
Tensor normalized(const Call& c) {
  const Tensor& x = c[0];
  const auto p = c.integer("p", 2);
  c.require(p == 1 || p == 2, "p must be 1 or 2, got ", p);
  const int axis = c.axis(c.integer("axis", -1), x.shape().rank());
  const Tensor size = norm(x, static_cast<double>(p), {.axis = {axis}, .keepdims = true});
  return divide_no_nan(x, size);
}

/// log_p: [batch, classes, places...], labels: [batch, places...]. Ignored labels weigh
/// nothing; the mean of nothing is NaN.
Tensor negative_log_likelihood(const Call& c, const Tensor& log_p) {
  const Shape& shape = log_p.shape();
  c.require(shape.rank() >= 2 && is_integer(c[1].dtype()) && c[1].shape().rank() == shape.rank() - 1, "the labels are ",
            c[1].spec(), ", expected integers, one for each place beside ", log_p.spec());
  const std::string reduction = c.word("reduction", "mean");
  c.require(reduction == "none" || reduction == "mean" || reduction == "sum",
            "reduction must be none, mean or sum, got `", reduction, "`");
  Tensor labels = cast(c[1], i64), counts = fill(labels.shape(), 1, boolean);
  if (c.has_attribute("ignore_index")) {
    counts = not_equal(labels, c.integer("ignore_index"));
    labels = where(counts, labels, 0);
  }
  labels = check_range(labels, shape[1], true);
  Shape along{1, shape[1]};
  while (along.rank() < shape.rank()) along.push_back(1);
  const Tensor chosen = equal(reshape(iota({shape[1]}, i64), along), expand_dims(labels, 1));  // of the shape of log_p
  const auto picked = [&](const Tensor& values) { return reduce_sum(where(chosen, values, 0), {.axis = {1}}); };
  Tensor weights = cast(counts, log_p.dtype());
  if (c.has(2)) {
    c.require(c[2].shape().rank() == 1 && c[2].shape()[0] == shape[1], "the weights are ", c[2].spec(),
              ", expected one for each class of ", log_p.spec());
    weights = weights * picked(reshape(cast(c[2], log_p.dtype()), along));
  }
  const Tensor losses = -picked(log_p) * weights;
  if (reduction == "none") return losses;
  const Tensor sum = reduce_sum(losses);
  return reduction == "sum" ? sum : sum / reduce_sum(weights);
}

Results softmax_crossentropy(const Call& c) {
  const Tensor log_p = log_softmax(c[0], 1);
  return {negative_log_likelihood(c, log_p), log_p};
}

const Table functions_table{
    {"Acos", {7, 22}, [](const Call& c) { return acos(c[0]); }},
    {"Acosh", {9, 22}, [](const Call& c) { return acosh(c[0]); }},
    {"Asin", {7, 22}, [](const Call& c) { return asin(c[0]); }},
    {"Asinh", {9, 22}, [](const Call& c) { return asinh(c[0]); }},
    {"Atan", {7, 22}, [](const Call& c) { return atan(c[0]); }},
    {"Atanh", {9, 22}, [](const Call& c) { return atanh(c[0]); }},
    {"BitShift", {11, 28}, shift},
    {"BitwiseAnd", {18}, [](const Call& c) { return bitwise_and(c[0], c[1]); }},
    {"BitwiseNot", {18}, [](const Call& c) { return invert(c[0]); }},
    {"BitwiseOr", {18}, [](const Call& c) { return bitwise_or(c[0], c[1]); }},
    {"BitwiseXor", {18}, [](const Call& c) { return bitwise_xor(c[0], c[1]); }},
    {"Cosh", {9, 22}, [](const Call& c) { return cosh(c[0]); }},
    {"CumProd", {26}, rounded_once(cumulative_product)},
    {"LpNormalization", {1, 22}, rounded_once(normalized)},
    {"Sinh", {9, 22}, [](const Call& c) { return sinh(c[0]); }},
};

const Table activations_table{
    {"Celu", {12, 28}, [](const Call& c) { return celu(c[0], {.alpha = c.number("alpha", 1)}); }},
    {"Elu", {1, 6, 22}, [](const Call& c) { return elu(c[0], {.alpha = c.number("alpha", 1)}); }},
    {"Gelu", {20}, approximate_gelu},
    {"HardSigmoid",
     {1, 6, 22},
     [](const Call& c) {
       return hard_sigmoid(c[0], {.alpha = c.number("alpha", 0.2f), .beta = c.number("beta", 0.5)});
     }},
    {"HardSwish", {14, 22}, [](const Call& c) { return hard_swish(c[0]); }},
    {"Hardmax", {1, 11, 13}, one_hot_of_largest},
    {"LeakyRelu", {1, 6, 16}, rounded_once([](const Call& c) { return leaky_relu(c[0], c.number("alpha", 0.01f)); })},
    {"Mish", {18, 22}, [](const Call& c) { return mish(c[0]); }},
    {"PRelu", {1, 6, 7, 9, 16}, rounded_once(parametric_relu)},
    {"Selu", {1, 6, 22}, rounded_once(scaled_elu)},
    {"Shrink", {9}, rounded_once(shrunk)},
    {"Softsign", {1, 22}, [](const Call& c) { return softsign(c[0]); }},
    {"SwiGLU", {28}, rounded_once([](const Call& c) { return silu(c[0], {.beta = c.number("alpha", 1)}) * c[1]; })},
    {"Swish", {24}, [](const Call& c) { return silu(c[0], {.beta = c.number("alpha", 1)}); }},
    {"ThresholdedRelu", {10, 22}, rounded_once([](const Call& c) {
       return thresholded_relu(c[0], {.alpha = c.number("alpha", 1)});
     })},
};

const Table losses_table{
    {"NegativeLogLikelihoodLoss", {12, 13, 22}, rounded_once([](const Call& c) {
       return negative_log_likelihood(c, c[0]);
     })},
    {"SoftmaxCrossEntropyLoss", {12, 13}, rounded_once(softmax_crossentropy)},
};

}  // namespace
}  // namespace gradus::onnx
