/// The result of each op is inspected. If it holds zeros, the op is run again in a wider dtype.
#include "gradus/train/precision_report.h"
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <ostream>
#include <unordered_set>
#include "gradus/function/mode.h"
#include "gradus/gradients/tape.h"
#include "gradus/graph/scope.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/random_state.h"
#include "gradus/train/build.h"
#include "gradus/train/op_by_op.h"

namespace gradus {
namespace {

constexpr double notable_share = 0.01;

double least_normal(DType t) { return t == f16 ? 0x1p-14 : t == f64 ? 0x1p-1022 : 0x1p-126; }

/// The operand as a leaf: what is computed of it is no history of the step.
Tensor value_of(const Ref<Node>& operand) { return Tensor::of_buffer(operand->spec, Tensor(operand).host_buffer()); }

/// The result of `node` in a wider type than its own; none where the op does not say.
std::optional<Tensor> widened(const Node& node) {
  if (node.spec.dtype == f64 || node.op.is_control()) return {};
  const DType wide = node.spec.dtype == f32 ? f64 : f32;
  Tensors operands;
  for (const Ref<Node>& operand : node.inputs) {
    operands.push_back(value_of(operand));
    if (is_floating(operands.back().dtype())) operands.back() = cast(operands.back(), wide);
  }
  if (node.op->name == "cast") return operands[0].dtype() == wide ? std::optional(operands[0]) : std::nullopt;
  try {
    Tensor y = make_node(node.op, operands);
    y.observed();
    if (y.spec() == Spec{wide, node.spec.shape}) return y;
  } catch (const Error&) {}  // an op whose attributes name a type
  return {};
}

template <class T> void count(NumberRange& range, const Node& node) {
  const T* values = static_cast<const T*>(node.value.get()->host());
  const std::int64_t n = node.spec.shape.size();
  const double least = least_normal(node.spec.dtype);
  std::int64_t zeros = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double size = std::abs(static_cast<double>(values[i]));
    if (!std::isfinite(size)) ++range.not_finite;
    else if (size == 0) ++zeros;
    else {
      range.largest = std::max(range.largest, size);
      range.underflowed += size < least;
    }
  }
  range.numbers += n;
  if (zeros == 0) return;
  if (const auto wide = widened(node))
    with_type(wide->dtype(), [&]<class W>(W) {
      const W* exact = wide->template host<W>();
      if constexpr (FloatingElement<W>)
        for (std::int64_t i = 0; i < n; ++i)
          range.underflowed += static_cast<double>(values[i]) == 0 && static_cast<double>(exact[i]) != 0;
    });
}

bool holds_odd(const Spec& spec, const Buffer& buffer) {
  return with_type(spec.dtype, [&]<class T>(T) {
    if constexpr (FloatingElement<T>) {
      const T* values = static_cast<const T*>(buffer.host());
      return std::any_of(values, values + spec.shape.size(),
                         [](T value) { return !std::isfinite(static_cast<double>(value)); });
    } else {
      return false;
    }
  });
}

/// True if values that are not finite begin here: no operand has any.
bool overflows(const Node& node) {
  return holds_odd(node.spec, *node.value.get()) &&
         std::none_of(node.inputs.begin(), node.inputs.end(),
                      [](const Ref<Node>& operand) { return holds_odd(operand->spec, Tensor(operand).observed()); });
}

/// True if the op makes numbers, and does not only move or repeat them.
bool makes_numbers(const Node& node) {
  return is_floating(node.spec.dtype) && node.value && !node.op.is_view() && !node.op.is_alias() && !node.op.is_index();
}

class Survey {
 public:
  explicit Survey(PrecisionReport& report) : report_(report) {}

  void look_at(std::span<const Node* const> nodes, NumberRange LayerPrecision::* pass, const char* what) {
    for (const Node* node : nodes) {
      if (!makes_numbers(*node)) continue;
      const std::string path = scope_path(node->scope);
      add(*node, path.empty() ? "loss" : path, pass);
      if (report_.overflow.empty() && overflows(*node)) {
        report_.overflowing_layer = path.empty() ? "loss" : path;
        report_.overflow = text("the ", what, path.empty() ? " of the loss" : " of layer " + path, ": `",
                                node->op->name, "` gives what is not finite in ", node->spec.dtype);
      }
    }
  }

 private:
  void add(const Node& node, const std::string& layer, NumberRange LayerPrecision::* pass) {
    auto row = std::ranges::find(report_.layers, layer, &LayerPrecision::layer);
    if (row == report_.layers.end())
      row = report_.layers.insert(row, LayerPrecision{.layer = layer, .dtype = node.spec.dtype});
    const auto size = size_of(node.spec.dtype);
    if (size > size_of(row->dtype)) return;
    if (size < size_of(row->dtype)) *row = {.layer = layer, .dtype = node.spec.dtype};
    with_type(node.spec.dtype, [&]<class T>(T) {
      if constexpr (FloatingElement<T>) count<T>((*row).*pass, node);
    });
  }
  PrecisionReport& report_;
};

void find_underflow(PrecisionReport& report) {
  double most = notable_share;
  for (const LayerPrecision& row : report.layers)
    if (const double share = row.gradients.share_underflowed(); share >= most) {
      most = share;
      report.underflowing_layer = row.layer;
    }
}

DType dtype_of(const PrecisionReport& report, const std::string& layer) {
  return std::ranges::find(report.layers, layer, &LayerPrecision::layer)->dtype;
}

void advise(PrecisionReport& report, bool in_gradients) {
  const auto keep_in_f32 = [&](const std::string& layer) {
    return layer == "loss" ? std::string("give the loss f32: a last layer with set_policy(float32)")
                           : "keep layer " + layer + " in f32: set_policy(float32) on it before the model is built";
  };
  if (!report.overflow.empty()) {
    const DType t = dtype_of(report, report.overflowing_layer);
    std::string advice = text(report.overflowing_layer, " overflows: ");
    if (in_gradients && report.loss_scale > 1)
      advice += "the optimizer skips such a step and halves the loss scale by itself; if that goes on, ";
    advice += keep_in_f32(report.overflowing_layer);
    if (t == f16) advice += ", or use mixed_bfloat16, whose largest number is that of f32, or normalise what enters it";
    else advice += ", or normalise what enters it";
    report.advice.push_back(std::move(advice));
  }
  if (report.underflowing_layer.empty()) return;
  const bool unscaled = report.loss_scale == 1 && dtype_of(report, report.underflowing_layer) == f16;
  report.advice.push_back(text("the gradients of ", report.underflowing_layer, " vanish: ",
                               unscaled                ? "use the policy mixed_float16, which scales the loss; or "
                               : report.loss_scale > 1 ? "the loss scale grows by itself while nothing overflows; or "
                                                       : "",
                               keep_in_f32(report.underflowing_layer)));
}

/// The values of variables that a pass in training mode moves; put back in the end.
class Unchanged {
 public:
  explicit Unchanged(const Module& model) : variables_(model.variables()) {
    for (const Variable& variable : variables_) before_.push_back(variable.value());
  }
  ~Unchanged() {
    for (std::size_t i = 0; i < before_.size(); ++i)
      if (!variables_[i].trainable()) variables_[i].assign(before_[i]);
  }
  Unchanged(const Unchanged&) = delete;

 private:
  Variables variables_;
  Tensors before_;
};

}  // namespace

PrecisionReport detail::precision_report(const Module& model, const Task& task, const Pipeline& dataset,
                                         bool unbatched) {
  check_batched("precision_report: the data set", dataset.specs(), dataset.batchings(), unbatched);
  const Untraced outside;
  build_for_elements(dataset, CallMode::training, task.build);
  std::uint64_t random = random_state();  // what layers of noise draw here, they draw again in the step that follows
  const SeedScope seeds(random);
  const Tensors batch = dataset.first();
  const Unchanged unchanged(model);
  PrecisionReport report{.loss_scale = model.loss_scale()};
  const OpByOp steps;
  const ModeScope mode(CallMode::training);
  GradientTape tape;
  const Examined examined = task.examine(batch);
  const Tensor loss = examined.loss.value();
  const std::vector<const Node*> forward = history({&loss, 1});
  Survey survey(report);
  survey.look_at(forward, &LayerPrecision::activations, "output");
  const bool in_gradients = report.overflow.empty();
  const Gradients gradients =
      tape.gradient(examined.loss, model.trainable_variables(), {.unconnected = Unconnected::zero});
  Tensors all;
  for (std::size_t i = 0; i < gradients.size(); ++i) all.push_back(gradients[i]);
  const std::unordered_set<const Node*> before(forward.begin(), forward.end());
  std::vector<const Node*> backward = history(all);
  std::erase_if(backward, [&](const Node* node) { return before.contains(node); });
  survey.look_at(backward, &LayerPrecision::gradients, "gradient");
  find_underflow(report);
  advise(report, in_gradients);
  return report;
}

namespace {

void print(std::ostream& out, const NumberRange& range) {
  TextStream largest, odd, lost;
  if (range.numbers) {
    largest << std::setprecision(3) << range.largest;
    odd << std::setprecision(3) << 100 * range.share_not_finite() << '%';
    lost << std::setprecision(3) << 100 * range.share_underflowed() << '%';
  }
  out << std::setw(13) << (range.numbers ? largest.str() : "-") << std::setw(12) << odd.str() << std::setw(12)
      << lost.str();
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const PrecisionReport& report) {
  std::size_t width = 5;
  for (const LayerPrecision& row : report.layers) width = std::max(width, printable(row.layer, true).size());
  const auto column = static_cast<int>(width) + 2;
  TextStream table;
  table << "One batch, loss scale " << report.loss_scale << ". Magnitudes, and shares that overflow and underflow.\n"
        << std::left << std::setw(column) << "" << std::setw(6) << "" << std::right << std::setw(37) << "activations"
        << std::setw(37) << "gradients" << '\n'
        << std::left << std::setw(column) << "layer" << std::setw(6) << "type" << std::right;
  for (int pass = 0; pass < 2; ++pass)
    table << std::setw(13) << "largest" << std::setw(12) << "not finite" << std::setw(12) << "underflow";
  table << '\n';
  for (const LayerPrecision& row : report.layers) {
    table << std::left << std::setw(column) << printable(row.layer, true) << std::setw(6) << name_of(row.dtype)
          << std::right;
    print(table, row.activations);
    print(table, row.gradients);
    table << '\n';
  }
  table << (report.overflow.empty() ? "Nothing overflows." : "The first overflow is " + report.overflow + '.') << '\n';
  for (const std::string& advice : report.advice) table << "- " << advice << '\n';
  return out << table.str();
}

}  // namespace gradus
