/// The interpreter of scalar formulas: every instruction by itself, then formulas.
#include "gradus/scalar/interpret.h"
#include <gtest/gtest.h>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include "gradus/tensor/dimension.h"

namespace gradus::scalar::interpret_test {
namespace {

using scalar::Code;
using scalar::Opcode;

constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

template <class T> std::uint64_t bits_of(T value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}
template <class T> std::uint64_t apply(Opcode op, DType to, std::initializer_list<T> operands) {
  Code code;
  std::vector<std::uint64_t> bits;
  for (T operand : operands) {
    code.add({.op = Opcode::input, .type = dtype_of<T>(), .a = static_cast<int>(bits.size())});
    bits.push_back(bits_of(operand));
  }
  const int count = static_cast<int>(bits.size());
  code.result = code.add({.op = op, .type = to, .a = 0, .b = count > 1 ? 1 : -1, .c = count > 2 ? 2 : -1});
  return evaluate_bits(code, bits);
}
template <class T> void expect(Opcode op, std::initializer_list<T> operands, T result) {
  const std::uint64_t got = apply(op, dtype_of<T>(), operands);
  if (result != result)
    EXPECT_NE(std::isnan(static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(got)))) ||
                  std::isnan(std::bit_cast<double>(got)),
              0);
  else EXPECT_EQ(got, bits_of(result)) << static_cast<int>(op) << ' ' << +result;
}

template <class T> void check_floats() {
  expect<T>(Opcode::add, {T(1.5), T(2)}, T(3.5));
  expect<T>(Opcode::subtract, {T(1.5), T(2)}, T(-0.5));
  expect<T>(Opcode::multiply, {T(-0.0), T(2)}, T(-0.0));
  expect<T>(Opcode::divide, {T(1), T(0)}, T(inf));
  expect<T>(Opcode::divide, {T(0), T(0)}, T(nan));
  expect<T>(Opcode::negate, {T(0)}, T(-0.0));
  expect<T>(Opcode::absolute, {T(-0.0)}, T(0));
  expect<T>(Opcode::square_root, {T(2)}, std::sqrt(T(2)));
  expect<T>(Opcode::square_root, {T(-1)}, T(nan));
  expect<T>(Opcode::round_even, {T(2.5)}, T(2));
  expect<T>(Opcode::round_even, {T(-0.5)}, T(-0.0));
  expect<T>(Opcode::floor, {T(-1.5)}, T(-2));
  expect<T>(Opcode::ceil, {T(-1.5)}, T(-1));
  expect<T>(Opcode::truncate, {T(-1.5)}, T(-1));
  const T eps = std::numeric_limits<T>::epsilon();
  expect<T>(Opcode::fma, {1 + eps, 1 - eps, T(-1)}, -eps * eps);  // one rounding
  expect<T>(Opcode::minimum, {T(1), T(2)}, T(1));
  expect<T>(Opcode::minimum, {T(nan), T(2)}, T(2));
  expect<T>(Opcode::maximum, {T(-0.0), T(0)}, T(0));  // not greater, so the second
  expect<T>(Opcode::maximum, {T(0), T(-0.0)}, T(-0.0));
  for (const T x : {T(nan), T(1), T(2)}) {
    EXPECT_EQ(apply<T>(Opcode::less, boolean, {x, T(2)}), x < 2);
    EXPECT_EQ(apply<T>(Opcode::less_equal, boolean, {x, T(2)}), x <= 2);
    EXPECT_EQ(apply<T>(Opcode::equal, boolean, {x, x}), x == x);
  }
}

template <class T> void check_integers() {
  constexpr T low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  expect<T>(Opcode::add, {high, T(1)}, low);
  expect<T>(Opcode::subtract, {low, T(1)}, high);
  expect<T>(Opcode::multiply, {high, T(2)}, static_cast<T>(static_cast<std::uint64_t>(high) * 2));
  expect<T>(Opcode::divide, {high, T(0)}, T(0));
  expect<T>(Opcode::divide, {T(7), T(2)}, T(3));
  expect<T>(Opcode::negate, {low}, low);
  expect<T>(Opcode::absolute, {low}, low);
  expect<T>(Opcode::minimum, {T(3), T(5)}, T(3));
  expect<T>(Opcode::maximum, {T(3), T(5)}, T(5));
  expect<T>(Opcode::bit_and, {T(12), T(10)}, T(8));
  expect<T>(Opcode::bit_or, {T(12), T(10)}, T(14));
  expect<T>(Opcode::bit_xor, {T(12), T(10)}, T(6));
  expect<T>(Opcode::shift_left, {high, T(1)}, static_cast<T>(static_cast<std::uint64_t>(high) * 2));
  expect<T>(Opcode::shift_right_logical, {high, T(2)}, static_cast<T>(high / 4));
  EXPECT_EQ(apply<T>(Opcode::less, boolean, {low, high}), 1u);
  EXPECT_EQ(apply<T>(Opcode::equal, boolean, {low, high}), 0u);
  if constexpr (std::is_signed_v<T>) {
    expect<T>(Opcode::divide, {low, T(-1)}, low);
    expect<T>(Opcode::divide, {T(-7), T(2)}, T(-3));
    expect<T>(Opcode::shift_right, {T(-8), T(1)}, T(-4));
    expect<T>(Opcode::shift_right_logical, {T(-1), T(sizeof(T) * 8 - 1)}, T(1));
  }
}

TEST(Instructions, OfFloats) {
  check_floats<float>();
  check_floats<double>();
}
TEST(Instructions, OfIntegers) {
  check_integers<std::int64_t>();
  check_integers<std::int32_t>();
  check_integers<std::int16_t>();
  check_integers<std::int8_t>();
  check_integers<std::uint8_t>();
  check_integers<std::uint16_t>();
  check_integers<std::uint32_t>();
  check_integers<std::uint64_t>();
}

template <class From, class To> void converts(From from, To to) {
  EXPECT_EQ(apply<From>(Opcode::convert, dtype_of<To>(), {from}), bits_of(to)) << +from << ' ' << dtype_of<To>();
}
TEST(Instructions, Conversions) {
  converts<float, std::int32_t>(-1.9f, -1);
  converts<float, std::int32_t>(3e9f, 2147483647);
  converts<float, std::int32_t>(-3e9f, -2147483647 - 1);
  converts<float, std::int32_t>(static_cast<float>(nan), 0);
  converts<double, std::int64_t>(-inf, std::numeric_limits<std::int64_t>::min());
  converts<double, std::int64_t>(1e19, std::numeric_limits<std::int64_t>::max());
  converts<double, std::int32_t>(2147483646.9, 2147483646);
  converts<double, std::uint8_t>(255.9, 255);
  converts<float, std::uint8_t>(-3, 0);
  converts<float, std::uint8_t>(17.5f, 17);
  converts<std::int64_t, std::int32_t>((std::int64_t{1} << 32) + 5, 5);
  converts<std::int32_t, std::uint8_t>(-1, 255);
  converts<std::int64_t, float>(16777217, 16777216.0f);
  converts<double, float>(0.1, 0.1f);
  converts<std::uint8_t, float>(200, 200.0f);
  converts<float, bool>(static_cast<float>(nan), true);
  converts<float, bool>(-0.0f, false);
  converts<std::int32_t, bool>(256, true);
  converts<bool, double>(true, 1.0);
}

TEST(Instructions, SelectAndBitcast) {
  Code code;
  code.add({.op = Opcode::input, .type = boolean, .a = 0});
  code.add({.op = Opcode::input, .type = f64, .a = 1});
  code.add({.op = Opcode::input, .type = f64, .a = 2});
  code.result = code.add({.op = Opcode::select, .type = f64, .a = 0, .b = 1, .c = 2});
  for (bool which : {true, false}) {
    const std::uint64_t in[] = {which, bits_of(1.5), bits_of(2.5)};
    EXPECT_EQ(evaluate_bits(code, in), bits_of(which ? 1.5 : 2.5));
  }
  EXPECT_EQ(apply<float>(Opcode::bitcast, i32, {1.0f}), 0x3f800000u);
}

TEST(Formulas, RunOnBlocksOfEveryLength) {
  Code code;  // ((x + 3) * x) / (x + 3), with an instruction that nobody needs
  const scalar::Value x(&code, code.add({.op = Opcode::input, .type = f32, .a = 0}));
  const scalar::Value sum = x + 3.0;
  (void)(sum * 5.0);
  code.result = (sum * x / sum).id();
  const Interpreter interpreter(code);
  alignas(64) std::byte scratch[8192];
  ASSERT_LE(interpreter.scratch_bytes(), 8192);
  for (std::int64_t n : {0, 1, 7, 8, 17, 255, 256}) {
    std::vector<float> in(static_cast<std::size_t>(n)), out(in.size() + 1, -1.0f);
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = 0.37f * static_cast<float>(i) - 20;
    const void* inputs[] = {in.data()};
    interpreter.run(inputs, out.data(), n, scratch);
    for (std::size_t i = 0; i < in.size(); ++i) {
      const float s = in[i] + 3, p = s * in[i];
      EXPECT_EQ(bits_of(out[i]), bits_of(p / s)) << i;
    }
    EXPECT_EQ(out[in.size()], -1.0f);
  }
}

TEST(Formulas, GiveBackInputsConstantsAndExtents) {
  Code input;
  input.result = input.add({.op = Opcode::input, .type = i32, .a = 0});
  EXPECT_EQ(evaluate_bits(input, std::vector<std::uint64_t>{42}), 42u);
  Code constant = input;
  constant.result = constant.add({.op = Opcode::constant, .type = i32, .bits = 7});
  EXPECT_EQ(evaluate_bits(constant, std::vector<std::uint64_t>{42}), 7u);
  Code extent = input;
  const std::int64_t dimension = dimension::multiply(dimension::symbol(1), 3);
  extent.result = extent.add({.op = Opcode::extent, .type = i64, .bits = static_cast<std::uint64_t>(dimension)});
  const std::int64_t symbols[] = {5, 11};
  EXPECT_EQ(evaluate_bits(extent, std::vector<std::uint64_t>{42}, symbols), 33u);
}

}  // namespace
}  // namespace gradus::scalar::interpret_test
