/// Branches and loops, iteration by iteration.
#include "tests/reference/oracle_control.h"
#include <algorithm>
#include "gradus/ops/control_ops.h"
#include "tests/reference/oracle.h"

namespace gradus::reference {
namespace {

using Numbers = std::vector<double>;
using Several = std::vector<Numbers>;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Elements [begin, begin + count) of an array whose elements have `size` numbers each.
Numbers part(const Numbers& whole, std::size_t begin, std::size_t count, std::size_t size) {
  const auto first = whole.begin() + static_cast<std::ptrdiff_t>(begin * size);
  return {first, first + static_cast<std::ptrdiff_t>(count * size)};
}
void put(Numbers& whole, std::size_t offset, const Numbers& numbers) {
  std::ranges::copy(numbers, whole.begin() + static_cast<std::ptrdiff_t>(offset));
}

Numbers branch(const Cond& op, Several in) {
  const Region& taken = in[0][0] != 0 ? op.if_true : op.if_false;
  in.erase(in.begin());
  return evaluate(taken.graph(), in)[at(op.output)];
}

Numbers scan(const Scan& op, const Spec& spec, const Several& in) {
  const std::int64_t count = op.counted ? static_cast<std::int64_t>(in[0][0]) : op.iterations;
  Several carries(in.begin() + op.first_carry(), in.begin() + op.first_single());
  Numbers result(at(spec.shape.size()));
  const auto results = static_cast<int>(op.body.outputs());
  for (std::int64_t t = 0; t < count; ++t) {
    const std::int64_t i = op.reverse ? count - 1 - t : t;
    const bool is_last = op.last && i + 1 == op.iterations;
    if (op.output >= results)
      put(result, at(i) * carries[at(op.output - results)].size(), carries[at(op.output - results)]);
    Several inputs = carries;
    for (std::size_t k = inputs.size(); k < op.body.inputs(); ++k) {
      const Numbers& whole = in[k + at(op.first_carry())];
      const int operand = static_cast<int>(k) + op.first_carry();
      const std::size_t size = at(op.body.input(k).shape.size());
      const std::size_t taken = is_last ? at(op.last.input(k).shape.size()) : size;
      inputs.push_back(operand < op.first_whole() ? part(whole, at(i) * size, taken, 1) : whole);
    }
    const Several made = evaluate((is_last ? op.last : op.body).graph(), inputs);
    carries.assign(made.begin(), made.begin() + op.carries);
    if (op.output >= op.carries && op.output < results)
      put(result, at(i) * at(op.body.output(at(op.output)).shape.size()), made[at(op.output)]);
  }
  return op.output < op.carries ? carries[at(op.output)] : result;
}

Numbers loop(const While& op, const Spec& spec, Several in) {
  Numbers history(at(spec.shape.size()));
  std::int64_t count = 0;
  while ((op.max_iterations == 0 || count < op.max_iterations) && evaluate(op.condition.graph(), in)[0][0] != 0) {
    const int carry = op.output - op.carries - 1;
    if (carry >= 0) put(history, at(count) * in[at(carry)].size(), in[at(carry)]);
    const Several made = evaluate(op.body.graph(), in);
    std::ranges::copy(made, in.begin());
    ++count;
  }
  if (op.output < op.carries) return in[at(op.output)];
  return op.output == op.carries ? Numbers{static_cast<double>(count)} : history;
}

}  // namespace

Numbers control(const Value& v, const Several& in) {
  if (const Cond* op = v.op.as<Cond>()) return branch(*op, in);
  if (const Scan* op = v.op.as<Scan>()) return scan(*op, v.spec, in);
  if (const While* op = v.op.as<While>()) return loop(*op, v.spec, in);
  throw InternalError(text("internal fault: the oracle has no construct `", v.op->control, "`"));
}

}  // namespace gradus::reference
