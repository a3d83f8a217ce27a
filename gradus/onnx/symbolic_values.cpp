/// A small interpreter of the nodes behind a tensor, over numbers and dimensions.
#include "gradus/onnx/symbolic_values.h"
#include <algorithm>
#include <unordered_map>
#include "gradus/ops/concat.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/gather_ops.h"
#include "gradus/tensor/derived_dimension.h"

namespace gradus::onnx {
namespace {

using Values = std::vector<Extent>;

/// Shapes are short; whatever is longer is data.
constexpr std::int64_t most_elements = 1024;

/// Thrown and caught within this file.
struct NotKnown {};

Extent known(std::int64_t value) { return {value, false}; }
Extent of_dimension(std::int64_t d) { return {d, dimension::is_symbolic(d)}; }
std::int64_t number(const Extent& x) {
  if (x.symbolic) throw NotKnown();
  return x.value;
}
/// As a dimension: those are not negative.
std::int64_t as_dimension(const Extent& x) {
  if (!x.symbolic && x.value < 0) throw NotKnown();
  return x.value;
}

Extent sum(const Extent& a, const Extent& b) {
  if (!a.symbolic && !b.symbolic) return known(a.value + b.value);
  if (!a.symbolic && a.value < 0) return of_dimension(dimension::subtract(b.value, -a.value));
  if (!b.symbolic && b.value < 0) return of_dimension(dimension::subtract(a.value, -b.value));
  return of_dimension(dimension::add(a.value, b.value));
}
Extent difference(const Extent& a, const Extent& b) {
  if (!a.symbolic && !b.symbolic) return known(a.value - b.value);
  if (!b.symbolic) return sum(a, known(-b.value));
  return of_dimension(dimension::subtract(as_dimension(a), b.value));
}
Extent product(const Extent& a, const Extent& b) {
  if (!a.symbolic && !b.symbolic) return known(a.value * b.value);
  return of_dimension(dimension::multiply(as_dimension(a), as_dimension(b)));
}
Extent quotient(const Extent& a, const Extent& b) {
  if (!a.symbolic && !b.symbolic) return known(b.value == 0 ? 0 : a.value / b.value);
  const std::int64_t of = as_dimension(a), by = as_dimension(b);
  if (const auto whole = dimension::divide(of, by)) return of_dimension(*whole);
  if (by < 0 || !dimension::is_never_negative(of)) throw NotKnown();  // rounded towards zero
  return of_dimension(dimension::floor_divide(of, by));
}
/// A dimension is never negative, which decides some comparisons.
bool is_less(const Extent& a, const Extent& b) {
  if (a.symbolic && !b.symbolic && b.value <= 0) return false;
  if (b.symbolic && !a.symbolic && a.value < 0) return true;
  return number(a) < number(b);
}
Extent smaller(const Extent& a, const Extent& b) {
  if (a.symbolic || b.symbolic) return of_dimension(dimension::minimum(as_dimension(a), as_dimension(b)));
  return a.value < b.value ? a : b;
}
Extent larger(const Extent& a, const Extent& b) {
  if (a.symbolic || b.symbolic) return of_dimension(dimension::maximum(as_dimension(a), as_dimension(b)));
  return a.value < b.value ? b : a;
}
bool is_equal(const Extent& a, const Extent& b) {
  if (a.symbolic && b.symbolic && a.value == b.value) return true;
  if (a.symbolic != b.symbolic && (a.symbolic ? b : a).value < 0) return false;
  return number(a) == number(b);
}

/// The bits of an integer or boolean, widened.
std::int64_t signed_value(std::uint64_t bits, DType type) {
  const auto unused = static_cast<int>(64 - 8 * size_of(type));
  bits <<= unused;
  return is_signed(type) ? static_cast<std::int64_t>(bits) >> unused : static_cast<std::int64_t>(bits >> unused);
}

/// One element of a formula.
Extent evaluated(const scalar::Code& code, const Values& in) {
  using scalar::Opcode;
  Values values;
  const auto at = [&](int i) { return values[static_cast<std::size_t>(i)]; };
  for (const scalar::Instruction& i : code.instructions) {
    const auto result = [&]() -> Extent {
      switch (i.op) {
        case Opcode::input: return in[static_cast<std::size_t>(i.a)];
        case Opcode::constant:
          if (is_floating(i.type)) throw NotKnown();
          return known(signed_value(i.bits, i.type));
        case Opcode::extent: return of_dimension(static_cast<std::int64_t>(i.bits));
        case Opcode::add: return sum(at(i.a), at(i.b));
        case Opcode::subtract: return difference(at(i.a), at(i.b));
        case Opcode::multiply: return product(at(i.a), at(i.b));
        case Opcode::divide: return quotient(at(i.a), at(i.b));
        case Opcode::negate: return known(-number(at(i.a)));
        case Opcode::less: return known(is_less(at(i.a), at(i.b)));
        case Opcode::less_equal: return known(!is_less(at(i.b), at(i.a)));
        case Opcode::equal: return known(is_equal(at(i.a), at(i.b)));
        case Opcode::minimum: return smaller(at(i.a), at(i.b));
        case Opcode::maximum: return larger(at(i.a), at(i.b));
        case Opcode::select: return number(at(i.a)) ? at(i.b) : at(i.c);
        case Opcode::bit_and: return known(number(at(i.a)) & number(at(i.b)));
        case Opcode::bit_or: return known(number(at(i.a)) | number(at(i.b)));
        case Opcode::bit_xor: return known(number(at(i.a)) ^ number(at(i.b)));
        case Opcode::convert:
          if (is_floating(i.type)) throw NotKnown();
          return i.type == boolean ? known(!is_equal(at(i.a), known(0))) : at(i.a);
        default: throw NotKnown();
      }
    }();
    values.push_back(result);
  }
  return at(code.result);
}

class Interpreter {
 public:
  const Values& of(const Node& node) {
    if (const auto found = done_.find(&node); found != done_.end()) return found->second;
    if (++depth_ > 500) throw NotKnown();
    Values values = computed(node);
    --depth_;
    return done_[&node] = std::move(values);
  }

 private:
  static std::int64_t elements(const Node& node) {
    const std::int64_t count = node.spec.shape.is_symbolic() ? -1 : node.spec.shape.size();
    if (count < 0 || count > most_elements || is_floating(node.spec.dtype)) throw NotKnown();
    return count;
  }

  Values computed(const Node& node) {
    const auto count = static_cast<std::size_t>(elements(node));
    if (node.trace == 0) return concrete(node);
    if (node.is_leaf()) throw NotKnown();
    const AnyOp& op = node.op;
    Values result(count);
    if (op.is_index()) {
      const scalar::Code code = op.index_formula();
      for (std::size_t i = 0; i < count; ++i) result[i] = evaluated(code, {known(static_cast<std::int64_t>(i))});
    } else if (op.is_elementwise()) {
      elementwise(node, result);
    } else if (op.is_alias()) {
      return of(*node.inputs[0]);
    } else if (op.is_view()) {
      viewed(node, result);
    } else if (op.as<CheckRange>()) {
      return of(*node.inputs[0]);
    } else if (op.is_reduction()) {
      reduced(node, result);
    } else if (op.as<Concat>()) {
      return joined(node);
    } else if (op.as<Gather>()) {
      gathered(node, result);
    } else {
      throw NotKnown();
    }
    return result;
  }

  static Values concrete(const Node& node) {
    const Tensor wide = cast(Tensor(Ref<Node>(const_cast<Node*>(&node))), i64);
    Values values;
    for (const std::int64_t each : wide.span<std::int64_t>()) values.push_back(known(each));
    return values;
  }

  void elementwise(const Node& node, Values& result) {
    std::vector<DType> dtypes;
    std::vector<const Values*> operands;
    for (const Ref<Node>& input : node.inputs) {
      dtypes.push_back(input->spec.dtype);
      operands.push_back(&of(*input));
    }
    const scalar::Code code = node.op.formula(dtypes);
    for (std::size_t i = 0; i < result.size(); ++i) {
      Values in;
      for (const Values* operand : operands) in.push_back((*operand)[i]);
      result[i] = evaluated(code, in);
    }
  }

  void viewed(const Node& node, Values& result) {
    const Shape &in = node.inputs[0]->spec.shape, &out = node.spec.shape;
    const Values& source = of(*node.inputs[0]);
    const View view = node.op->view(node.op.attributes(), in, out);
    for (std::size_t i = 0; i < result.size(); ++i) {
      std::int64_t place = view.offset;
      auto rest = static_cast<std::int64_t>(i);
      for (int d = out.rank() - 1; d >= 0; --d) {
        const std::int64_t step = rest % out[d] * view.strides[d];
        place += view.backwards >> d & 1 ? -step : step;
        rest /= out[d];
      }
      result[i] = source.at(static_cast<std::size_t>(place));
    }
  }

  /// For a vector, or for rows: the last axis alone.
  void reduced(const Node& node, Values& result) {
    if (node.op.axis() != -1) throw NotKnown();
    const Values& source = of(*node.inputs[0]);
    const scalar::Code code = node.op.combination(node.spec.dtype);
    const std::size_t n = result.empty() ? 0 : source.size() / result.size();
    if (n == 0) throw NotKnown();
    for (std::size_t i = 0; i < result.size(); ++i) {
      result[i] = source[i * n];
      for (std::size_t j = 1; j < n; ++j) result[i] = evaluated(code, {result[i], source[i * n + j]});
    }
  }

  Values joined(const Node& node) {
    if (node.spec.shape.rank() != 1) throw NotKnown();
    Values all;
    for (const Ref<Node>& part : node.inputs) {
      const Values& values = of(*part);
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  void gathered(const Node& node, Values& result) {
    if (node.inputs[0]->spec.shape.rank() != 1) throw NotKnown();
    const Values &source = of(*node.inputs[0]), &indices = of(*node.inputs[1]);
    for (std::size_t i = 0; i < result.size(); ++i) {
      const auto index = static_cast<std::size_t>(number(indices[i]));
      if (index >= source.size()) throw NotKnown();
      result[i] = source[index];
    }
  }

  std::unordered_map<const Node*, Values> done_;
  int depth_ = 0;
};

}  // namespace

std::optional<std::vector<Extent>> symbolic_values(const Tensor& x) {
  try {
    return Interpreter().of(*x.node());
  } catch (const NotKnown&) { return {}; }
}

}  // namespace gradus::onnx
