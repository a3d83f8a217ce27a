/// Every elementwise op without attributes, in every dtype, on awkward numbers: what the device gives against the
/// interpreter of formulas, bit by bit.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <set>
#include "gradus/base/floating_point_state.h"
#include "gradus/base/rooms.h"
#include "gradus/ops/constant.h"
#include "gradus/scalar/interpret.h"
#include "tests/xla/on_plugin.h"
#include "tests/xla/plugin.h"

namespace gradus::sweep_test {
namespace {

using ElementwiseOnPlugin = testing_plugin::WithPlugin;

constexpr std::int64_t count = 512;
using Bits = std::vector<std::uint64_t>;

Bits awkward_numbers(DType t, unsigned seed) {
  std::mt19937_64 random(seed);
  Bits bits;
  const auto add = [&](double v) { bits.push_back(scalar::Literal(v).bits_as(t)); };
  if (t == boolean) {
    for (int i = 0; i < count; ++i) bits.push_back(random() & 1);
    return bits;
  }
  const int width = static_cast<int>(size_of(t)) * 8;
  const std::uint64_t mask = width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
  if (is_floating(t)) {
    for (const double v : {0.0,
                           1.0,
                           0.5,
                           1.5,
                           2.5,
                           3.0,
                           7.0,
                           1e-10,
                           1e-20,
                           1e-37,
                           3e38,
                           88.5,
                           87.3,
                           103.0,
                           0.99999994,
                           1e10,
                           2147483648.0,
                           9223372036854775808.0,
                           255.5,
                           65535.5,
                           1e-4,
                           17.0,
                           std::numeric_limits<double>::infinity()})
      add(v), add(-v);
    for (int i = 0; i < 4; ++i) add(std::numeric_limits<double>::quiet_NaN());
    std::uniform_real_distribution<double> small(-4, 4), wide(-20, 20);
    while (std::ssize(bits) < count) {
      const double few = small(random);
      add(bits.size() % 2 ? few : std::copysign(std::exp2(wide(random)), few));
    }
  } else {
    for (const std::uint64_t v : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}, std::uint64_t{2},
                                  std::uint64_t{7}, ~std::uint64_t{6}, mask >> 1, (mask >> 1) + 1, std::uint64_t{31}})
      bits.push_back(v & mask);
    while (std::ssize(bits) < count) bits.push_back((bits.size() % 2 ? random() % 41 - 20 : random()) & mask);
  }
  std::shuffle(bits.begin(), bits.end(), random);
  return bits;
}

Tensor tensor_of(const Bits& bits, DType t) {
  std::string bytes;
  for (const std::uint64_t b : bits)
    bytes.append(reinterpret_cast<const char*>(&b), static_cast<std::size_t>(size_of(t)));
  return detail::from_bytes(bytes.data(), bits.size(), {t, {std::ssize(bits)}});
}
std::uint64_t bits_at(const Tensor& x, std::size_t i) {
  std::uint64_t bits = 0;
  const auto size = static_cast<std::size_t>(size_of(x.dtype()));
  std::memcpy(&bits, static_cast<const char*>(x.host()) + i * size, size);
  return bits;
}
double value_of(std::uint64_t bits, DType t) {
  return with_type(t, [&]<class T>(T x) {
    std::memcpy(static_cast<void*>(&x), &bits, sizeof x);
    return static_cast<double>(x);
  });
}
/// Distance in units of the last place.
double ulps(std::uint64_t a, std::uint64_t b, DType t) {
  const auto place = [&](std::uint64_t x) {
    const std::uint64_t sign = std::uint64_t{1} << (8 * size_of(t) - 1), magnitude = x & (sign - 1);
    return x & sign ? -static_cast<std::int64_t>(magnitude) : static_cast<std::int64_t>(magnitude);
  };
  const std::int64_t from = place(a), to = place(b);
  return static_cast<double>(static_cast<std::uint64_t>(std::max(from, to)) -
                             static_cast<std::uint64_t>(std::min(from, to)));
}

/// Zeros, and what arithmetic may flush.
bool is_tiny(double x, DType t) { return std::abs(x) < (t == f64 ? 2.3e-308 : t == f16 ? 6.2e-5 : 1.2e-38); }

struct Case {
  std::string name;
  AnyOp op;
  std::vector<DType> types;
  std::vector<Bits> in;
};

std::vector<Case> cases_of(DType t) {
  std::vector<Case> cases;
  for (const auto& [name, type] : registered_ops()) {
    if (!type->emit || !takes(type->takes, t)) continue;
    Case c{std::string(name), {}, {}, {}};
    std::vector<Spec> specs;
    for (int k = 0; k < type->arity; ++k) {
      c.types.push_back(name == "where" && k == 0 ? boolean : t);
      specs.push_back({c.types.back(), {count}});
      c.in.push_back(awkward_numbers(c.types.back(), static_cast<unsigned>(k + 1)));
    }
    try {
      c.op = parse_op(name, "");
      c.op.infer(specs);
    } catch (const Error&) { continue; }  // it has attributes, or takes other dtypes
    cases.push_back(std::move(c));
  }
  return cases;
}

/// Functions of StableHLO itself differ in the last places, and multiply-adds are rounded once or twice: what an op may
/// differ by, in units of the last place, on a processor.
double allowed_ulps(const std::string& name, DType t) {
  if (!is_floating(t)) return 0;
  if (is_narrow(t)) return name == "one_plus_tanh_slope" ? 4 : 1;
  static const std::set<std::string> cancels{"pow", "tan", "logaddexp", "softplus", "expint"};
  static const std::set<std::string> squares{"erfc", "gelu", "erf_slope", "twice_normal_cdf"};  // exp(-x^2)
  if (squares.contains(name)) return 1024;
  return cancels.contains(name) ? 64 : 16;
}

/// Of ops that take a product away from another, the error beside the terms, in units of 1.
double allowed_error(const std::string& name, DType t, double largest_operand) {
  const double epsilon = t == f64 ? 0x1p-52 : t == f32 ? 0x1p-23 : 0;
  if (name == "tanh_grad") return 4 * epsilon * largest_operand * largest_operand;          // dy (1 - y^2)
  if (name.starts_with("fresnel")) return 1024 * epsilon * std::max(1.0, largest_operand);  // of x^2
  if (name == "one_plus_tanh_slope") return 8 * epsilon;  // 1 - tanh(x)^2, by the device's tanh
  if (name == "normal_quantile") return 4096 * epsilon * std::max(1.0, largest_operand);
  return 0;
}

class Sweep {
 public:
  explicit Sweep(DType t) : t_(t), cases_(cases_of(t)) {}

  void run(const Device& device) {
    for (const Case& c : cases_) add(c);
    ASSERT_GT(cases_.size(), 5u);
    const Tensors there = testing_plugin::computed_there(graph_, inputs_, device);
    for (std::size_t k = 0; k < cases_.size(); ++k) compare(cases_[k], there[k]);
  }

 private:
  void add(const Case& c) {
    Value v{.op = c.op};
    std::vector<Spec> specs;
    for (std::size_t k = 0; k < c.in.size(); ++k) {
      specs.push_back({c.types[k], {count}});
      v.in.push_back(graph_.add(Value{.spec = specs.back()}));
      graph_.inputs.push_back(v.in.back());
      inputs_.push_back(tensor_of(c.in[k], c.types[k]));
    }
    v.spec = c.op.infer(specs);
    graph_.outputs.push_back(graph_.add(std::move(v)));
  }

  void compare(const Case& c, const Tensor& there) const {
    const KernelFloats floats;
    const scalar::Code code = c.op.formula(c.types);
    const DType to = there.dtype();
    const std::uint64_t mask = size_of(to) == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << 8 * size_of(to)) - 1;
    int wrong = 0;
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<std::uint64_t> operands;
      for (const Bits& b : c.in) operands.push_back(b[i]);
      const std::uint64_t ours = scalar::evaluate_bits(code, operands) & mask, theirs = bits_at(there, i);
      if (ours == theirs) continue;
      const double x = value_of(ours, to), y = value_of(theirs, to);
      if (is_floating(to)) {
        if (std::isnan(x) && std::isnan(y)) continue;
        if (is_tiny(x, t_) && is_tiny(y, t_)) continue;
        const bool is_huge_angle = std::ranges::any_of(operands, [&](std::uint64_t o) {
          return (c.name == "sin" || c.name == "cos" || c.name == "tan") && std::abs(value_of(o, t_)) > 1e9;
        });
        if (is_huge_angle) continue;
        double largest = 0;
        for (std::size_t k = 0; k < operands.size(); ++k)
          largest = std::max(largest, std::abs(value_of(operands[k], c.types[k])));
        const bool is_near =
            ulps(ours, theirs, to) <= allowed_ulps(c.name, t_) || std::abs(x - y) <= allowed_error(c.name, t_, largest);
        if (std::isfinite(x) && std::isfinite(y) && is_near) continue;
      }
      if (++wrong > 3) break;
      std::string of;
      for (std::size_t k = 0; k < operands.size(); ++k) of += text(k ? ", " : "", value_of(operands[k], c.types[k]));
      ADD_FAILURE() << c.name << " of " << t_ << "(" << of << "): the formula gives " << x << ", the device " << y;
    }
  }

  const DType t_;
  const std::vector<Case> cases_;
  Graph graph_;
  Tensors inputs_;
};

class SweepOnPlugin : public testing_plugin::WithPlugin, public ::testing::WithParamInterface<DType> {};

TEST_P(SweepOnPlugin, GivesWhatFormulasGive) { Sweep(GetParam()).run(device()); }
INSTANTIATE_TEST_SUITE_P(Dtypes, SweepOnPlugin, ::testing::ValuesIn(all_dtypes),
                         [](const auto& info) { return std::string(name_of(info.param)); });

/// Bit for bit: one rounding, truncation, saturation, wrapping, NaN.
TEST_F(ElementwiseOnPlugin, CastsAreExact) {
  struct Made {
    DType from, to;
    Bits in;
  };
  Graph graph;
  Tensors inputs;
  std::vector<Made> all;
  for (const DType from : all_dtypes) {
    const Bits bits = awkward_numbers(from, 7);
    const int input = graph.add(Value{.spec = {from, {count}}});
    graph.inputs.push_back(input);
    inputs.push_back(tensor_of(bits, from));
    for (const DType to : all_dtypes) {
      if (from == to) continue;
      graph.outputs.push_back(
          graph.add(Value{.op = parse_op("cast", text("to=", to)), .in = {input}, .spec = {to, {count}}}));
      all.push_back({from, to, bits});
    }
  }
  const Tensors there = testing_plugin::computed_there(graph, inputs, device());
  const KernelFloats floats;
  for (std::size_t k = 0; k < all.size(); ++k) {
    const Made& c = all[k];
    const std::array types{c.from};
    const scalar::Code code = parse_op("cast", text("to=", c.to)).formula(types);
    const std::uint64_t mask = size_of(c.to) == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << 8 * size_of(c.to)) - 1;
    int wrong = 0;
    for (std::size_t i = 0; i < count && wrong < 3; ++i) {
      const std::array operands{c.in[i]};
      const std::uint64_t ours = scalar::evaluate_bits(code, operands) & mask, theirs = bits_at(there[k], i);
      const double x = value_of(ours, c.to), y = value_of(theirs, c.to);
      if (ours == theirs || (std::isnan(x) && std::isnan(y))) continue;
      if (is_floating(c.to) && is_tiny(x, c.to) && is_tiny(y, c.to) && c.to != f16) continue;  // flushed
      ++wrong;
      ADD_FAILURE() << c.from << " to " << c.to << ": " << value_of(c.in[i], c.from) << " is " << x << ", there " << y;
    }
  }
}

/// NaN wins in maxima and minima, wherever it stands.
TEST_F(ElementwiseOnPlugin, NanWinsInReductions) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  for (std::size_t place = 0; place < 40; place += 13) {
    std::vector<float> numbers(40, 1.0f);
    numbers[place] = nan;
    const Tensor x = from_values(numbers, {1, 40});
    Graph graph;
    graph.inputs = {graph.add(Value{.spec = {f32, {1, 40}}})};
    for (const char* const op : {"max", "min"})
      graph.outputs.push_back(graph.add(Value{.op = parse_op(op, "axis=-1"), .in = {0}, .spec = {f32, {1, 1}}}));
    for (const Tensor& y : testing_plugin::computed_there(graph, {x}, device()))
      EXPECT_TRUE(std::isnan(static_cast<const float*>(y.host())[0])) << place;
  }
}

/// A cast to a narrow float and back rounds, whatever precision a compiler allows itself in excess.
TEST_F(ElementwiseOnPlugin, ACastAndBackRounds) {
  for (const DType narrow : {bf16, f16}) {
    Graph graph;
    const int x = graph.add(Value{.spec = {f32, {count}}});
    graph.inputs = {x};
    const int there =
        graph.add(Value{.op = parse_op("cast", text("to=", narrow)), .in = {x}, .spec = {narrow, {count}}});
    graph.outputs = {graph.add(Value{.op = parse_op("cast", "to=f32"), .in = {there}, .spec = {f32, {count}}})};
    const Bits bits = awkward_numbers(f32, 3);
    const Tensors got = testing_plugin::computed_there(graph, {tensor_of(bits, f32)}, device());
    for (std::size_t i = 0; i < count; ++i) {
      const auto exact = static_cast<float>(value_of(bits[i], f32));
      const float want = narrow == bf16 ? static_cast<float>(bfloat16(exact)) : static_cast<float>(half(exact));
      const auto found = static_cast<float>(value_of(bits_at(got[0], i), f32));
      if (std::isnan(want) && std::isnan(found)) continue;
      if (is_tiny(want, narrow) && is_tiny(found, narrow)) continue;
      EXPECT_EQ(found, want) << exact << " by way of " << narrow;
    }
  }
}

}  // namespace
}  // namespace gradus::sweep_test
