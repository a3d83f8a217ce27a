/// Sums of a loop's gradient, found on the graph of its body. Decision 152 has the reasons.
#include "gradus/ops/loop_sums.h"
#include <algorithm>
#include "gradus/graph/context.h"
#include "gradus/ops/concat.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/disjoint_sum.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/matmul_ops.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/size_choice.h"
#include "gradus/ops/widened.h"

namespace gradus {
namespace {

using scalar::Opcode;

/// The residuals of an iteration may be this many times as large as its inputs.
constexpr std::int64_t most_growth = 2;

/// The elementwise formula of `node` is `op` of its operands, in order, without rounding to a narrow type between.
bool computes(const Node& node, Opcode op) {
  if (!node.op.is_elementwise() || node.inputs.size() > 2) return false;
  std::vector<DType> types;
  for (const Ref<Node>& operand : node.inputs) types.push_back(operand->spec.dtype);
  const scalar::Code code = node.op.formula(types);
  const auto at = [&](int i) -> const scalar::Instruction& { return code.instructions[static_cast<std::size_t>(i)]; };
  const auto is_operand = [&](int i, int number) { return i >= 0 && at(i).op == Opcode::input && at(i).a == number; };
  const scalar::Instruction& result = at(code.result);
  return result.op == op && is_operand(result.a, 0) && (node.inputs.size() == 1 || is_operand(result.b, 1));
}

/// [iterations, p, q] as the operand of a product over all iterations, [iterations * p, q] or [p, iterations * q]:
/// whichever axis the product sums along.
Tensor joined(const Tensor& all, bool along_rows) {
  const std::int64_t n = all.shape()[0], p = all.shape()[1], q = all.shape()[2];
  return along_rows ? reshape(all, {dimension::multiply(n, p), q})
                    : reshape(transpose(all, {1, 0, 2}), {p, dimension::multiply(n, q)});
}

auto zeros_later(const Spec& spec) {
  return [spec](In, In, In) { return fill(spec.shape, 0, spec.dtype); };
}

}  // namespace

LoopSums::LoopSums(std::int64_t iterations, std::vector<Taken> taken, In constant, In stacked)
    : iterations_(iterations),
      taken_(std::move(taken)),
      stacked_(stacked.begin(), stacked.end()),
      first_kept_(stacked.size()),
      trace_(Context::current()->id()) {
  for (const Tensor& symbol : constant) varies_.emplace(symbol.node().get(), false);
  for (const Taken& each : taken_)
    if (const std::int64_t size = each.symbol.shape().size(); size > 0) most_elements_ += most_growth * size;
}

void LoopSums::add(const Tensor& term, const Spec& spec) {
  if (!term.defined()) {
    sums_.push_back(later({}, zeros_later(spec)));
  } else {
    const std::optional<std::size_t> step = postponed(term);
    sums_.push_back(step ? *step : carried(term));
  }
}

Tensors LoopSums::results(In carried, In stacked) const {
  Tensors made, results;
  for (const Step& step : steps_) {
    Tensors of;
    for (std::size_t k : step.of) of.push_back(made[k]);
    made.push_back(step.make(of, carried, stacked));
  }
  for (std::size_t k : sums_) results.push_back(made[k]);
  return results;
}

std::size_t LoopSums::later(std::vector<std::size_t> of, Later make) {
  steps_.push_back({std::move(of), std::move(make)});
  return steps_.size() - 1;
}

std::size_t LoopSums::carried(const Tensor& term) {
  const std::size_t place = symbols_.size();
  const Tensor added = widened(term);
  symbols_.push_back(Tensor::parameter(added.spec(), trace_));
  next_.push_back(symbols_.back() + added);
  return later({}, [place, t = term.dtype()](In, In carried, In) { return cast(carried[place], t); });
}

/// Nothing if there is no product in it that could wait.
std::optional<std::size_t> LoopSums::postponed(const Tensor& term) {
  const Node* node = term.node().get();
  if (const auto known = postponed_.find(node); known != postponed_.end()) return known->second;
  const std::optional<std::size_t> step = newly_postponed(*node);
  postponed_.emplace(node, step);
  return step;
}

std::optional<std::size_t> LoopSums::newly_postponed(const Node& node) {
  if (taken_.empty() || node.trace != trace_ || node.is_leaf()) return {};
  if (node.op.as<Matmul>()) return postponed_product(node);
  if (node.op.as<Concat>()) return postponed_concat(node);
  if (computes(node, Opcode::add)) return postponed_addition(node);
  if (((node.op.is_view() || node.op.is_alias()) && node.inputs.size() == 1) || computes(node, Opcode::convert))
    return postponed_view(node);
  return {};
}

std::optional<std::size_t> LoopSums::postponed_product(const Node& node) {
  const Matmul op = *node.op.as<Matmul>();
  const Tensor a(node.inputs[0]), b(node.inputs[1]);
  if (a.shape().rank() != 2 || b.shape().rank() != 2 || !varies(a) || !varies(b)) return {};
  const std::optional<Rows> all_a = all_of(a);
  const std::optional<Rows> all_b = all_a ? all_of(b) : std::nullopt;
  if (!all_b) return {};
  return later({}, [op, all_a = *all_a, all_b = *all_b](In, In, In stacked) {
    return gradus::detail::apply(op, joined(all_a(stacked), op.transpose_a), joined(all_b(stacked), !op.transpose_b));
  });
}

std::optional<std::size_t> LoopSums::postponed_addition(const Node& node) {
  const Tensor x(node.inputs[0]), y(node.inputs[1]);
  const std::optional<std::size_t> a = postponed(x), b = postponed(y);
  if (!a && !b) return {};
  std::vector<std::size_t> both{a ? *a : carried(x), b ? *b : carried(y)};
  return later(std::move(both), [](In made, In, In) { return made[0] + made[1]; });
}

/// Parts are added up each for itself; those that are the same in all iterations have to be zeros.
std::optional<std::size_t> LoopSums::postponed_concat(const Node& node) {
  for (const Ref<Node>& input : node.inputs)
    if (const Tensor part(input); !varies(part) && !is_zeros(part)) return {};
  std::vector<std::optional<std::size_t>> parts;
  for (const Ref<Node>& part : node.inputs) parts.push_back(postponed(Tensor(part)));
  if (std::ranges::none_of(parts, [](const auto& part) { return part.has_value(); })) return {};
  std::vector<std::size_t> sums;
  for (int k = 0; k < node.inputs.size(); ++k) {
    const Tensor part(node.inputs[k]);
    const std::optional<std::size_t>& step = parts[static_cast<std::size_t>(k)];
    sums.push_back(step ? *step : varies(part) ? carried(part) : later({}, zeros_later(part.spec())));
  }
  return later(std::move(sums), [op = node.op](In made, In, In) { return make_node(op, made); });
}

/// Views and conversions of a sum: the sum is made first.
std::optional<std::size_t> LoopSums::postponed_view(const Node& node) {
  if (!is_floating(node.spec.dtype)) return {};
  const std::optional<std::size_t> source = postponed(Tensor(node.inputs[0]));
  if (!source) return {};
  return later({*source}, [op = node.op](In made, In, In) { return make_node(op, made); });
}

/// An explicit stack: graphs may be deep.
bool LoopSums::varies(const Tensor& x) {
  std::vector<std::pair<const Node*, bool>> pending{{x.node().get(), false}};
  while (!pending.empty()) {
    const auto [node, entered] = pending.back();
    pending.pop_back();
    if (varies_.contains(node)) continue;
    if (node->trace != trace_ || node->is_leaf()) {
      varies_.emplace(node, node->trace == trace_);
    } else if (entered) {
      const bool any = std::ranges::any_of(node->inputs, [&](const Ref<Node>& in) { return varies_.at(in.get()); });
      varies_.emplace(node, any);
    } else {
      pending.emplace_back(node, true);
      for (const Ref<Node>& in : node->inputs) pending.emplace_back(in.get(), false);
    }
  }
  return varies_.at(x.node().get());
}

std::optional<LoopSums::Rows> LoopSums::all_of(const Tensor& x) {
  Shape shape = x.shape();
  shape.insert(0, iterations_);
  for (const Taken& each : taken_)
    if (each.symbol.node() == x.node()) return [all = each.all, shape](In) { return reshape(all, shape); };
  auto found = std::ranges::find_if(stacked_, [&](const Tensor& each) { return each.node() == x.node(); });
  const auto place = static_cast<std::size_t>(found - stacked_.begin());
  if (found == stacked_.end()) {
    const std::int64_t size = x.shape().size();
    if (!SizeChoice::choose(size <= 0 || kept_elements_ + size <= most_elements_)) return {};
    kept_elements_ += std::max<std::int64_t>(0, size);
    stacked_.push_back(x);
  }
  return [place](In stacked) { return stacked[place]; };
}

}  // namespace gradus
