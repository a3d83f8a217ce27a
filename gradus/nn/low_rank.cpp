/// Singular values, and layers built from them.
#include "gradus/nn/low_rank.h"
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include "gradus/graph/context.h"
#include "gradus/nn/copying.h"
#include "gradus/nn/dense_layer.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"

namespace gradus {
namespace {

using Vector = std::vector<double>;

double dot(const Vector& a, const Vector& b) {
  double lanes[8] = {};  // sums side by side, so that the compiler may use vectors
  std::size_t i = 0;
  for (; i + 8 <= a.size(); i += 8)
    for (std::size_t k = 0; k < 8; ++k) lanes[k] += a[i + k] * b[i + k];
  double sum = std::accumulate(lanes, lanes + 8, 0.0);
  for (; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

void rotate(Vector& a, Vector& b, double c, double s) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = a[i], y = b[i];
    a[i] = c * x - s * y;
    b[i] = s * x + c * y;
  }
}

/// Vectors v[i] that rotations make orthogonal, and the same rotations of unit vectors.
struct Rotated {
  std::vector<Vector> v, turned;

  explicit Rotated(std::vector<Vector> columns) : v(std::move(columns)), turned(v.size(), Vector(v.size())) {
    for (std::size_t i = 0; i < v.size(); ++i) turned[i][i] = 1;
  }

  /// True if any pair was not orthogonal yet. Long vectors first, which needs fewer sweeps (de Rijk 1989).
  bool sweep() {
    if (v.empty()) return false;
    const double orthogonal = std::numeric_limits<double>::epsilon() * std::sqrt(static_cast<double>(v[0].size()));
    bool changed = false;
    Vector squares;
    for (const Vector& each : v) squares.push_back(dot(each, each));
    for (std::size_t p = 0; p < v.size(); ++p) {
      const auto longest = std::max_element(squares.begin() + static_cast<std::ptrdiff_t>(p), squares.end());
      exchange(p, static_cast<std::size_t>(longest - squares.begin()), squares);
      for (std::size_t q = p + 1; q < v.size(); ++q) {
        const double mixed = dot(v[p], v[q]);
        if (std::abs(mixed) <= orthogonal * std::sqrt(squares[p]) * std::sqrt(squares[q])) continue;
        changed = true;
        const double zeta = (squares[q] - squares[p]) / (2 * mixed);
        const double t = std::copysign(1.0, zeta) / (std::abs(zeta) + std::hypot(1.0, zeta));
        const double c = 1 / std::hypot(1.0, t), s = c * t;
        rotate(v[p], v[q], c, s);
        rotate(turned[p], turned[q], c, s);
        squares[p] -= t * mixed;
        squares[q] = std::max(squares[q] + t * mixed, 0.0);
      }
    }
    return changed;
  }
  void exchange(std::size_t p, std::size_t q, Vector& squares) {
    std::swap(v[p], v[q]);
    std::swap(turned[p], turned[q]);
    std::swap(squares[p], squares[q]);
  }
};

/// [count, n] row by row, scaled.
Tensor rows_of(const std::vector<Vector>& rows, std::size_t length) {
  Vector all;
  for (const Vector& row : rows) all.insert(all.end(), row.begin(), row.end());
  return from_values(all, {static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(length)});
}

/// The rows of x, and x is at most as tall as wide: rows are v, their rotations left vectors.
SingularValues of_wide(const Vector& x, std::size_t rows, std::size_t columns, double scale) {
  std::vector<Vector> given;
  for (std::size_t i = 0; i < rows; ++i) {
    const auto begin = x.begin() + static_cast<std::ptrdiff_t>(i * columns);
    given.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(columns));
  }
  Rotated rotated(std::move(given));
  constexpr int most_sweeps = 30;  // some 8 do
  for (int k = 0; k < most_sweeps && rotated.sweep();) ++k;
  Vector norms;
  for (const Vector& v : rotated.v) norms.push_back(std::sqrt(dot(v, v)));
  std::vector<std::size_t> order(rows);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) { return norms[i]; });
  Vector values;
  std::vector<Vector> left, right;
  for (const std::size_t i : order) {
    values.push_back(norms[i] * scale);
    left.push_back(rotated.turned[i]);
    right.push_back(rotated.v[i]);
    for (double& element : right.back()) element = norms[i] > 0 ? element / norms[i] : 0;
  }
  return {from_values(values, {static_cast<std::int64_t>(rows)}), transpose(rows_of(left, rows)),
          rows_of(right, columns)};
}

/// The least rank that keeps a share of the energy.
std::int64_t rank_for(const Tensor& values, double energy) {
  const Vector s = values.to_vector<double>();
  const double all = dot(s, s);
  double kept = 0;
  for (std::size_t i = 0; i < s.size(); ++i) {
    kept += s[i] * s[i];
    if (kept >= energy * all * (1 - 1e-15 * static_cast<double>(s.size()))) return static_cast<std::int64_t>(i) + 1;
  }
  return static_cast<std::int64_t>(s.size());
}

void check(const LowRankOptions& o) {
  check_options("low_rank", o);
  require((o.rank != 0) != (o.energy != 0), "low_rank: say one of rank and energy, got rank ", o.rank, " and energy ",
          o.energy);
}

/// A layer as a module.
struct RemadeProduct : Module {
  explicit RemadeProduct(std::shared_ptr<Layer> layer) : Module(std::move(layer)) {}
};

const DenseLayer& as_dense(const Module& layer) { return layer_as<DenseLayer>(layer, "Dense"); }

/// A built layer of this kernel, [inputs, units].
std::shared_ptr<DenseLayer> dense_of(const Tensor& kernel, Activation activation, DenseOptions options,
                                     const DenseLayer& like) {
  auto made = std::make_shared<DenseLayer>(kernel.shape()[1], std::move(activation), std::move(options));
  if (like.policy()) made->set_policy({like.policy()->compute, like.policy()->variable});
  Spec input = *like.input();
  input.shape.set(-1, kernel.shape()[0]);
  made->options.kernel_initializer = made->options.bias_initializer = initializers::zeros;  // which draw nothing
  made->ensure_built(input);
  made->options.kernel_initializer = like.options.kernel_initializer;
  made->options.bias_initializer = like.options.bias_initializer;
  made->variable(0).assign(cast(kernel, made->variable(0).dtype()));
  if (!like.is_trainable()) made->set_trainable(false);
  made->variable(0).set_trainable(like.variable(0).trainable());
  return made;
}

/// Both layers; nothing: it would not get smaller, unless that does not matter.
std::optional<std::vector<Module>> factors_of(const DenseLayer& layer, const LowRankOptions& options, bool always) {
  require(layer.is_built(), "low_rank: layer ", layer.called(), " is not built; call it, or build(spec), first");
  const Tensor kernel = layer.variable(0).value();
  const std::int64_t inputs = kernel.shape()[0], units = kernel.shape()[1], full = std::min(inputs, units);
  require(full > 0, "low_rank: layer ", layer.called(), " has a kernel of ", kernel.shape());
  if (always)
    require(options.rank <= full, "low_rank: layer ", layer.called(), " has a kernel of ", kernel.shape(),
            ": the rank is at most ", full, ", got ", options.rank);
  if (!always && options.rank * (inputs + units) >= inputs * units) return {};
  const SingularValues parts = singular_values(kernel);
  const std::int64_t rank =
      std::max<std::int64_t>(options.rank > 0 ? options.rank : rank_for(parts.values, options.energy), 1);
  if (!always && rank * (inputs + units) >= inputs * units) return {};
  // Both take the root of the values: kernels of one size, which a training can go on with.
  const Tensor roots = sqrt(slice(parts.values, {0}, {rank}));
  const Tensor first = slice(parts.left, {0, 0}, {inputs, rank}) * roots;
  const Tensor second = reshape(roots, {rank, 1}) * slice(parts.right, {0, 0}, {rank, units});
  DenseOptions thin = layer.options, wide = layer.options;
  thin.use_bias = false;
  thin.activity_regularizer = {};
  auto narrow = dense_of(first, linear, thin, layer), last = dense_of(second, layer.activation, wide, layer);
  if (layer.options.use_bias) {
    last->variable(1).assign(layer.variable(1).value());
    last->variable(1).set_trainable(layer.variable(1).trainable());
  }
  if (layer.has_own_name()) {
    narrow->rename(layer.name() + "_narrow", true);
    last->rename(layer.name(), true);
  }
  return std::vector<Module>{RemadeProduct(narrow), RemadeProduct(last)};
}

}  // namespace

SingularValues singular_values(const Tensor& x) {
  require(x.shape().rank() == 2 && is_floating(x.dtype()), "singular_values: expected a matrix of floats, got ",
          x.spec());
  require(!x.is_symbolic(), "singular_values: ", x.spec(),
          " is symbolic: it is computed on the host, outside of traced "
          "functions");
  const Untraced outside;
  const auto rows = static_cast<std::size_t>(x.shape()[0]), columns = static_cast<std::size_t>(x.shape()[1]);
  const bool tall = rows > columns;
  const Tensor wide = cast(tall ? transpose(x) : x, f64);
  Vector values = wide.to_vector<double>();
  double largest = 0;
  for (const double v : values) {
    require(std::isfinite(v), "singular_values: the matrix has elements that are not finite");
    largest = std::max(largest, std::abs(v));
  }
  const double scale = largest > 0 ? largest : 1;  // squares neither overflow nor vanish
  for (double& v : values) v /= scale;
  SingularValues found = of_wide(values, std::min(rows, columns), std::max(rows, columns), scale);
  if (tall) return {found.values, transpose(found.right), transpose(found.left)};
  return found;
}

Sequential low_rank(const Dense& layer, LowRankOptions options) {
  check(options);
  const Untraced outside;
  Sequential both(*factors_of(as_dense(layer), options, true));
  both.build(*layer.layer_behind().input());
  return both;
}

Sequential low_rank(const Sequential& model, LowRankOptions options) {
  check(options);
  require(model.is_built(), "low_rank: model ", model.layer_behind().called(),
          " is not built; call it, or build(spec), first");
  const Untraced outside;
  const Copying copying;  // what is made here is another model, not a part that was meant to be shared
  const Layer& whole = model.layer_behind();
  std::vector<Module> layers;
  std::map<const Layer*, std::pair<std::size_t, std::size_t>> made;  // where what became of a layer begins and ends
  for (std::size_t i = 0; i < whole.children().size(); ++i) {
    const Module& layer = model.layer(i);
    const auto [at, is_new] = made.try_emplace(&layer.layer_behind());
    if (!is_new) {  // what is there twice stays one layer
      for (std::size_t k = at->second.first; k < at->second.second; ++k) layers.push_back(shared(layers[k]));
      continue;
    }
    at->second.first = layers.size();
    std::optional<std::vector<Module>> both;
    if (const auto* dense = dynamic_cast<const DenseLayer*>(at->first)) both = factors_of(*dense, options, false);
    if (both) std::ranges::move(*both, std::back_inserter(layers));
    else layers.push_back(layer);
    at->second.second = layers.size();
  }
  Sequential smaller(std::move(layers), {.policy = whole.policy().value_or(float32),
                                         .name = whole.has_own_name() ? whole.name() : std::string()});
  smaller.build(*whole.input());
  return smaller;
}

}  // namespace gradus
