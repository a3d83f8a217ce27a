/// An op of Keras is a row of a table: its class, and a function that reads its options and gives its run.
#include "gradus/train/keras_ops.h"
#include <map>
#include "gradus/nn/activation.h"
#include "gradus/ops/activations.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/cumulative.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/layout.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/normalization.h"
#include "gradus/ops/numeric.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/softmax.h"
#include "gradus/ops/sort.h"
#include "gradus/ops/special.h"
#include "gradus/ops/subscripted.h"

namespace gradus {
namespace keras_ops {
namespace {

using Json = nlohmann::json;
using Arguments = std::vector<KerasArgument>;
using Make = std::function<std::optional<KerasOp>(KerasOptions&, const Arguments&)>;
using Unary = Tensor (*)(const Tensor&);
using Binary = Tensor (*)(const Tensor&, const Tensor&);
using Reduction = Tensor (*)(const Tensor&, ReduceOptions);

std::nullopt_t refuse(KerasOptions& o, const char* expected) {
  o.problem("it is called with other arguments than ", expected);
  return std::nullopt;
}
bool takes_tensors(const Arguments& arguments, std::size_t n) {
  return arguments.size() == n && std::ranges::all_of(arguments, &KerasArgument::is_tensor);
}
/// A step of the first tensor.
template <class F> std::optional<KerasOp> of_one(KerasOptions& o, const Arguments& arguments, F f) {
  if (!takes_tensors(arguments, 1)) return refuse(o, "one tensor");
  return KerasOp{[f](In in) { return Tensors{f(in[0])}; }};
}

Tensor as_floats(const Tensor& x) { return is_floating(x.dtype()) ? x : cast(x, f32); }
DType promoted(DType a, DType b) {
  if (a == b) return a;
  if (a == boolean) return b;
  if (b == boolean) return a;
  if (is_floating(a) && is_floating(b)) return size_of(a) == size_of(b) ? f32 : size_of(a) > size_of(b) ? a : b;
  if (is_floating(a) || is_floating(b)) return is_floating(a) ? a : b;
  if (is_signed(a) == is_signed(b)) return size_of(a) > size_of(b) ? a : b;
  const DType with_sign = is_signed(a) ? a : b, without = is_signed(a) ? b : a;
  if (size_of(with_sign) > size_of(without)) return with_sign;
  return size_of(without) == 1 ? i16 : size_of(without) == 2 ? i32 : size_of(without) == 4 ? i64 : f32;
}

// ---------------------------------------------------------------- elementwise

Make unary(Unary f) {
  return [f](KerasOptions& o, const Arguments& arguments) { return of_one(o, arguments, f); };
}
Make floats(Unary f) {
  return [f](KerasOptions& o, const Arguments& arguments) {
    return of_one(o, arguments, [f](const Tensor& x) { return f(as_floats(x)); });
  };
}

/// A number beside a tensor, in its dtype; beside integers or booleans a floating one makes both f32.
std::pair<Tensor, Tensor> beside(const Tensor& x, const Json& number) {
  const bool is_whole = number.is_number_integer();
  if (!is_whole || x.dtype() == boolean) {
    const DType dtype = is_floating(x.dtype()) ? x.dtype() : is_whole ? i32 : f32;
    const Tensor y = cast(x, dtype);
    return {y, fill(Shape(), number.get<double>(), dtype)};
  }
  if (is_floating(x.dtype())) return {x, fill(Shape(), number.get<double>(), x.dtype())};
  return {x, fill(Shape(), number.get<std::int64_t>(), x.dtype())};
}

/// f of two operands, of which one may be a number.
template <class F> std::optional<KerasOp> of_two(KerasOptions& o, const Arguments& arguments, F f) {
  if (takes_tensors(arguments, 2))
    return KerasOp{[f](In in) {
      const auto [a, b] = gradus::promoted(in[0], in[1]);
      return Tensors{f(a, b)};
    }};
  if (arguments.size() != 2) return refuse(o, "two tensors, or a tensor and a number");
  for (const bool first : {true, false}) {
    const Json number = arguments[first ? 1 : 0].value;
    if (!arguments[first ? 0 : 1].is_tensor() || !number.is_number()) continue;
    return KerasOp{[=](In in) {
      const auto [x, n] = beside(in[0], number);
      return Tensors{first ? f(x, n) : f(n, x)};
    }};
  }
  return refuse(o, "two tensors, or a tensor and a number");
}
Make binary(Binary f) {
  return [f](KerasOptions& o, const Arguments& arguments) { return of_two(o, arguments, f); };
}
Tensor quotient(const Tensor& a, const Tensor& b) { return as_floats(a) / as_floats(b); }

std::optional<KerasOp> power(KerasOptions& o, const Arguments& arguments) {
  if (arguments.size() == 2 && arguments[0].is_tensor() && arguments[1].value.is_number()) {
    const Json exponent = arguments[1].value;
    return KerasOp{[exponent](In in) {
      const bool as_integer = exponent.is_number_integer();
      if (as_integer) return Tensors{pow(in[0], Scalar(exponent.get<std::int64_t>()))};
      return Tensors{pow(as_floats(in[0]), Scalar(exponent.get<double>()))};
    }};
  }
  return of_two(o, arguments, [](const Tensor& a, const Tensor& b) { return pow(a, b); });
}

std::optional<KerasOp> where_op(KerasOptions& o, const Arguments& arguments) {
  if (arguments.size() != 3 || !arguments[0].is_tensor()) return refuse(o, "a condition, and two values");
  const Json a = arguments[1].value, b = arguments[2].value;
  if (takes_tensors(arguments, 3))
    return KerasOp{[](In in) {
      const auto [x, y] = gradus::promoted(in[1], in[2]);
      return Tensors{where(cast(in[0], boolean), x, y)};
    }};
  if (arguments[1].is_tensor() && b.is_number())
    return KerasOp{[b](In in) {
      const auto [x, n] = beside(in[1], b);
      return Tensors{where(cast(in[0], boolean), x, broadcast_to(n, x.shape()))};
    }};
  if (arguments[2].is_tensor() && a.is_number())
    return KerasOp{[a](In in) {
      const auto [y, n] = beside(in[1], a);
      return Tensors{where(cast(in[0], boolean), broadcast_to(n, y.shape()), y)};
    }};
  return refuse(o, "a condition, and two values");
}

std::optional<KerasOp> clip(KerasOptions& o, const Arguments& arguments) {
  const double low = o.number("x_min", 0), high = o.number("x_max", 0);
  return of_one(o, arguments, [=](const Tensor& x) { return clip_by_value(x, low, high); });
}

// ---------------------------------------------------------------- reductions

Make reduction(Reduction f, bool of_floats) {
  return [=](KerasOptions& o, const Arguments& arguments) {
    const ReduceOptions options{.axis = o.axes("axis", {}), .keepdims = o.flag("keepdims", false)};
    if (o.raw("axis").is_array() && options.axis.empty()) o.problem("option `axis`: expected at least one");
    return of_one(o, arguments, [=](const Tensor& x) { return f(of_floats ? as_floats(x) : x, options); });
  };
}
Make arg_reduction(Tensor (*f)(const Tensor&, ArgOptions)) {
  return [f](KerasOptions& o, const Arguments& arguments) {
    const ArgOptions options{.axis = o.axis("axis", -1), .keepdims = o.flag("keepdims", false)};
    if (!o.has("axis")) o.problem("option `axis`: expected one");
    return of_one(o, arguments, [=](const Tensor& x) { return f(x, options); });
  };
}
Tensor sum(const Tensor& x, ReduceOptions options) {
  return reduce_sum(x.dtype() == boolean ? cast(x, i32) : x, std::move(options));
}
Tensor euclidean_norm(const Tensor& x, ReduceOptions options) { return norm(x, std::move(options)); }
std::optional<KerasOp> norm_op(KerasOptions& o, const Arguments& arguments) {
  const Json& order = o.raw("ord");
  if (!order.is_null() && order != 2) o.problem("option `ord`: expected 2");
  const std::vector<int> axis = o.axes("axis", {});
  if (axis.size() > 1 && !order.is_null()) o.problem("option `axis`: expected one");
  return reduction(euclidean_norm, true)(o, arguments);
}

// ---------------------------------------------------------------- shapes

Shape shape_of(const std::vector<std::int64_t>& sizes) { return Shape(std::span<const std::int64_t>(sizes)); }

std::optional<KerasOp> reshape_op(KerasOptions& o, const Arguments& arguments) {
  const Shape shape = shape_of(o.open_sizes("newshape"));
  return of_one(o, arguments, [=](const Tensor& x) { return reshape(x, shape); });
}
std::optional<KerasOp> transpose_op(KerasOptions& o, const Arguments& arguments) {
  const std::vector<int> order = o.axes("axes", {});
  return of_one(o, arguments, [=](const Tensor& x) {
    std::vector<int> all = order;
    for (int axis = x.shape().rank() - 1; order.empty() && axis >= 0; --axis) all.push_back(axis);
    return transpose(x, all);
  });
}
std::optional<KerasOp> expand_dims_op(KerasOptions& o, const Arguments& arguments) {
  const int axis = o.axis("axis", -1);
  return of_one(o, arguments, [=](const Tensor& x) { return expand_dims(x, axis); });
}
std::optional<KerasOp> squeeze_op(KerasOptions& o, const Arguments& arguments) {
  const std::vector<int> axes = o.axes("axis", {});
  return of_one(o, arguments, [=](const Tensor& x) { return squeeze(x, axes); });
}
std::optional<KerasOp> flip(KerasOptions& o, const Arguments& arguments) {
  const std::vector<int> axes = o.axes("axis", {});
  return of_one(o, arguments, [=](const Tensor& x) {
    std::vector<int> all = axes;
    for (int axis = 0; axes.empty() && axis < x.shape().rank(); ++axis) all.push_back(axis);
    return reverse(x, all);
  });
}
std::optional<KerasOp> swapaxes_op(KerasOptions& o, const Arguments& arguments) {
  const int a = o.axis("axis1", 0), b = o.axis("axis2", 0);
  return of_one(o, arguments, [=](const Tensor& x) { return swapaxes(x, a, b); });
}
std::optional<KerasOp> moveaxis_op(KerasOptions& o, const Arguments& arguments) {
  const int a = o.axis("source", 0), b = o.axis("destination", 0);
  return of_one(o, arguments, [=](const Tensor& x) { return moveaxis(x, a, b); });
}
std::optional<KerasOp> repeat_op(KerasOptions& o, const Arguments& arguments) {
  const std::int64_t repeats = o.integer("repeats");
  const bool is_flat = !o.has("axis");
  const int axis = o.axis("axis", 0);
  return of_one(o, arguments, [=](const Tensor& x) { return is_flat ? repeat(x, repeats) : repeat(x, repeats, axis); });
}
std::optional<KerasOp> tile_op(KerasOptions& o, const Arguments& arguments) {
  const std::vector<std::int64_t> repeats = o.integers("repeats", {});
  return of_one(o, arguments, [=](const Tensor& x) {
    std::vector<std::int64_t> all = repeats;
    while (static_cast<int>(all.size()) < x.shape().rank()) all.insert(all.begin(), 1);
    Tensor y = x;
    while (y.shape().rank() < static_cast<int>(all.size())) y = expand_dims(y, 0);
    return tile(y, all);
  });
}
std::optional<KerasOp> pad_op(KerasOptions& o, const Arguments& arguments) {
  const Json& written = o.raw("pad_width");
  std::vector<std::array<std::int64_t, 2>> sides;
  if (written.is_array() && written.size() <= Shape::max_rank) sides = o.both_sides("pad_width", written.size());
  else o.problem("option `pad_width`: expected two numbers for each dimension");
  const std::string said = o.word("mode", "constant");
  const std::map<std::string, PadMode> modes{{"reflect", PadMode::reflect}, {"symmetric", PadMode::symmetric}};
  if (said != "constant" && !modes.contains(said))
    o.problem("option `mode` is ", said, "; expected constant, reflect or symmetric");
  return of_one(o, arguments,
                [=](const Tensor& x) { return said == "constant" ? pad(x, sides) : pad(x, sides, modes.at(said)); });
}
/// Several tensors of one dtype.
Tensors alike(In in) {
  Tensors all(in.begin(), in.end());
  DType dtype = all[0].dtype();
  for (const Tensor& x : all) dtype = promoted(dtype, x.dtype());
  for (Tensor& x : all) x = cast(x, dtype);
  return all;
}
Make joining(Tensor (*join)(const std::vector<Tensor>&, int)) {
  return [join](KerasOptions& o, const Arguments& arguments) -> std::optional<KerasOp> {
    const int axis = o.axis("axis", 0);
    const bool is_list = arguments.size() == 1 && !arguments[0].list.empty();
    if (!is_list || !std::ranges::all_of(arguments[0].list, &KerasArgument::is_tensor))
      return refuse(o, "a list of tensors");
    return KerasOp{[=](In in) { return Tensors{join(alike(in), axis)}; }};
  };
}
Tensor concatenated(const std::vector<Tensor>& parts, int axis) { return concat(parts, axis); }
Tensor stacked_along(const std::vector<Tensor>& parts, int axis) { return stack(parts, axis); }

std::optional<KerasOp> split_op(KerasOptions& o, const Arguments& arguments) {
  const std::int64_t parts = o.integer("indices_or_sections");
  const int axis = o.axis("axis", 0);
  if (parts < 1 || parts > 1000) o.problem("option `indices_or_sections`: expected a number of parts, at most 1000");
  if (!takes_tensors(arguments, 1)) return refuse(o, "one tensor");
  const int n = static_cast<int>(std::clamp<std::int64_t>(parts, 1, 1000));
  return KerasOp{[=](In in) { return split(in[0], n, axis); }, n};
}

/// One subscript of x[...], as Keras writes it. A problem if it is none that is known.
Subscript subscript(KerasOptions& o, const Json& written) {
  const auto bound = [&](const Json& slice, const char* name) -> SliceBound {
    const Json at = slice.is_object() ? slice.value(name, Json()) : Json();
    if (at.is_number_integer()) return at.get<std::int64_t>();
    if (!at.is_null()) o.problem("a slice whose ", name, " is no integer");
    return {};
  };
  if (written.is_null()) return newaxis;
  if (written.is_number_integer()) return written.get<std::int64_t>();
  const Json kind = written.is_object() ? written.value("class_name", Json()) : Json();
  if (kind == "__ellipsis__") return ellipsis;
  if (kind == "__slice__") {
    const Json config = written.value("config", Json());
    const Json step = config.is_object() ? config.value("step", Json()) : Json();
    if (!step.is_null() && (!step.is_number_integer() || step == 0)) o.problem("a slice whose step is no integer");
    return slice(bound(config, "start"), bound(config, "stop"),
                 step.is_number_integer() && step != 0 ? step.get<std::int64_t>() : 1);
  }
  o.problem("a subscript that is no integer, slice, newaxis or ellipsis");
  return all;
}
std::optional<KerasOp> get_item(KerasOptions& o, const Arguments& arguments) {
  if (arguments.size() != 2 || !arguments[0].is_tensor() || arguments[1].is_tensor() || !arguments[1].list.empty())
    return refuse(o, "a tensor and subscripts that are no tensors");
  const Json& written = arguments[1].value;
  std::vector<Subscript> subscripts;
  if (!written.is_array()) subscripts.push_back(subscript(o, written));
  else
    for (const Json& each : written) subscripts.push_back(subscript(o, each));
  return KerasOp{[subscripts](In in) { return Tensors{Subscripted("x", in[0], subscripts).read()}; }};
}

std::optional<KerasOp> take(KerasOptions& o, const Arguments& arguments) {
  const bool is_flat = !o.has("axis");
  const int axis = o.axis("axis", 0);
  const auto taken = [=](const Tensor& of, const Tensor& indices) {
    const Tensor x = is_flat ? reshape(of, {-1}) : of;
    return Tensors{gather(x, wrapped_indices(indices, x.shape()[axis]), axis)};
  };
  if (takes_tensors(arguments, 2)) return KerasOp{[=](In in) { return taken(in[0], in[1]); }};
  const auto are_integers = [](const Json& all) {
    return std::ranges::all_of(all, [](const Json& each) { return each.is_number_integer(); });
  };
  if (arguments.size() != 2 || !arguments[0].is_tensor() || !arguments[1].list.empty() ||
      !(arguments[1].value.is_number_integer() || (arguments[1].value.is_array() && are_integers(arguments[1].value))))
    return refuse(o, "a tensor, and indices: a tensor, an integer or a list of them");
  const Json& written = arguments[1].value;
  const Tensor indices =
      written.is_array() ? constant(written.get<std::vector<std::int64_t>>()) : constant(written.get<std::int64_t>());
  return KerasOp{[=](In in) { return taken(in[0], indices); }};
}

// ---------------------------------------------------------------- others

std::optional<KerasOp> einsum_op(KerasOptions& o, const Arguments& arguments) {
  const std::string equation = o.word("subscripts", "");
  if (arguments.empty() || !takes_tensors(arguments, arguments.size())) return refuse(o, "tensors");
  return KerasOp{[=](In in) { return Tensors{einsum(equation, alike(in))}; }};
}
std::optional<KerasOp> cast_op(KerasOptions& o, const Arguments& arguments) {
  const DType dtype = o.dtype("dtype");
  return of_one(o, arguments, [=](const Tensor& x) { return cast(x, dtype); });
}
std::optional<KerasOp> one_hot_op(KerasOptions& o, const Arguments& arguments) {
  const std::int64_t classes = o.integer("num_classes");
  const DType dtype = o.dtype("dtype");
  if (o.axis("axis", -1) != -1) o.problem("option `axis`: expected -1");
  return of_one(o, arguments, [=](const Tensor& x) { return one_hot(x, classes, dtype); });
}
std::optional<KerasOp> softmax_op(KerasOptions& o, const Arguments& arguments) {
  const int axis = o.axis("axis", -1);
  return of_one(o, arguments, [=](const Tensor& x) { return softmax(as_floats(x), axis); });
}
std::optional<KerasOp> log_softmax_op(KerasOptions& o, const Arguments& arguments) {
  const int axis = o.axis("axis", -1);
  return of_one(o, arguments, [=](const Tensor& x) { return log_softmax(as_floats(x), axis); });
}
std::optional<KerasOp> gelu_op(KerasOptions& o, const Arguments& arguments) {
  const bool approximate = o.flag("approximate", true);
  return of_one(o, arguments, [=](const Tensor& x) { return gelu(as_floats(x), {.approximate = approximate}); });
}
std::optional<KerasOp> elu_op(KerasOptions& o, const Arguments& arguments) {
  const double alpha = o.number("alpha", 1);
  return of_one(o, arguments, [=](const Tensor& x) { return elu(as_floats(x), {.alpha = alpha}); });
}
std::optional<KerasOp> leaky_relu_op(KerasOptions& o, const Arguments& arguments) {
  const double slope = o.number("negative_slope", 0.2);
  return of_one(o, arguments, [=](const Tensor& x) { return leaky_relu(as_floats(x), slope); });
}
std::optional<KerasOp> normalize_op(KerasOptions& o, const Arguments& arguments) {
  const std::vector<int> axis = o.axes("axis", {-1});
  if (o.number("order", 2) != 2) o.problem("option `order`: expected 2");
  const double epsilon = o.number("epsilon", 1e-7);
  return of_one(o, arguments, [=](const Tensor& x) {
    const Tensor y = as_floats(x);
    return y / maximum(norm(y, {.axis = axis, .keepdims = true}), epsilon);
  });
}
std::optional<KerasOp> cumsum_op(KerasOptions& o, const Arguments& arguments) {
  const bool is_flat = !o.has("axis");
  const int axis = o.axis("axis", 0);
  return of_one(o, arguments, [=](const Tensor& x) { return cumsum(is_flat ? reshape(x, {-1}) : x, axis); });
}
std::optional<KerasOp> top_k_op(KerasOptions& o, const Arguments& arguments) {
  const std::int64_t k = o.integer("k");
  o.flag("sorted", true);
  if (!takes_tensors(arguments, 1)) return refuse(o, "one tensor");
  return KerasOp{[=](In in) {
                   const TopK best = top_k(in[0], k);
                   return Tensors{best.values, best.indices};
                 },
                 2};
}

Tensor less(const Tensor& a, const Tensor& b) { return a < b; }
Tensor less_equal(const Tensor& a, const Tensor& b) { return a <= b; }
Tensor greater(const Tensor& a, const Tensor& b) { return a > b; }
Tensor greater_equal(const Tensor& a, const Tensor& b) { return a >= b; }
Tensor sum_of(const Tensor& a, const Tensor& b) { return a + b; }
Tensor difference(const Tensor& a, const Tensor& b) { return a - b; }
Tensor product(const Tensor& a, const Tensor& b) { return a * b; }
Tensor negative(const Tensor& x) { return -x; }
Tensor negation(const Tensor& x) { return logical_not(cast(x, boolean)); }
Tensor both(const Tensor& a, const Tensor& b) { return logical_and(cast(a, boolean), cast(b, boolean)); }
Tensor either(const Tensor& a, const Tensor& b) { return logical_or(cast(a, boolean), cast(b, boolean)); }
/// NumPy's dot, where it is a product with a matrix.
Tensor dot_product(const Tensor& a, const Tensor& b) {
  require(a.shape().rank() >= 2 && b.shape().rank() == 2, "Dot of ", a.spec(), " and ", b.spec(),
          ": expected [..., m, k] and [k, n]");
  return matmul(a, b);
}

const std::map<std::string, Make>& table() {
  static const std::map<std::string, Make> ops{
      {"Add", binary(sum_of)},
      {"Subtract", binary(difference)},
      {"Multiply", binary(product)},
      {"Divide", binary(quotient)},
      {"TrueDivide", binary(quotient)},
      {"FloorDivide", binary(floor_divide)},
      {"Mod", binary(mod)},
      {"Power", power},
      {"Maximum", binary(maximum)},
      {"Minimum", binary(minimum)},
      {"Matmul", binary(matmul)},
      {"Greater", binary(greater)},
      {"GreaterEqual", binary(greater_equal)},
      {"Less", binary(less)},
      {"LessEqual", binary(less_equal)},
      {"Equal", binary(equal)},
      {"NotEqual", binary(not_equal)},
      {"LogicalAnd", binary(both)},
      {"LogicalOr", binary(either)},
      {"LogicalNot", unary(negation)},
      {"Negative", unary(negative)},
      {"Absolute", unary(abs)},
      {"Abs", unary(abs)},
      {"Square", unary(square)},
      {"Sign", unary(sign)},
      {"Floor", floats(floor)},
      {"Ceil", floats(ceil)},
      {"Exp", floats(exp)},
      {"Expm1", floats(expm1)},
      {"Log", floats(log)},
      {"Log1p", floats(log1p)},
      {"Sqrt", floats(sqrt)},
      {"Rsqrt", floats(rsqrt)},
      {"Reciprocal", floats(reciprocal)},
      {"Sin", floats(sin)},
      {"Cos", floats(cos)},
      {"Tan", floats(tan)},
      {"Tanh", floats(tanh)},
      {"Erf", floats(erf)},
      {"Sigmoid", floats(sigmoid)},
      {"Relu", unary(relu)},
      {"Relu6", unary(relu6)},
      {"Silu", floats(silu)},
      {"Softplus", floats(softplus)},
      {"Softsign", floats(softsign)},
      {"Selu", floats(selu)},
      {"Mish", floats(mish)},
      {"HardSigmoid", floats(hard_sigmoid)},
      {"HardSilu", floats(hard_silu)},
      {"LogSigmoid", floats(log_sigmoid)},
      {"StopGradient", unary(stop_gradient)},
      {"Gelu", gelu_op},
      {"Elu", elu_op},
      {"LeakyRelu", leaky_relu_op},
      {"Softmax", softmax_op},
      {"LogSoftmax", log_softmax_op},
      {"Normalize", normalize_op},
      {"Where", where_op},
      {"Clip", clip},
      {"Sum", reduction(sum, false)},
      {"Mean", reduction(reduce_mean, true)},
      {"Max", reduction(reduce_max, false)},
      {"Min", reduction(reduce_min, false)},
      {"Prod", reduction(reduce_prod, false)},
      {"Var", reduction(reduce_variance, true)},
      {"Std", reduction(reduce_std, true)},
      {"Any", reduction(reduce_any, false)},
      {"All", reduction(reduce_all, false)},
      {"Logsumexp", reduction(reduce_logsumexp, true)},
      {"Norm", norm_op},
      {"Argmax", arg_reduction(argmax)},
      {"Argmin", arg_reduction(argmin)},
      {"Reshape", reshape_op},
      {"Transpose", transpose_op},
      {"ExpandDims", expand_dims_op},
      {"Squeeze", squeeze_op},
      {"Flip", flip},
      {"Swapaxes", swapaxes_op},
      {"Moveaxis", moveaxis_op},
      {"Repeat", repeat_op},
      {"Tile", tile_op},
      {"Pad", pad_op},
      {"Concatenate", joining(concatenated)},
      {"Stack", joining(stacked_along)},
      {"Split", split_op},
      {"GetItem", get_item},
      {"Take", take},
      {"Einsum", einsum_op},
      {"Dot", binary(dot_product)},
      {"Cast", cast_op},
      {"OneHot", one_hot_op},
      {"Cumsum", cumsum_op},
      {"TopK", top_k_op},
  };
  return ops;
}

}  // namespace
}  // namespace keras_ops

std::pair<Tensor, Tensor> promoted(const Tensor& a, const Tensor& b) {
  const DType dtype = keras_ops::promoted(a.dtype(), b.dtype());
  return {cast(a, dtype), cast(b, dtype)};
}

std::optional<KerasOp> keras_op(const std::string& class_name, KerasOptions& options,
                                const std::vector<KerasArgument>& arguments) {
  const auto found = keras_ops::table().find(class_name);
  if (found != keras_ops::table().end()) return found->second(options, arguments);
  options.problem("there is no such op; write the model as a Model, whose weights load_weights reads");
  return {};
}

}  // namespace gradus
