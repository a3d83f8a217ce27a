/// A C++ number beside a tensor: a floating one beside integers or booleans is an InvalidArgument that names cast, a
/// whole one like 2.0 too; one that the dtype cannot hold is an OutOfRange. Of every op that takes such a number.
#include <gtest/gtest.h>
#include <cmath>
#include <functional>
#include "gradus/function/function.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/layout.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/sort.h"
#include "tests/errors.h"

namespace gradus::scalar_mix_test {
namespace {

struct Mix {
  const char* name;
  std::function<Tensor(const Tensor&, Scalar)> apply;
  bool of_booleans = false;
};

const std::vector<Mix>& mixes() {
  static const std::vector<Mix> all{
      {"x + s", [](auto& x, Scalar s) { return x + s; }},
      {"s + x", [](auto& x, Scalar s) { return s + x; }},
      {"x - s", [](auto& x, Scalar s) { return x - s; }},
      {"s - x", [](auto& x, Scalar s) { return s - x; }},
      {"x * s", [](auto& x, Scalar s) { return x * s; }},
      {"s * x", [](auto& x, Scalar s) { return s * x; }},
      {"x / s", [](auto& x, Scalar s) { return x / s; }},
      {"s / x", [](auto& x, Scalar s) { return s / x; }},
      {"x += s", [](auto x, Scalar s) { return x += s; }},
      {"x -= s", [](auto x, Scalar s) { return x -= s; }},
      {"x *= s", [](auto x, Scalar s) { return x *= s; }},
      {"x /= s", [](auto x, Scalar s) { return x /= s; }},
      {"x < s", [](auto& x, Scalar s) { return x < s; }},
      {"s < x", [](auto& x, Scalar s) { return s < x; }},
      {"x > s", [](auto& x, Scalar s) { return x > s; }},
      {"s > x", [](auto& x, Scalar s) { return s > x; }},
      {"x <= s", [](auto& x, Scalar s) { return x <= s; }},
      {"s <= x", [](auto& x, Scalar s) { return s <= x; }},
      {"x >= s", [](auto& x, Scalar s) { return x >= s; }},
      {"s >= x", [](auto& x, Scalar s) { return s >= x; }},
      {"equal", [](auto& x, Scalar s) { return equal(x, s); }, true},
      {"not_equal", [](auto& x, Scalar s) { return not_equal(x, s); }, true},
      {"mod", [](auto& x, Scalar s) { return mod(x, s); }},
      {"floor_divide", [](auto& x, Scalar s) { return floor_divide(x, s); }},
      {"pow, base", [](auto& x, Scalar s) { return is_floating(x.dtype()) ? pow(s, x) : s + x; }},
      {"maximum", [](auto& x, Scalar s) { return maximum(x, s); }},
      {"maximum, first", [](auto& x, Scalar s) { return maximum(s, x); }},
      {"minimum", [](auto& x, Scalar s) { return minimum(x, s); }},
      {"minimum, first", [](auto& x, Scalar s) { return minimum(s, x); }},
      {"clip_by_value, low", [](auto& x, Scalar s) { return clip_by_value(x, s, s); }},
      {"where", [](auto& x, Scalar s) { return where(equal(x, x), x, s); }, true},
      {"where, first", [](auto& x, Scalar s) { return where(equal(x, x), s, x); }, true},
      {"pad", [](auto& x, Scalar s) { return pad(x, {{1, 1}}, s); }, true},
  };
  return all;
}

const DType whole_dtypes[] = {i64, i32, i16, i8, u8, u16, u32, u64};

void expect_refused(const Mix& mix, const Tensor& x, Scalar s) {
  const std::string message = error_of<InvalidArgument>([&] { mix.apply(x, s); });
  EXPECT_NE(message.find("cast"), std::string::npos) << mix.name << ' ' << x.dtype() << ": " << message;
}

TEST(ScalarMix, FloatingBesideIntegersNamesCast) {
  for (const DType t : whole_dtypes) {
    const Tensor x = cast(constant({1, 2, 3}), t);
    for (const Mix& mix : mixes()) {
      for (const Scalar s : {Scalar(2.0), Scalar(2.5), Scalar(2.0f), Scalar(half(2.0)), Scalar(bfloat16(2.0)),
                             Scalar(std::nan("")), Scalar(INFINITY), Scalar(-0.0)})
        expect_refused(mix, x, s);
      EXPECT_NO_THROW(mix.apply(x, 2)) << mix.name << ' ' << t;
      EXPECT_NO_THROW(mix.apply(x, std::uint8_t{2})) << mix.name << ' ' << t;
    }
    EXPECT_THROW(pow(x, 2.0), InvalidArgument) << t;
    EXPECT_NO_THROW(pow(x, 2)) << t;
  }
}

TEST(ScalarMix, FloatingBesideBooleansNamesCast) {
  const Tensor x = constant({true, false});
  for (const Mix& mix : mixes()) {
    if (!mix.of_booleans) continue;
    expect_refused(mix, x, 1.0);
    EXPECT_NO_THROW(mix.apply(x, 1)) << mix.name;
    EXPECT_NO_THROW(mix.apply(x, true)) << mix.name;
    EXPECT_THROW(mix.apply(x, 2), OutOfRange) << mix.name;
  }
}

TEST(ScalarMix, WithinATrace) {
  for (const Mix& mix : mixes()) {
    auto f = function([&](Tensor x) { return mix.apply(x, 2.0); });
    EXPECT_THROW(f(constant({1, 2})), InvalidArgument) << mix.name;
  }
}

TEST(ScalarMix, IntegersThatTheDtypeCannotHold) {
  struct Case {
    DType dtype;
    Scalar number;
  };
  const std::int64_t wide = std::int64_t{1} << 40;
  const Case cases[] = {{u8, 300},
                        {u8, -1},
                        {u16, -1},
                        {u32, -1},
                        {u64, -1},
                        {i8, 128},
                        {i8, -129},
                        {i16, 40000},
                        {i32, wide},
                        {u32, wide},
                        {i64, ~std::uint64_t{0}}};
  for (const Case& c : cases)
    for (const Mix& mix : mixes())
      EXPECT_THROW(mix.apply(cast(constant({1, 2}), c.dtype), c.number), OutOfRange) << mix.name << ' ' << c.dtype;
}

TEST(ScalarMix, FloatsBesideFloats) {
  for (const DType t : {f64, f32, f16, bf16})
    for (const Mix& mix : mixes()) {
      const Tensor x = cast(constant({1.0, 2.0}), t);
      EXPECT_NO_THROW(mix.apply(x, 0.1)) << mix.name << ' ' << t;
      EXPECT_NO_THROW(mix.apply(x, 2)) << mix.name << ' ' << t;
      EXPECT_NO_THROW(mix.apply(x, INFINITY)) << mix.name << ' ' << t;
      if (t == f16) { EXPECT_THROW(mix.apply(x, 1e6), OutOfRange) << mix.name; }
      if (t != f64) { EXPECT_THROW(mix.apply(x, 1e300), OutOfRange) << mix.name << ' ' << t; }
    }
}

/// 2^53 + 1 and its like pass through no double.
TEST(ScalarMix, WideIntegersAreExact) {
  const std::int64_t odd = (std::int64_t{1} << 53) + 1;
  const Tensor x = cast(constant({0, 1}), i64);
  EXPECT_EQ((x + odd).to_vector<std::int64_t>()[0], odd);
  EXPECT_EQ(full({1}, odd, i64).to_vector<std::int64_t>()[0], odd);
  EXPECT_EQ(maximum(x, odd).to_vector<std::int64_t>()[1], odd);
  EXPECT_EQ(clip_by_value(x, odd, odd).to_vector<std::int64_t>()[1], odd);
  EXPECT_EQ(pad(x, {{1, 0}}, odd).to_vector<std::int64_t>()[0], odd);
  EXPECT_EQ(where(equal(x, 0), x, odd).to_vector<std::int64_t>()[1], odd);
  EXPECT_EQ(range(odd, odd + 2, 1, i64).to_vector<std::int64_t>()[0], odd);
  EXPECT_EQ(constant({odd}, i64).to_vector<std::int64_t>()[0], odd);
  EXPECT_THROW(clip_by_value(x, odd, odd - 1), InvalidArgument);
  EXPECT_EQ(full({1}, ~std::uint64_t{0}, u64).to_vector<std::uint64_t>()[0], ~std::uint64_t{0});
}

TEST(ScalarMix, RangesStayWithinTheirDtype) {
  EXPECT_THROW(range(0, std::uint64_t{1} << 63, 1, u64), OutOfRange);
  EXPECT_THROW(range(0, 300, 1, u8), OutOfRange);
  EXPECT_THROW(range(0.0, 1e5, 1e4, f16), OutOfRange);
  EXPECT_THROW(range(300, u8), OutOfRange);
  EXPECT_THROW(range(0, 10, 0.5, i32), InvalidArgument);
  EXPECT_EQ(range(0, 10, 2.5).dtype(), f32);
}

template <class Apply> void expect_indices_fit(const Apply& apply) {
  for (const auto& [dtype, most] : {std::pair{u8, 256}, {i8, 128}, {i16, 32768}}) {
    EXPECT_NO_THROW(apply(zeros({2, most}), dtype)) << dtype;
    EXPECT_THROW(apply(zeros({2, most + 1}), dtype), OutOfRange) << dtype;
    auto f =
        function([&, dtype = dtype](Tensor x) { return apply(x, dtype); }, {.input_signature = {{f32, {2, any_size}}}});
    EXPECT_NO_THROW(f(zeros({2, 3})).observed()) << dtype;
    EXPECT_THROW(f(zeros({2, most + 1})).observed(), OutOfRange) << dtype;
    EXPECT_NO_THROW(f(zeros({2, most})).observed()) << dtype;
  }
  EXPECT_NO_THROW(apply(zeros({2, 70000}), i32));
}

/// An index into more elements than its type numbers would wrap around.
TEST(ScalarMix, IndexTypesHoldTheExtent) {
  expect_indices_fit([](const Tensor& x, DType t) { return argmax(x, {.output_type = t}); });
  expect_indices_fit([](const Tensor& x, DType t) { return argmin(x, {.select_last_index = true, .output_type = t}); });
  expect_indices_fit([](const Tensor& x, DType t) { return range(x.shape()[1], t); });
  for (const auto& [dtype, most] : {std::pair{u8, 255}, {i8, 127}}) {
    EXPECT_NO_THROW(shape(zeros({2, most}), dtype));
    EXPECT_THROW(shape(zeros({2, most + 1}), dtype), OutOfRange);
    EXPECT_NO_THROW(size(zeros({most}), dtype));
    EXPECT_THROW(size(zeros({2, most}), dtype), OutOfRange);
    auto of_open =
        function([dtype = dtype](Tensor x) { return shape(x, dtype); }, {.input_signature = {{f32, {any_size}}}});
    EXPECT_NO_THROW(of_open(zeros({3})).observed());
    EXPECT_THROW(of_open(zeros({most + 1})).observed(), OutOfRange);
  }
}

}  // namespace
}  // namespace gradus::scalar_mix_test
