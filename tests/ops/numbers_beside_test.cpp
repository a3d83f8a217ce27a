/// A bare number may stand beside a tensor on either side of every function of two elementwise operands: it takes the
/// tensor's dtype, as beside operators; what the dtype cannot hold is refused.
#include <gtest/gtest.h>
#include <functional>
#include "gradus/base/rooms.h"
#include "gradus/gradus.h"
#include "tests/errors.h"

namespace numbers_beside_test {
using namespace gradus;

using Two = std::function<Tensor(const NumberOrTensor&, const NumberOrTensor&)>;
enum class Of { floats, integers, numbers, booleans, anything };
struct Named {
  const char* name;
  Of of;
  Two f;
};

/// Names that take NumberOrTensor, and those that have overloads for numbers.
template <class F> Two overloaded(F f) {
  return [f](const NumberOrTensor& a, const NumberOrTensor& b) {
    if (a.is_number()) return f(3, b.tensor("test"));
    if (b.is_number()) return f(a.tensor("test"), 3);
    return f(a.tensor("test"), b.tensor("test"));
  };
}
const std::vector<Named>& all() {
  static const std::vector<Named> functions{
      {"add", Of::numbers, [](const auto& a, const auto& b) { return add(a, b); }},
      {"subtract", Of::numbers, [](const auto& a, const auto& b) { return subtract(a, b); }},
      {"multiply", Of::numbers, [](const auto& a, const auto& b) { return multiply(a, b); }},
      {"divide", Of::numbers, [](const auto& a, const auto& b) { return divide(a, b); }},
      {"realdiv", Of::numbers, [](const auto& a, const auto& b) { return realdiv(a, b); }},
      {"scalar_mul", Of::numbers, [](const auto& a, const auto& b) { return scalar_mul(a, b); }},
      {"less", Of::numbers, [](const auto& a, const auto& b) { return less(a, b); }},
      {"less_equal", Of::numbers, [](const auto& a, const auto& b) { return less_equal(a, b); }},
      {"greater", Of::numbers, [](const auto& a, const auto& b) { return greater(a, b); }},
      {"greater_equal", Of::numbers, [](const auto& a, const auto& b) { return greater_equal(a, b); }},
      {"floordiv", Of::numbers, [](const auto& a, const auto& b) { return floordiv(a, b); }},
      {"floormod", Of::numbers, [](const auto& a, const auto& b) { return floormod(a, b); }},
      {"truediv", Of::numbers, [](const auto& a, const auto& b) { return truediv(a, b); }},
      {"truncatediv", Of::numbers, [](const auto& a, const auto& b) { return truncatediv(a, b); }},
      {"truncatemod", Of::numbers, [](const auto& a, const auto& b) { return truncatemod(a, b); }},
      {"squared_difference", Of::numbers, [](const auto& a, const auto& b) { return squared_difference(a, b); }},
      {"fmax", Of::numbers, [](const auto& a, const auto& b) { return fmax(a, b); }},
      {"fmin", Of::numbers, [](const auto& a, const auto& b) { return fmin(a, b); }},
      {"atan2", Of::floats, [](const auto& a, const auto& b) { return atan2(a, b); }},
      {"logaddexp", Of::floats, [](const auto& a, const auto& b) { return logaddexp(a, b); }},
      {"logaddexp2", Of::floats, [](const auto& a, const auto& b) { return logaddexp2(a, b); }},
      {"hypot", Of::floats, [](const auto& a, const auto& b) { return hypot(a, b); }},
      {"xlogy", Of::floats, [](const auto& a, const auto& b) { return xlogy(a, b); }},
      {"xlog1py", Of::floats, [](const auto& a, const auto& b) { return xlog1py(a, b); }},
      {"xdivy", Of::floats, [](const auto& a, const auto& b) { return xdivy(a, b); }},
      {"divide_no_nan", Of::floats, [](const auto& a, const auto& b) { return divide_no_nan(a, b); }},
      {"multiply_no_nan", Of::floats, [](const auto& a, const auto& b) { return multiply_no_nan(a, b); }},
      {"copysign", Of::floats, [](const auto& a, const auto& b) { return copysign(a, b); }},
      {"heaviside", Of::floats, [](const auto& a, const auto& b) { return heaviside(a, b); }},
      {"igamma", Of::floats, [](const auto& a, const auto& b) { return igamma(a, b); }},
      {"igammac", Of::floats, [](const auto& a, const auto& b) { return igammac(a, b); }},
      {"zeta", Of::floats, [](const auto& a, const auto& b) { return zeta(a, b); }},
      {"isclose", Of::floats, [](const NumberOrTensor& a, const NumberOrTensor& b) { return isclose(a, b); }},
      {"integer_pow", Of::integers, [](const auto& a, const auto& b) { return integer_pow(a, b); }},
      {"gcd", Of::integers, [](const auto& a, const auto& b) { return gcd(a, b); }},
      {"lcm", Of::integers, [](const auto& a, const auto& b) { return lcm(a, b); }},
      {"bitwise_and", Of::integers, [](const auto& a, const auto& b) { return bitwise_and(a, b); }},
      {"bitwise_or", Of::integers, [](const auto& a, const auto& b) { return bitwise_or(a, b); }},
      {"bitwise_xor", Of::integers, [](const auto& a, const auto& b) { return bitwise_xor(a, b); }},
      {"left_shift", Of::integers, [](const auto& a, const auto& b) { return left_shift(a, b); }},
      {"right_shift", Of::integers, [](const auto& a, const auto& b) { return right_shift(a, b); }},
      {"maximum", Of::numbers, overloaded([](const auto& a, const auto& b) { return maximum(a, b); })},
      {"minimum", Of::numbers, overloaded([](const auto& a, const auto& b) { return minimum(a, b); })},
      {"mod", Of::numbers, overloaded([](const auto& a, const auto& b) { return mod(a, b); })},
      {"floor_divide", Of::numbers, overloaded([](const auto& a, const auto& b) { return floor_divide(a, b); })},
      {"equal", Of::numbers, overloaded([](const auto& a, const auto& b) { return equal(a, b); })},
      {"not_equal", Of::numbers, overloaded([](const auto& a, const auto& b) { return not_equal(a, b); })},
  };
  return functions;
}

bool takes(Of of, DType t) {
  switch (of) {
    case Of::floats: return is_floating(t);
    case Of::integers: return is_integer(t);
    case Of::numbers: return t != boolean;
    case Of::booleans: return t == boolean;
    case Of::anything: return true;
  }
  return false;
}

TEST(NumbersBeside, TakeTheDtypeOfTheTensor) {
  for (const auto& [name, of, f] : all())
    for (const DType t : all_dtypes) {
      if (!takes(of, t)) continue;
      SCOPED_TRACE(testing::Message() << name << ' ' << t);
      const Tensor x = cast(constant({1, 2, 3, 5}), t), three = fill({}, 3, t);
      EXPECT_TRUE(bitwise_equal(f(x, 3), f(x, three)));
      EXPECT_TRUE(bitwise_equal(f(3, x), f(three, x)));
    }
}

TEST(NumbersBeside, FloatingOnesBesideIntegersAreRefused) {
  const Tensor x = constant({1, 2});
  for (const auto& [name, of, f] : all()) {
    if (!takes(of, i32) || std::string_view(name) == "truediv") continue;
    if (std::string_view(name) == "maximum") break;  // the overloads: below
    SCOPED_TRACE(name);
    expect_says(error_of<InvalidArgument>([&] { f(x, 2.0); }), "cast(x, f32)");
    expect_says(error_of<InvalidArgument>([&] { f(0.5, x); }), "cast(x, f32)");
  }
  for (const auto& call : std::vector<std::function<void()>>{[&] { mod(2.0, x); }, [&] { floor_divide(2.0, x); },
                                                             [&] { equal(2.0, x); }, [&] { not_equal(2.0, x); },
                                                             [&] { where(x > 0, x, 1.0); }, [&] { truediv(x, 2.0); }})
    expect_says(error_of<InvalidArgument>(call), "cast(x, f32)");
  EXPECT_THROW(greater(cast(x, u8), 300), OutOfRange);
  EXPECT_THROW(bitwise_and(cast(x, u8), -1), OutOfRange);
}

TEST(NumbersBeside, TwoNumbersAreRefused) {
  for (const auto& [name, of, f] : all()) {
    if (std::string_view(name) == "maximum") break;
    SCOPED_TRACE(name);
    expect_says(error_of<InvalidArgument>([&] { f(1, 2); }), "make one of them a tensor");
  }
}

TEST(NumbersBeside, Booleans) {
  const Tensor b = constant({true, false});
  EXPECT_TRUE(bitwise_equal(logical_and(b, true), b));
  EXPECT_TRUE(bitwise_equal(logical_or(false, b), b));
  EXPECT_TRUE(bitwise_equal(logical_xor(b, true), logical_not(b)));
  EXPECT_TRUE(bitwise_equal(equal(true, b), b));
}

TEST(NumbersBeside, OfVariables) {
  const Variable v(constant({0.25, 0.75}));
  EXPECT_TRUE(bitwise_equal(greater(v, 0.5), constant({false, true})));
  EXPECT_TRUE(bitwise_equal(greater(0.5, v), constant({true, false})));
  EXPECT_TRUE(bitwise_equal(maximum(v, 0.5), constant({0.5, 0.75})));
  EXPECT_TRUE(bitwise_equal(where(v > 0.5, v, 0), constant({0.0, 0.75})));
}

TEST(NumbersBeside, WithinATraceAndUnderATape) {
  const Tensor x = constant({0.25, 2.0});
  const auto f = function([](Tensor a) { return std::array{hypot(a, 0.5), where(a > 1, 1.0, 0.0), xlogy(2, a)}; });
  const auto compiled = f(x);
  EXPECT_TRUE(bitwise_equal(compiled[0], hypot(x, 0.5)));
  EXPECT_TRUE(bitwise_equal(compiled[1], constant({0.0, 1.0})));
  EXPECT_TRUE(bitwise_equal(compiled[2], xlogy(2, x)));
  GradientTape tape;
  tape.watch(x);
  EXPECT_TRUE(bitwise_equal(tape.gradient(reduce_sum(multiply(3, x)), x), constant({3.0, 3.0})));
}

TEST(NumbersBeside, WhereOfTwoNumbers) {
  const Tensor c = constant({true, false});
  EXPECT_TRUE(bitwise_equal(where(c, 1.0, 0.0), constant({1.0, 0.0})));
  EXPECT_TRUE(bitwise_equal(where(c, 1.0F, 0.0F), constant({1.0, 0.0})));
  EXPECT_TRUE(bitwise_equal(where(c, 1, 0), constant({1, 0})));
  EXPECT_TRUE(bitwise_equal(where(c, 1, 0.5), constant({1.0, 0.5})));
  EXPECT_TRUE(bitwise_equal(where(c, std::int64_t{1}, 0), cast(constant({1, 0}), i64)));
  EXPECT_TRUE(bitwise_equal(where(c, std::uint8_t{1}, std::uint8_t{0}), cast(constant({1, 0}), u8)));
  EXPECT_TRUE(bitwise_equal(where(c, true, false), c));
  EXPECT_EQ(where(c, half(1.0F), half(0.0F)).dtype(), f16);
}

TEST(NumbersBeside, ThoseOfOtherTypes) {
  const Tensor x = constant({1.0, 2.0});
  EXPECT_TRUE(bitwise_equal(ldexp(x, 3), constant({8.0, 16.0})));
  EXPECT_THROW(ldexp(x, 0.5), InvalidArgument);
  EXPECT_TRUE(bitwise_equal(prelu(-x, 0.25), constant({-0.25, -0.5})));
  EXPECT_TRUE(bitwise_equal(polygamma(1, x), polygamma(constant(1.0), x)));
  EXPECT_TRUE(bitwise_equal(betainc(2, x, 0.5), betainc(constant(2.0), x, constant(0.5))));
  const Tensor labels = constant({0.0, 1.0});
  EXPECT_TRUE(bitwise_equal(weighted_cross_entropy_with_logits(labels, x, 2),
                            weighted_cross_entropy_with_logits(labels, x, constant(2.0))));
}

TEST(Constant, OfContainers) {
  EXPECT_TRUE(bitwise_equal(constant(std::vector<float>{1, 2}), constant({1.0, 2.0})));
  EXPECT_TRUE(bitwise_equal(constant(std::vector<double>{1, 2}), constant({1.0, 2.0})));
  EXPECT_EQ(constant(std::vector<double>{1, 2}, f64).dtype(), f64);
  EXPECT_TRUE(bitwise_equal(constant(std::vector<int>{1, 2}), constant({1, 2})));
  EXPECT_TRUE(bitwise_equal(constant(std::vector<bool>{true, false}), constant({true, false})));
  EXPECT_TRUE(bitwise_equal(constant(std::array{1.0, 2.0}), constant({1.0, 2.0})));
  EXPECT_EQ(constant(std::vector<std::size_t>{1, 2}).dtype(), u64);
  const std::vector<std::int64_t> labels{3, 4};
  EXPECT_TRUE(bitwise_equal(constant(std::span(labels)), constant(labels)));
  EXPECT_EQ(constant(labels).dtype(), i64);
  const int numbers[] = {1, 2, 3};
  EXPECT_EQ(constant(numbers).shape(), (Shape{3}));
  EXPECT_EQ(constant(std::vector<float>()).shape(), (Shape{0}));
  EXPECT_TRUE(
      bitwise_equal(constant(std::vector<std::vector<double>>{{1, 2}, {3, 4}}), constant({{1.0, 2.0}, {3.0, 4.0}})));
  EXPECT_TRUE(bitwise_equal(constant({{{1, 2}}, {{3, 4}}}), reshape(constant({1, 2, 3, 4}), {2, 1, 2})));
  EXPECT_EQ(constant(std::array<std::array<std::array<float, 4>, 3>, 2>{}).shape(), (Shape{2, 3, 4}));
  EXPECT_THROW(constant(std::vector<int>{300}, u8), OutOfRange);
  EXPECT_THROW(constant(std::vector<double>{0.5}, i32), OutOfRange);
}
TEST(Constant, RowsOfOtherLengthsAreRefused) {
  const std::string said = error_of<InvalidArgument>([] { constant(std::vector<std::vector<int>>{{1, 2}, {3}}); });
  expect_says(said, "row 1 has 1 values, row 0 has 2");
  EXPECT_THROW(constant({{1, 2}, {3}}), InvalidArgument);
  EXPECT_THROW(constant(std::vector<std::vector<std::vector<int>>>{{{1}, {2}}, {{3, 4}, {5}}}), InvalidArgument);
  EXPECT_THROW(constant(std::vector<std::vector<int>>{{}, {3}}), InvalidArgument);
}

std::string printed(const auto&... values) {
  testing::internal::CaptureStdout();
  print(values...);
  std::cout.flush();
  return testing::internal::GetCapturedStdout();
}
TEST(Print, ValuesOfMostKinds) {
  const Variable v(constant({1.0, 2.0}), "v");
  EXPECT_EQ(printed(v), printed(v.value()));
  EXPECT_EQ(printed("a", 1, true, 0.5), "a 1 1 0.5\n");
  EXPECT_EQ(printed(std::vector{1, 2}, std::array<std::vector<int>, 1>{{{3}}}), "[1, 2] [[3]]\n");
  EXPECT_EQ(printed(std::pair{1, std::string("x")}, std::tuple{1, 2, 3}), "(1, x) (1, 2, 3)\n");
  EXPECT_EQ(printed(std::optional<int>(), std::optional(2)), "none 2\n");
  EXPECT_EQ(printed(std::map<std::string, int>{{"a", 1}}), "[(a, 1)]\n");
  const int numbers[] = {1, 2};
  EXPECT_EQ(printed(numbers), "[1, 2]\n");
  Sequential model{Dense(2)};
  model.build({f32, {any_size, 4}});
  EXPECT_EQ(printed(model), model.summary() + "\n");
}

}  // namespace numbers_beside_test
