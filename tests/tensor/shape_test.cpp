/// Shapes, symbolic dimensions and their text forms.
#include <gtest/gtest.h>
#include "gradus/tensor/shape.h"

namespace gradus::shape_test {
namespace {

TEST(Dimension, ArithmeticFindsEqualPolynomials) {
  const auto s0 = dimension::symbol(0), s1 = dimension::symbol(1);
  EXPECT_EQ(dimension::multiply(s0, 784), dimension::multiply(28, dimension::multiply(s0, 28)));
  EXPECT_EQ(dimension::divide(dimension::multiply(s0, 784), 784), s0);
  EXPECT_EQ(dimension::divide(dimension::multiply(s0, s1), s0), s1);
  EXPECT_EQ(dimension::divide(s0, 2), std::nullopt);
  EXPECT_EQ(dimension::divide(dimension::multiply(s0, 784), s0), 784);
  EXPECT_EQ(dimension::subtract(dimension::add(s0, 3), s0), 3);
  EXPECT_EQ(dimension::subtract(s0, s0), 0);
  const std::int64_t values[] = {5, 7};
  EXPECT_EQ(dimension::evaluate(dimension::add(dimension::multiply(s0, s1), 2), values), 37);
}

TEST(Dimension, DividesByWhatHasSeveralTerms) {
  const auto d = [](const char* text) { return dimension::from_text(text); };
  struct {
    const char *quotient, *divisor;
  } const rows[] = {
      {"s0", "2*s1+1"}, {"3*s0", "2*s1+1"}, {"s0+1", "s0-1"},       {"s0+s1", "s0+s1"}, {"s0*s2+5", "s0-s1"},
      {"2", "s0-3"},    {"s1-s0", "7"},     {"s0*s0-s0+1", "s0+1"}, {"0", "s0+1"},      {"s0+s1+s2", "s0-s1*s2+4"}};
  for (const auto& [quotient, divisor] : rows)
    EXPECT_EQ(dimension::divide(dimension::multiply(d(quotient), d(divisor)), d(divisor)), d(quotient))
        << quotient << " times " << divisor;
  EXPECT_EQ(dimension::divide(d("2*s0*s1+s0+1"), d("2*s1+1")), std::nullopt);
  EXPECT_EQ(dimension::divide(d("s0"), d("s0+1")), std::nullopt);
  EXPECT_EQ(dimension::divide(5, d("s0+1")), std::nullopt);
  EXPECT_EQ(dimension::divide(d("s0*s0"), d("2*s0")), std::nullopt);
}

TEST(Dimension, NoDivisionTakesForEver) {
  std::string divisor = "s0";
  for (int k = 1; k < 64; ++k) divisor += "-s" + std::to_string(k);
  EXPECT_EQ(dimension::divide(dimension::from_text("s0*s0*s0*s0*s0*s0*s0*s0*s0*s0*s0*s0*s0*s0*s0*s0"),
                              dimension::from_text(divisor)),
            std::nullopt);
}

TEST(Dimension, TextParsesBack) {
  const auto s0 = dimension::symbol(0), s1 = dimension::symbol(1);
  for (std::int64_t d :
       {std::int64_t{0}, std::int64_t{64}, any_size, s0, dimension::multiply(s0, 784),
        dimension::add(dimension::multiply(s0, s1), 2), dimension::subtract(s0, 3), dimension::subtract(2, s1)})
    EXPECT_EQ(dimension::from_text(dimension::to_text(d)), d) << dimension::to_text(d);
}

TEST(Shape, PrintsAndParses) {
  EXPECT_EQ(text(Shape{32, 100}), "(32, 100)");
  EXPECT_EQ(text(Shape{32}), "(32)");
  EXPECT_EQ(text(Spec{f32, {64, 784}}), "f32[64,784]");
  for (const char* written : {"f32[64,784]", "bool[]", "i64[3*s0,7]", "u8[?]"})
    EXPECT_EQ(text(spec_from_text(written)), written);
  for (const char* broken : {"f33[2]", "f32", "f32[", "f32[2,]", "f32[-2]", "f32[x]", "f32[1,1,1,1,1,1,1,1,1]"})
    EXPECT_THROW(spec_from_text(broken), Error) << broken;
}

TEST(Shape, CountsElementsUpToTheLimit) {
  EXPECT_EQ(Shape{}.size(), 1);
  EXPECT_EQ((Shape{3, 0, std::int64_t{1} << 62}.size()), 0);
  EXPECT_THROW((Shape{std::int64_t{1} << 32, std::int64_t{1} << 32}.size()), InvalidArgument);
  EXPECT_THROW(bytes_of({f64, {std::int64_t{1} << 62}}), InvalidArgument);
}

TEST(Shape, AxesCountFromBothEnds) {
  const Shape shape{2, 3, 5};
  EXPECT_EQ(shape[-1], 5);
  EXPECT_EQ(shape[0], 2);
  EXPECT_THROW(shape[3], OutOfRange);
  EXPECT_THROW(shape[-4], OutOfRange);
}

TEST(Shape, DimensionsAreAssignedByIndex) {
  Shape shape{2, 3, 5};
  shape[1] = 7;
  shape[-1] += 1;
  EXPECT_EQ(shape, (Shape{2, 7, 6}));
  EXPECT_THROW(shape[3] = 1, OutOfRange);
}

TEST(Shape, BroadcastsAsNumPy) {
  EXPECT_EQ(broadcast_shape({64, 1}, {10}, "add"), (Shape{64, 10}));
  EXPECT_EQ(broadcast_shape({0}, {1}, "add"), Shape{0});
  EXPECT_THROW(broadcast_shape({64, 2}, {10}, "add"), InvalidArgument);
  const auto s0 = dimension::symbol(0);
  EXPECT_EQ(broadcast_shape({s0, 1}, {10}, "add"), (Shape{s0, 10}));
}

}  // namespace
}  // namespace gradus::shape_test
