/// Making tensors from numbers, and printing them.
#include <gtest/gtest.h>
#include <algorithm>
#include <array>
#include <concepts>
#include <filesystem>
#include <limits>
#include <span>
#include <sstream>
#include "gradus/base/print.h"
#include "gradus/base/rooms.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/shape.h"

namespace gradus::constant_test {
namespace {

TEST(Constant, LiteralsChooseTheirDtype) {
  EXPECT_EQ(constant(3).spec(), (Spec{i32, {}}));
  EXPECT_EQ(constant(3.0).spec(), (Spec{f32, {}}));
  EXPECT_EQ(constant(3.0f).spec(), (Spec{f32, {}}));
  EXPECT_EQ(constant(std::int64_t{3}).spec(), (Spec{i64, {}}));
  EXPECT_EQ(constant(true).spec(), (Spec{boolean, {}}));
  EXPECT_EQ(constant(3.0, f64).spec(), (Spec{f64, {}}));
  EXPECT_EQ(constant({1.0, 2.0}).spec(), (Spec{f32, {2}}));
  EXPECT_EQ(constant({{1, 2, 3}, {4, 5, 6}}).spec(), (Spec{i32, {2, 3}}));
  EXPECT_EQ(constant({{1, 2, 3}, {4, 5, 6}}).to_vector<std::int32_t>(), (std::vector<std::int32_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(constant(0.1, f64).item(), 0.1);
  EXPECT_EQ(constant(0.1).item(), static_cast<double>(0.1f));
  EXPECT_EQ(constant(std::numeric_limits<std::int64_t>::max()).to_vector<std::int64_t>()[0],
            std::numeric_limits<std::int64_t>::max());
}

/// The message of what `make` throws.
template <class E> std::string message_of(const std::function<void()>& make) {
  try {
    make();
  } catch (const E& error) { return error.what(); }
  return "nothing was thrown";
}

TEST(Constant, RefusesWhatTheDtypeCannotHold) {
  EXPECT_NE(message_of<OutOfRange>([] { constant(300, u8); }).find("300"), std::string::npos);
  EXPECT_THROW(constant(-1, u8), OutOfRange);
  EXPECT_THROW(constant(1.5, i32), OutOfRange);
  EXPECT_THROW(constant(1e300), OutOfRange);
  EXPECT_THROW(constant(std::int64_t{1} << 40, i32), OutOfRange);
  EXPECT_THROW(constant(2, boolean), OutOfRange);
  EXPECT_THROW(constant(std::numeric_limits<double>::quiet_NaN(), i32), OutOfRange);
  EXPECT_THROW(constant(std::numeric_limits<double>::infinity(), i64), OutOfRange);
  EXPECT_THROW(full({2}, 1e300, f32), OutOfRange);
  EXPECT_THROW(full({2}, 0.5, i32), OutOfRange);
  EXPECT_TRUE(std::isinf(constant(std::numeric_limits<double>::infinity()).item()));
  EXPECT_EQ(constant(1e300, f64).item(), 1e300);
}

/// True if a tensor can be made of an R.
template <class R>
concept MakesATensor = requires(const R& values) {
  { constant(values) } -> std::same_as<Tensor>;
};
TEST(Constant, TakesListsOfNumbersAndNothingElse) {
  static_assert(MakesATensor<std::vector<double>> && MakesATensor<std::vector<bool>> &&
                MakesATensor<std::span<const half>>);
  static_assert(MakesATensor<std::vector<std::array<bfloat16, 2>>>);
  static_assert(!MakesATensor<std::string> && !MakesATensor<std::vector<std::string>>);
  static_assert(!MakesATensor<std::filesystem::path>);  // a list of paths, without end
  static_assert(!MakesATensor<std::vector<void*>> && !MakesATensor<std::vector<std::vector<char>>>);
  const Tensor deep = constant(std::vector<std::vector<std::array<std::int64_t, 1>>>{{{1}, {2}, {3}}, {{4}, {5}, {6}}});
  EXPECT_EQ(deep.shape(), Shape({2, 3, 1}));
  EXPECT_EQ(deep.to_vector<std::int64_t>(), (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6}));
}
TEST(Constant, RowsMustHaveOneLength) {
  EXPECT_NE(message_of<InvalidArgument>([] { constant({{1, 2}, {3}}); }).find("row 1 has 1 values"), std::string::npos);
}

TEST(Constant, FromValuesCopies) {
  std::vector<double> values{1, 2, 3, 4, 5, 6};
  const Tensor x = from_values(values, {2, 3});
  values[0] = 9;
  EXPECT_EQ(x.spec(), (Spec{f64, {2, 3}}));
  EXPECT_EQ(x.to_vector<double>()[0], 1);
  EXPECT_EQ(from_values(std::vector<bool>{true, false}, {2}).to_vector<bool>(), (std::vector<bool>{true, false}));
  EXPECT_EQ(from_values(std::span<const double>(), {0, 3}).shape(), (Shape{0, 3}));
  EXPECT_NE(message_of<InvalidArgument>([&] { from_values(values, {4}); }).find("got 6 values"), std::string::npos);
  EXPECT_THROW(from_values(values, {-1, 2}), InvalidArgument);
}

struct NumberOnly {
  double number = 0;
};

/// Else each would be a record of its own, and nothing that holds one would be known again.
TEST(Constant, AttributesThatAreNaNAreEqual) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(scalar::Literal(nan) == scalar::Literal(nan));
  EXPECT_TRUE(detail::same_attributes(NumberOnly{nan}, NumberOnly{nan}));
  EXPECT_FALSE(detail::same_attributes(NumberOnly{0.0}, NumberOnly{-0.0})) << "as they are hashed";
  const Tensor x = ones({2});
  std::vector<Tensor> made{fill_like(x, nan)};
  const std::size_t records = OpTable::size();
  for (int i = 0; i < 20; ++i) made.push_back(fill_like(x, nan));
  EXPECT_LE(OpTable::size(), records);
}

TEST(Constant, ZerosOnesAndFull) {
  for (DType t : all_dtypes) {
    EXPECT_EQ(zeros({2, 3}, t).spec(), (Spec{t, {2, 3}}));
    EXPECT_EQ(cast(zeros({2}, t), i32).to_vector<std::int32_t>(), (std::vector<std::int32_t>{0, 0}));
    EXPECT_EQ(cast(ones({2}, t), i32).to_vector<std::int32_t>(), (std::vector<std::int32_t>{1, 1}));
    EXPECT_EQ(ones_like(zeros({2}, t)).spec(), (Spec{t, {2}}));
    EXPECT_EQ(zeros_like(ones({2}, t)).spec(), (Spec{t, {2}}));
  }
  EXPECT_EQ(full({3}, 7, i64).to_vector<std::int64_t>(), (std::vector<std::int64_t>{7, 7, 7}));
  EXPECT_EQ(full({}, 2.5).item(), 2.5);
}

std::string printed(const Tensor& x) { return text(x); }

TEST(Print, LaysOutAsNumPyDoes) {
  EXPECT_EQ(printed(constant(108.0)), "108");
  EXPECT_EQ(printed(constant(0.1)), "0.1");
  EXPECT_EQ(printed(constant(true)), "true");
  EXPECT_EQ(printed(constant({1, 20, 3})), "[ 1 20  3]");
  EXPECT_EQ(printed(constant({1.5, -2.0})), "[1.5  -2]");
  EXPECT_EQ(printed(constant({{1, 2}, {3, 4}})), "[[1 2]\n [3 4]]");
  EXPECT_EQ(printed(reshape(range(8), {2, 2, 2})), "[[[0 1]\n  [2 3]]\n\n [[4 5]\n  [6 7]]]");
  EXPECT_EQ(printed(zeros({0})), "[]");
  EXPECT_EQ(printed(constant(1.0 / 3, f64)), "0.3333333333333333");
  EXPECT_EQ(printed(constant({1.0 / 3}, f64)), "[0.33333333]");
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(printed(constant({inf, -inf, std::numeric_limits<double>::quiet_NaN()})), "[ inf -inf  nan]");
}

TEST(Print, ElidesPastAThousandElements) {
  EXPECT_EQ(printed(range(1001)), "[   0    1    2 ...  998  999 1000]");
  EXPECT_EQ(printed(range(1000)).find("..."), std::string::npos);
  const std::string matrix = printed(reshape(range(10000), {100, 100}));
  EXPECT_EQ(std::ranges::count(matrix, '\n'), 6);
}

TEST(Print, SeparatesByBlanks) {
  ::testing::internal::CaptureStdout();
  print("loss", constant(2.5), 3, Shape{2, 3});
  print();
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "loss 2.5 3 (2, 3)\n\n");
}

}  // namespace
}  // namespace gradus::constant_test
