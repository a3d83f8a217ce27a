/// Shifts past the width, signs, and bits that a double does not hold.
#include "gradus/ops/bits.h"
#include <gtest/gtest.h>
#include "gradus/base/error.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"

namespace gradus::bits_test {
namespace {

template <class T> std::vector<T> of(const Tensor& x) { return x.to_vector<T>(); }
using Wide = std::vector<std::int64_t>;
using Narrow = std::vector<std::int32_t>;
using Bytes = std::vector<std::uint8_t>;

TEST(Bits, ShiftsPastTheWidth) {
  const Tensor x = constant({-5, 5, -1, 1}), by = constant({31, 32, 100, -1});
  EXPECT_EQ(of<std::int32_t>(left_shift(x, by)), (Narrow{std::numeric_limits<std::int32_t>::min(), 0, 0, 0}));
  EXPECT_EQ(of<std::int32_t>(right_shift(x, by)), (Narrow{-1, 0, -1, 0}));
  const Tensor u = from_values(Bytes{255, 255, 128, 3}, {4}), places = from_values(Bytes{7, 8, 1, 255}, {4});
  EXPECT_EQ(of<std::uint8_t>(left_shift(u, places)), (Bytes{128, 0, 0, 0}));
  EXPECT_EQ(of<std::uint8_t>(right_shift(u, places)), (Bytes{1, 0, 64, 0}));
}

TEST(Bits, OfWideNumbers) {
  const std::int64_t large = 0x123456789abcdef0, low = std::numeric_limits<std::int64_t>::min();
  const Tensor x = from_values(Wide{large, low, -1, 0}, {4});
  EXPECT_EQ(of<std::int64_t>(invert(x)), (Wide{~large, ~low, 0, -1}));
  EXPECT_EQ(of<std::uint8_t>(population_count(x)), (Bytes{32, 1, 64, 0}));
  EXPECT_EQ(of<std::int64_t>(bitwise_and(x, full({4}, 0xff, i64))), (Wide{0xf0, 0, 0xff, 0}));
  EXPECT_EQ(of<std::int64_t>(left_shift(x, full({4}, 4, i64))), (Wide{0x23456789abcdef00, 0, -16, 0}));
  EXPECT_EQ(of<std::int64_t>(right_shift(x, full({4}, 60, i64))), (Wide{1, -8, -1, 0}));
  EXPECT_EQ(of<std::uint8_t>(population_count(constant({-1, 7, 0}))), (Bytes{32, 3, 0}));
}

TEST(Bits, OperatorsAreLogicOfBooleansAndBitsOfIntegers) {
  const Tensor x = constant({1, 2, 3, 4}), low = x < 3, even = equal(mod(x, 2), 0);
  EXPECT_TRUE(bitwise_equal(low & even, logical_and(low, even)));
  EXPECT_TRUE(bitwise_equal((x < 2) | (x > 3), constant({true, false, false, true})));
  EXPECT_TRUE(bitwise_equal(low ^ even, logical_xor(low, even)));
  EXPECT_TRUE(bitwise_equal(~low, logical_not(low)));
  EXPECT_TRUE(bitwise_equal(x & constant({3}), constant({1, 2, 3, 0})));
  EXPECT_TRUE(bitwise_equal(x | constant({8}), constant({9, 10, 11, 12})));
  EXPECT_TRUE(bitwise_equal(x ^ x, zeros({4}, i32)));
  EXPECT_TRUE(bitwise_equal(~x, constant({-2, -3, -4, -5})));
  EXPECT_THROW(cast(x, f32) & cast(x, f32), InvalidArgument);
  EXPECT_THROW(low | x, InvalidArgument);
  EXPECT_THROW(x | low, InvalidArgument);
}

/// What somebody wants who writes a && b of tensors.
TEST(Bits, AConditionOfManyNamesTheOperators) {
  const Tensor x = constant({1, 2});
  try {
    (void)(x < 2 && x > 0);
    FAIL() << "no error";
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("a && b is a & b"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace gradus::bits_test
