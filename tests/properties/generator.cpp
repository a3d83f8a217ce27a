/// Values are computed by the oracle as the program grows: so it is known whether they lie in the domain of the next
/// op. Where they do not, a smooth function moves them into it.
#include "tests/properties/generator.h"
#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>
#include "gradus/base/error.h"
#include "gradus/base/rooms.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/shape.h"
#include "tests/ops/oracle.h"

namespace gradus::properties {
namespace {

using rows::Operand;
using rows::Row;

/// Values past this would make differences of their sums too coarse.
constexpr double tame = 100;

class Generator {
 public:
  Generator(std::uint64_t seed, const Taste& taste, const std::vector<Row>& rows) : taste_(taste), random_(seed) {
    program_.seed = seed;
    const bool branches_and_loops = chance(0.1);  // they take a hundred times as long
    for (const Row& row : rows)
      if (is_wanted(row) && (branches_and_loops || !has_control(row)))
        (row.elementwise ? elementwise_ : others_).push_back(&row);
  }

  Program make() {
    choose_base();
    for (int k = 1 + below(3); k > 0; --k) {  // C++ leaves the order of draws in one expression open
      const Shape shape = input_shape();
      const DType dtype = any_float();
      add_input(dtype, shape, {-2, 2}, "argument");
    }
    const int wanted = taste_.least_steps + below(taste_.most_steps - taste_.least_steps + 1);
    for (int attempts = 0; program_.length() < wanted && attempts < 20 * wanted; ++attempts) add_row();
    choose_outputs();
    return pruned(program_);
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  bool chance(double p) { return std::uniform_real_distribution<double>(0, 1)(random_) < p; }
  template <class T> const T& any_of(const std::vector<T>& list) {
    return list[static_cast<std::size_t>(below(static_cast<int>(list.size())))];
  }
  DType any_float() { return taste_.smooth || chance(0.4) ? f64 : f32; }
  const Step& step(int i) const { return program_.step(i); }
  int size() const { return static_cast<int>(program_.steps.size()); }

  /// Differences know nothing of stop_gradient and of what rounds to another type; single numbers are no op.
  bool is_wanted(const Row& row) const {
    if (!taste_.smooth) return true;
    if (!row.smooth || row.name == "stop_gradient") return false;
    return std::ranges::find(row.dtypes, f64) != row.dtypes.end() || !is_floating(row.dtypes.front());
  }

  static bool has_control(const Row& row) {
    return std::ranges::any_of(row.covers, [](const std::string& name) {
      const auto op = registered_ops().find(name);
      return op != registered_ops().end() && op->second->control;
    });
  }

  void choose_base() {
    const std::vector<std::int64_t> sizes = taste_.largest > 1000 ? std::vector<std::int64_t>{8, 17, 33, 64, 100}
                                                                  : std::vector<std::int64_t>{1, 2, 3, 3, 4, 5, 7};
    do {
      base_ = {};
      for (int i = 1 + below(3); i > 0; --i) base_.push_back(any_of(sizes));
    } while (base_.size() > taste_.largest);
  }
  /// The base, or what broadcasts to it.
  Shape input_shape() {
    Shape shape = base_;
    while (shape.rank() > 0 && chance(0.15)) shape.erase(0);
    for (int i = 0; i < shape.rank(); ++i)
      if (chance(0.15)) shape.set(i, 1);
    return shape;
  }

  int add_input(DType t, const Shape& shape, const Operand& domain, std::string what) {
    Array array{shape, {}};
    for (std::int64_t i = 0; i < shape.size(); ++i) array.values.push_back(draw_element(domain, t, random_));
    program_.steps.push_back({std::move(what), {}, {}, t, std::move(array)});
    return size() - 1;
  }

  /// The new step, or -1 if the op refuses its operands or what it gives is of no use.
  int add_step(const std::string& what, const std::function<Tensor(In)>& apply, std::vector<int> in,
               double result_gap = 0) {
    Tensors operands;
    for (int i : in) operands.push_back(rows::to_tensor(step(i).value, step(i).dtype));
    try {
      const Tensor y = apply(operands);
      if (y.shape().size() > taste_.largest || y.shape().rank() > 5) return -1;
      Array value = rows::oracle(y);
      for (double x : value.values)
        if (!(std::abs(x) <= 1e4) || (taste_.smooth && std::abs(x) < result_gap)) return -1;
      program_.steps.push_back({what, apply, std::move(in), y.dtype(), std::move(value)});
      return size() - 1;
    } catch (const Error&) { return -1; } catch (const std::out_of_range&) {
      return -1;
    }  // the row expects more parts than these shapes have
  }

  /// The same of a row. Differences tell nothing of data where the row is no smooth function.
  int add_step(const Row& row, std::vector<int> in) {
    std::vector<Array> data;
    for (int i : in) data.push_back(step(i).value);
    const int added = add_step(row.name, row.apply, std::move(in), row.result_gap);
    if (added < 0 || !taste_.smooth || !row.is_smooth_at || row.is_smooth_at(data)) return added;
    program_.steps.pop_back();
    return -1;
  }

  /// A row's domain, where ops that take any number are only kept from growing without bound.
  static Operand domain_of(Operand operand) {
    if (operand.high >= 9 || (operand.low == -2 && operand.high == 2)) operand.low = -tame, operand.high = tame;
    return operand;
  }
  static bool lies_in(const Array& array, const Operand& domain) {
    const double margin = 1e-3 * (domain.high - domain.low);
    return std::ranges::all_of(array.values, [&](double x) {
      return x >= domain.low + margin && x <= domain.high - margin &&
             (domain.gap == 0 || std::abs(x) >= domain.gap + margin);
    });
  }
  /// A step whose value lies in the domain: `i` itself, or a smooth function of it.
  int moved_into(int i, const Operand& domain) {
    if (lies_in(step(i).value, domain)) return i;
    if (!is_floating(step(i).dtype)) return -1;
    double low = domain.low, high = domain.high;
    if (domain.gap > 0)
      (high > domain.gap && (low > -domain.gap || chance(0.5)) ? low = domain.gap : high = -domain.gap);
    const double middle = (low + high) / 2, half = 0.95 * (high - low) / 2;
    return add_step(text("into [", low, ", ", high, "]"),
                    [=](In in) { return in[0] * rsqrt(1 + square(in[0])) * half + middle; }, {i});
  }

  std::vector<int> steps_of(DType t) const {
    std::vector<int> found;
    for (int i = 0; i < size(); ++i)
      if (step(i).dtype == t) found.push_back(i);
    return found;
  }
  bool broadcasts(const Shape& a, const Shape& b) const {
    try {
      return broadcast_shape(a, b, "").size() <= taste_.largest;
    } catch (const Error&) { return false; }
  }
  /// Rather a late one; -1: there is none.
  int pick(const std::vector<int>& from) {
    if (from.empty()) return -1;
    const int n = static_cast<int>(from.size());
    return from[static_cast<std::size_t>(std::max(below(n), below(n)))];
  }

  /// An operand of an elementwise op: broadcasts with those before it.
  int operand_beside(const Shape& shape, DType t, const Operand& domain) {
    std::vector<int> candidates = steps_of(t);
    std::erase_if(candidates, [&](int i) { return !broadcasts(step(i).value.shape, shape); });
    const int found = pick(candidates);
    const int moved = found < 0 ? -1 : moved_into(found, domain);
    if (moved >= 0) return moved;
    return add_input(t, chance(0.5) ? shape : Shape{}, domain, "data");
  }

  /// A value of exactly this shape: one that has it, another one rearranged, or data.
  int operand_of(const Shape& shape, DType t, const Operand& domain) {
    std::vector<int> candidates = steps_of(t), fitting = candidates;
    std::erase_if(fitting, [&](int i) { return step(i).value.shape != shape; });
    int found = pick(fitting);
    if (found < 0 && is_floating(t) && chance(0.7)) found = rearranged(pick(candidates), shape);
    if (found >= 0) found = moved_into(found, domain);
    return found >= 0 ? found : add_input(t, shape, domain, "data");
  }
  int rearranged(int i, const Shape& shape) {
    if (i < 0 || step(i).value.shape.size() == 0 || shape.size() == 0) return -1;
    const std::int64_t times = (shape.size() - 1) / step(i).value.shape.size() + 1;
    return add_step(text("rearranged to ", shape),
                    [=](In in) {
                      Tensor x = reshape(in[0], {-1});
                      if (times > 1) x = tile(x, {times});
                      if (x.shape().size() > shape.size()) x = slice(x, {0}, {shape.size()});
                      return reshape(x, shape);
                    },
                    {i});
  }

  DType dtype_for(const Row& row) {
    if (taste_.smooth && std::ranges::find(row.dtypes, f64) != row.dtypes.end()) return f64;
    std::vector<DType> present;
    for (DType t : row.dtypes)
      if (!steps_of(t).empty()) present.push_back(t);
    return present.empty() ? any_of(row.dtypes) : any_of(present);
  }

  void add_row() {
    const Row& row = *any_of(chance(0.55) ? elementwise_ : others_);
    const DType t = dtype_for(row);
    if (row.elementwise) add_elementwise(row, t);
    else if (row.operands.size() == 1 && !row.operands[0].dtype && chance(0.7)) add_of_any_shape(row, t);
    else add_of_given_shapes(row, t);
  }

  void add_elementwise(const Row& row, DType t) {
    Shape shape = base_;
    std::vector<int> in;
    for (const Operand& operand : row.operands) {
      const DType type = operand.dtype.value_or(t);
      in.push_back(operand_beside(shape, type, type == boolean ? Operand{-1, 2} : domain_of(operand)));
      if (!broadcasts(shape, step(in.back()).value.shape)) return;
      shape = in.size() == 1 ? step(in.back()).value.shape : broadcast_shape(shape, step(in.back()).value.shape, "");
    }
    add_step(row, std::move(in));
  }

  void add_of_any_shape(const Row& row, DType t) {
    const int found = pick(steps_of(t));
    const int moved = found < 0 ? -1 : moved_into(found, t == boolean ? Operand{-1, 2} : domain_of(row.operands[0]));
    if (moved >= 0) add_step(row, {moved});
  }

  void add_of_given_shapes(const Row& row, DType t) {
    const std::vector<Shape>& shapes = any_of(row.shapes);
    if (shapes.size() != row.operands.size() && !row.operands.empty()) return;
    for (const Shape& shape : shapes)
      if (shape.size() > taste_.largest || (taste_.smooth && shape.size() == 0)) return;
    std::vector<int> in;
    for (std::size_t i = 0; i < row.operands.size(); ++i) {
      const DType type = row.operands[i].dtype.value_or(t);
      const bool any = type == boolean && !row.operands[i].dtype;
      in.push_back(operand_of(shapes[i], type, any ? Operand{-1, 2} : domain_of(row.operands[i])));
    }
    add_step(row, std::move(in));
  }

  /// What nobody has used, the last ones; at least one is a float.
  void choose_outputs() {
    std::vector<bool> used(program_.steps.size());
    for (const Step& step : program_.steps)
      for (int i : step.in) used[static_cast<std::size_t>(i)] = true;
    for (int i = size() - 1; i >= 0 && program_.outputs.size() < 4; --i)
      if (step(i).apply && !used[static_cast<std::size_t>(i)] && (!taste_.smooth || is_floating(step(i).dtype)))
        program_.outputs.push_back(i);
    const auto is_float = [&](int i) { return is_floating(step(i).dtype); };
    if (std::ranges::none_of(program_.outputs, is_float))
      for (int i = size() - 1; i >= 0; --i)
        if (is_float(i)) {
          program_.outputs.push_back(i);
          break;
        }
  }

  const Taste taste_;
  std::mt19937_64 random_;
  std::vector<const Row*> elementwise_, others_;
  Shape base_;
  Program program_;
};

}  // namespace

Program generate(std::uint64_t seed, const Taste& taste, const std::vector<Row>& rows) {
  return Generator(seed, taste, rows).make();
}

}  // namespace gradus::properties
