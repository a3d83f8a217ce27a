/// Bytes as elements of another width against memcpy, neighbours of floats against the standard library, and integer
/// powers that are refused.
#include "gradus/ops/bitcast.h"
#include <gtest/gtest.h>
#include <cmath>
#include <cstring>
#include <limits>
#include "gradus/gradus.h"
#include "tests/errors.h"

namespace gradus::bitcast_test {
namespace {

/// 16 bytes of every kind, as 16 / width elements.
Tensor bytes_as(DType dtype) {
  std::vector<std::uint8_t> bytes;
  for (int i = 0; i < 16; ++i) bytes.push_back(static_cast<std::uint8_t>(i * 37 + 5));
  return with_type(dtype, [&]<class T>(T) {
    std::vector<T> values(16 / sizeof(T));
    if constexpr (!std::is_same_v<T, bool>) std::memcpy(values.data(), bytes.data(), 16);
    const Shape shape{static_cast<std::int64_t>(values.size())};
    if constexpr (std::is_unsigned_v<T>)
      return cast(from_values(std::vector<std::int64_t>(values.begin(), values.end()), shape), dtype);
    else return from_values(values, shape);
  });
}

TEST(Bitcast, OfOtherWidthsKeepsTheBytes) {
  for (const DType from : all_dtypes)
    for (const DType to : all_dtypes) {
      if (from == boolean || to == boolean) continue;
      SCOPED_TRACE(text(from, " as ", to));
      const Tensor x = bytes_as(from), known = bytes_as(to);
      const std::int64_t k = size_of(to) / size_of(from), n = 16 / size_of(to);
      const auto cast_bits = [&](const Tensor& a) { return bitcast(k > 1 ? reshape(a, {n, k}) : a, to); };
      const Tensor y = cast_bits(x);
      EXPECT_EQ(y.shape(), k >= 1 ? (Shape{n}) : (Shape{16 / size_of(from), size_of(from) / size_of(to)}));
      EXPECT_TRUE(bitwise_equal(reshape(y, {-1}), known));
      EXPECT_TRUE(bitwise_equal(vectorized_map(cast_bits, stack({x, x}))[1], y));
      if (from != f64 && from != u8) continue;
      auto compiled = function(cast_bits);
      (void)compiled(x);
      EXPECT_TRUE(bitwise_equal(compiled(x), y));
    }
  EXPECT_EQ(bitcast(constant({{true, false}, {true, true}}), u16).to_vector<std::uint16_t>(),
            (std::vector<std::uint16_t>{1, 257}));
  expect_error<InvalidArgument>([] { bitcast(zeros({3}), f64); }, {"f32[3] as f64", "last dimension has to be 2"});
  expect_error<InvalidArgument>([] { bitcast(zeros({}, u8), f32); }, {"last dimension has to be 4"});
  expect_error<InvalidArgument>([] { bitcast(zeros({2}, u8), boolean); }, {"as booleans"});
}

template <class T> void expect_neighbours(const std::vector<T>& specials) {
  const auto n = static_cast<std::int64_t>(specials.size());
  const Tensor x = reshape(from_values(specials, {n}), {n, 1}), y = from_values(specials, {n});
  auto compiled = function([](Tensor a, Tensor b) { return nextafter(a, b); });
  (void)compiled(x, y);
  for (const Tensor& found : {nextafter(x, y), compiled(x, y)}) {
    const std::vector<T> got = found.template to_vector<T>();
    for (std::size_t i = 0; i < specials.size(); ++i)
      for (std::size_t j = 0; j < specials.size(); ++j) {
        const T want = std::nextafter(specials[i], specials[j]), is = got[i * specials.size() + j];
        if (std::isnan(want)) EXPECT_TRUE(std::isnan(is)) << specials[i] << " towards " << specials[j];
        else EXPECT_EQ(std::memcmp(&want, &is, sizeof is), 0) << specials[i] << " towards " << specials[j];
      }
  }
}

template <class T> std::vector<T> special_floats() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> all{0,
                     1,
                     1.5,
                     3e-5f,
                     7e20f,
                     Limits::min(),
                     Limits::max(),
                     Limits::infinity(),
                     Limits::denorm_min(),
                     Limits::min() - Limits::denorm_min()};
  for (std::size_t i = all.size(); i-- > 0;) all.push_back(-all[i]);
  all.push_back(Limits::quiet_NaN());
  return all;
}

TEST(NextAfter, IsTheNeighbourOfTheStandardLibrary) {
  expect_neighbours(special_floats<float>());
  expect_neighbours(special_floats<double>());
}

/// All floats of 16 bits in their order.
template <class T> void expect_order(std::uint16_t infinity) {
  std::vector<T> rising;
  for (int bits = infinity; bits > 0; --bits) rising.push_back(T::from_bits(static_cast<std::uint16_t>(0x8000 + bits)));
  for (int bits = 0; bits <= infinity; ++bits) rising.push_back(T::from_bits(static_cast<std::uint16_t>(bits)));
  const Tensor x = from_values(rising, {static_cast<std::int64_t>(rising.size())});
  const double far = std::numeric_limits<double>::infinity();
  const std::vector<T> up = nextafter(x, Scalar(far)).template to_vector<T>();
  const std::vector<T> down = nextafter(x, Scalar(-far)).template to_vector<T>();
  int wrong = 0;
  for (std::size_t i = 0; i + 1 < rising.size(); ++i) {
    const bool to_zero = (rising[i + 1].bits & 0x7fff) == 0;
    wrong += (to_zero ? up[i].bits & 0x7fff : up[i].bits) != rising[i + 1].bits;
    wrong += (rising[i].bits & 0x7fff) != 0 && down[i + 1].bits != rising[i].bits;
  }
  EXPECT_EQ(wrong, 0);
}

TEST(NextAfter, PassesAllNarrowFloats) {
  expect_order<half>(0x7c00);
  expect_order<bfloat16>(0x7f80);
}

TEST(NextAfter, HasNoGradientAndTakesNumbers) {
  const Tensor x = constant({1.0, 2.0});
  EXPECT_EQ(gradient([](const Tensor& a) { return reduce_sum(nextafter(a, 5) * a); }, x).to_vector<float>(),
            nextafter(x, 5).to_vector<float>());
  expect_error<InvalidArgument>([] { nextafter(ones({2}, i32), 3); }, {"nextafter", "i32[2]"});
}

TEST(Pow, OfIntegersRefusesNegativeExponents) {
  const Tensor base = constant({2, -3, 0, 7}), exponents = constant({5, 3, 0, 1});
  EXPECT_EQ(pow(base, exponents).to_vector<std::int32_t>(), (std::vector<std::int32_t>{32, -27, 1, 7}));
  EXPECT_EQ(pow(2, exponents).to_vector<std::int32_t>(), (std::vector<std::int32_t>{32, 8, 1, 2}));
  EXPECT_EQ(pow(constant({3, 2}, u8), constant({2, 9}, u8)).to_vector<std::uint8_t>(),
            (std::vector<std::uint8_t>{9, 0}));
  expect_error<OutOfRange>([&] { pow(base, constant({1, -2, 0, 0})).observed(); }, {"pow of integers", "-2", "float"});
  expect_error<InvalidArgument>([&] { pow(base, -1); }, {"pow", "-1", "negative"});
  auto compiled = function([](Tensor a, Tensor b) { return pow(a, b); });
  for (int call = 0; call < 2; ++call)
    EXPECT_EQ(compiled(base, exponents).to_vector<std::int32_t>(), (std::vector<std::int32_t>{32, -27, 1, 7}));
  EXPECT_EQ(vectorized_map([&](const Tensor& b) { return pow(b, exponents); }, stack({base, base}))[1]
                .to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{32, -27, 1, 7}));
}

}  // namespace
}  // namespace gradus::bitcast_test
