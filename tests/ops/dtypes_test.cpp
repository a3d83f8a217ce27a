/// Every dtype through the doors of a tensor: numbers in and out, text, random numbers, gradients in narrow floats.
#include <gtest/gtest.h>
#include <cmath>
#include <limits>
#include <random>
#include "gradus/autodiff/vjp.h"
#include "gradus/autodiff/vmap.h"
#include "gradus/base/print.h"
#include "gradus/graph/context.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/softmax.h"

namespace gradus::dtypes_test {
namespace {

template <class F> void for_each_dtype(F f) {
  for (const DType t : all_dtypes) with_type(t, [&]<class T>(T) { f.template operator()<T>(t); });
}

template <class T> Tensor tensor_of(const std::vector<T>& values, const Shape& shape) {
  if constexpr (std::is_same_v<T, bool>) return from_values(values, shape);
  else return from_values(std::span<const T>(values), shape);
}

TEST(DTypes, SizesNamesAndTypesAgree) {
  for_each_dtype([]<class T>(DType t) {
    EXPECT_EQ(size_of(t), static_cast<std::int64_t>(sizeof(T)));
    EXPECT_EQ(dtype_of<T>(), t);
    EXPECT_EQ(is_floating(t), FloatingElement<T>);
    EXPECT_EQ(is_integer(t), (std::is_integral_v<T> && !std::is_same_v<T, bool>));
    EXPECT_TRUE(!is_integer(t) || is_signed(t) == std::is_signed_v<T>);
    EXPECT_EQ(spec_from_text(text(t, "[3]")), (Spec{t, {3}}));
  });
}

TEST(DTypes, NumbersGoInAndOut) {
  for_each_dtype([]<class T>(DType t) {
    const std::vector<T> values{T(1), T(0), T(1)};
    const Tensor x = tensor_of(values, {3});
    EXPECT_EQ(x.dtype(), t);
    EXPECT_EQ(x.to_vector<T>(), values);
    EXPECT_EQ(x[0].item(), 1);
    EXPECT_EQ(constant(T(1), t).item(), 1);
    EXPECT_EQ(full({2}, 1, t).to_vector<T>(), (std::vector<T>{T(1), T(1)}));
    EXPECT_EQ(cast(x, f64).to_vector<double>(), (std::vector<double>{1, 0, 1}));
    EXPECT_EQ(text(cast(x, t)), t == boolean ? "[ true false  true]" : "[1 0 1]");
    if constexpr (!std::is_same_v<T, bool>) {
      EXPECT_EQ(x.span<T>()[2], T(1));
      EXPECT_EQ(constant({T(1), T(0)}).dtype(), (std::is_same_v<T, double>) ? f32 : t);
    }
  });
  EXPECT_EQ(constant(half(1.5f)).spec(), (Spec{f16, {}}));
  EXPECT_EQ((constant(half(1.5f)) * 2).item(), 3);
}

TEST(DTypes, LimitsAreHeldAndNoMore) {
  for_each_dtype([]<class T>(DType t) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      constexpr T low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
      EXPECT_EQ((constant({low, high}).template to_vector<T>()), (std::vector<T>{low, high}));
      EXPECT_EQ(text(constant(high)), std::to_string(high));
      if constexpr (sizeof(T) < 8) {
        EXPECT_THROW(constant(static_cast<std::int64_t>(low) - 1, t), OutOfRange);
        EXPECT_THROW(full({2}, static_cast<std::int64_t>(high) + 1, t), OutOfRange);
        EXPECT_THROW(zeros({2}, t) + (static_cast<std::int64_t>(high) + 1), OutOfRange);
        EXPECT_THROW(random::integers({2}, {.low = 0, .high = static_cast<std::int64_t>(high) + 2, .dtype = t}),
                     OutOfRange);
      }
      EXPECT_THROW(constant(0.5, t), OutOfRange);
      EXPECT_THROW(zeros({2}, t) * 0.5, InvalidArgument);
      EXPECT_EQ(reduce_max(constant({low, high, T(1)})).template to_vector<T>()[0], high);
      EXPECT_EQ(reduce_min(constant({low, high, T(1)})).template to_vector<T>()[0], low);
    }
  });
  EXPECT_THROW(constant(-1, u64), OutOfRange);
  EXPECT_THROW(constant(0x1p64, u64), OutOfRange);
  EXPECT_THROW(constant(std::numeric_limits<std::uint64_t>::max(), i64), OutOfRange);
  EXPECT_EQ(constant(0x1p63, u64).to_vector<std::uint64_t>()[0], std::uint64_t{1} << 63);
  EXPECT_THROW(constant(65520, f16), OutOfRange);
  EXPECT_EQ(constant(65519, f16).item(), 65504);
  EXPECT_THROW(constant(3.4e38, bf16), OutOfRange);
  EXPECT_EQ(constant(std::numeric_limits<double>::infinity(), f16).item(), std::numeric_limits<double>::infinity());
}

TEST(DTypes, NarrowFloatsPrintTheShortestThatReadsBack) {
  EXPECT_EQ(text(constant(0.1, f16)), "0.1");
  EXPECT_EQ(text(constant(0.1, bf16)), "0.1");
  EXPECT_EQ(text(constant({1.0 / 3, -65504.0}, f16)), "[0.3333 -65500]");
  EXPECT_EQ(text(constant(1.0 / 3, bf16)), "0.334");
  EXPECT_EQ(text(constant(std::numeric_limits<double>::quiet_NaN(), f16)), "nan");
}

/// Of all numbers of the type the nearest, of two the one whose last bit is 0.
template <class T> T nearest(double x) {
  T best = T::from_bits(0);
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const T candidate = T::from_bits(static_cast<std::uint16_t>(i));
    const auto value = static_cast<double>(candidate), so_far = static_cast<double>(best);
    if (!std::isfinite(value) || std::signbit(value) != std::signbit(x)) continue;
    const double distance = std::abs(value - x), before = std::abs(so_far - x);
    if (std::signbit(so_far) != std::signbit(x) || distance < before || (distance == before && i % 2 == 0))
      best = candidate;
  }
  return best;
}

TEST(DTypes, RoundingIsToTheNearest) {
  std::mt19937_64 random(3);
  const auto check = [&]<NarrowElement T>(T, int lowest, int highest) {
    for (int k = 0; k < 300; ++k) {
      const int exponent = lowest + static_cast<int>(random() % static_cast<unsigned>(highest - lowest));
      double x = std::ldexp(static_cast<double>(random() % 4096) + (k % 3 == 0 ? 0 : 0.5), exponent - 12);
      if (k % 5 == 0) x = std::nextafter(x, k % 2 ? 0 : 1e300);
      if (k % 2) x = -x;
      EXPECT_EQ(T(x).bits, nearest<T>(x).bits) << x;
      const auto single = static_cast<float>(x);
      EXPECT_EQ(T(single).bits, nearest<T>(static_cast<double>(single)).bits) << single;
    }
  };
  check(half{}, -26, 16);
  check(bfloat16{}, -136, 127);
  EXPECT_EQ(half(65519.99).bits, 0x7bff);
  EXPECT_EQ(half(-65520).bits, 0xfc00);
  EXPECT_EQ(half(0x1p-25).bits, 0);
  EXPECT_EQ(half(0x1.0000000000001p-25).bits, 1);
  EXPECT_EQ(bfloat16(3.3962e38).bits, 0x7f80);
}

/// The rounding of one op after the other; what is accumulated is rounded once.
TEST(DTypes, NarrowFloatsAccumulateInSingle) {
  const Tensor ones = full({4096}, 1, f16), small = full({4096}, 0.0001, f16);
  EXPECT_EQ(reduce_sum(ones).item(), 4096);
  EXPECT_EQ(cumsum(ones, 0)[4095].item(), 4096);
  EXPECT_EQ(reduce_mean(full({100000}, 3, f16)).item(), 3);
  EXPECT_EQ(norm(full({4096}, 200, f16)).item(), 12800);
  EXPECT_EQ(matmul(reshape(ones, {1, 4096}), reshape(small, {4096, 1})).item(),
            static_cast<double>(half(4096 * static_cast<float>(half(0.0001)))));
  EXPECT_EQ((full({1}, 2048, f16) + full({1}, 1, f16)).item(), 2048);  // to even
  EXPECT_EQ((full({1}, 256, bf16) + full({1}, 1, bf16)).item(), 256);
}

/// Of matrices one after the other: chains in f32 that take k in pairs, the odd one first, rounded at their ends.
std::vector<bfloat16> product_of_pairs(const std::vector<bfloat16>& a, const std::vector<bfloat16>& b, std::size_t m,
                                       std::size_t n, std::size_t k) {
  std::vector<bfloat16> c;
  for (std::size_t row = 0; row < a.size() / k; ++row)
    for (std::size_t column = 0; column < n; ++column) {
      float sum = 0;
      const auto add = [&](std::size_t at) {
        const bfloat16 y = at < k ? b[row / m * k * n + at * n + column] : bfloat16(0.0f);
        sum = std::fma(at < k ? static_cast<float>(a[row * k + at]) : 0, static_cast<float>(y), sum);
      };
      for (std::size_t pair = 0; pair < k; pair += 2) {
        add(pair + 1);
        add(pair);
      }
      c.push_back(bfloat16(sum));
    }
  return c;
}

TEST(DTypes, ProductsOfBfloat16TakePairs) {
  for (const std::int64_t k : {1, 44, 45}) {
    const std::int64_t m = 37, n = 21;
    const Tensor a = random::normal({3, m, k}, {.dtype = bf16, .seed = 1});
    const Tensor b = random::normal({3, k, n}, {.dtype = bf16, .seed = 2});
    const auto x = a.to_vector<bfloat16>(), y = b.to_vector<bfloat16>();
    const auto expected =
        product_of_pairs(x, y, static_cast<std::size_t>(m), static_cast<std::size_t>(n), static_cast<std::size_t>(k));
    const Tensor across_a = from_values(std::span<const bfloat16>(transpose(a).to_vector<bfloat16>()), {3, k, m});
    const Tensor across_b = from_values(std::span<const bfloat16>(transpose(b).to_vector<bfloat16>()), {3, n, k});
    EXPECT_EQ(matmul(a, b).to_vector<bfloat16>(), expected);
    EXPECT_EQ(matmul(transpose(across_a), b).to_vector<bfloat16>(), expected);
    EXPECT_EQ(matmul(a, transpose(across_b)).to_vector<bfloat16>(), expected);
    EXPECT_EQ(matmul(transpose(across_a), transpose(across_b)).to_vector<bfloat16>(), expected);
    EXPECT_EQ(vmap([](In in) { return Tensors{matmul(in[0], in[1])}; }, Tensors{a, b}, 3)[0].to_vector<bfloat16>(),
              expected);
  }
}

TEST(DTypes, GradientsFlowThroughNarrowFloats) {
  const RecordingScope keep;
  for (const DType t : {f16, bf16}) {
    const Tensor x = constant({0.5, -1.5, 2.0});
    const Tensor y = reduce_sum(cast(square(cast(x, t)), f32));
    const Tensor dx = vjp(y, Tensors{x})[0];
    EXPECT_EQ(dx.dtype(), f32);
    EXPECT_EQ(dx.to_vector<float>(), (std::vector<float>{1, -3, 4}));
    const Tensor table = full({2, 3}, 1, t), rows = gather(table, zeros({3000}, i32));
    const Tensor added = vjp(rows, Tensors{table})[0];
    EXPECT_EQ(added.dtype(), t);
    EXPECT_EQ(added[0][0].item(), t == f16 ? 3000 : 3008);  // bf16 has 8 bits: counted in f32, rounded once
    const Tensor a = full({2, 3}, 0.5, t), b = full({3, 4}, 2, t);
    for (const Tensor& gradient : vjp(matmul(a, b), Tensors{a, b})) EXPECT_EQ(gradient.dtype(), t);
    EXPECT_EQ(softmax(a).dtype(), t);
  }
}

TEST(DTypes, RandomNumbersOfNarrowFloatsAreThoseOfSingleRounded) {
  for (const DType t : {f16, bf16}) {
    EXPECT_TRUE(
        bitwise_equal(random::normal({1000}, {.dtype = t, .seed = 3}), cast(random::normal({1000}, {.seed = 3}), t)));
    const Tensor u = random::uniform({20000}, {.dtype = t, .seed = 4});
    EXPECT_LT(reduce_max(u).item(), 1);
    EXPECT_GE(reduce_min(u).item(), 0);
    const Tensor shifted = random::uniform({20000}, {.low = -3, .high = -2, .dtype = t, .seed = 4});
    EXPECT_LT(reduce_max(shifted).item(), -2);
    EXPECT_GE(reduce_min(shifted).item(), -3);
    EXPECT_EQ(random::truncated_normal({5}, {.dtype = t, .seed = 1}).dtype(), t);
  }
  const Tensor bytes = random::integers({5000}, {.low = -128, .high = 128, .dtype = i8, .seed = 5});
  EXPECT_EQ(bytes.dtype(), i8);
  EXPECT_LT(reduce_min(bytes).item(), -120);
  EXPECT_GT(reduce_max(bytes).item(), 120);
}

TEST(DTypes, EveryIntegerTypeIsAnIndex) {
  const Tensor x = constant({10.0, 20.0, 30.0});
  for (const DType t : {i64, i32, i16, i8, u8, u16, u32, u64}) {
    EXPECT_EQ(gather(x, cast(constant({2, 0}), t)).to_vector<float>(), (std::vector<float>{30, 10})) << t;
    EXPECT_THROW(gather(x, cast(constant({3}), t)).item(), OutOfRange) << t;
  }
  EXPECT_THROW(gather(x, constant(std::numeric_limits<std::uint64_t>::max())).item(), OutOfRange);
}

TEST(DTypes, UnsignedIntegersCompareAndDivideAsSuch) {
  const std::uint64_t huge = std::uint64_t{1} << 63;
  const Tensor x = constant({huge, huge + 5}), y = constant({std::uint64_t{3}, std::uint64_t{0}});
  EXPECT_EQ((x > y).to_vector<bool>(), (std::vector<bool>{true, true}));
  EXPECT_EQ((x / y).to_vector<std::uint64_t>(), (std::vector<std::uint64_t>{huge / 3, 0}));
  EXPECT_EQ(maximum(x, y).to_vector<std::uint64_t>(), (std::vector<std::uint64_t>{huge, huge + 5}));
  EXPECT_EQ((x + x).to_vector<std::uint64_t>(), (std::vector<std::uint64_t>{0, 10}));
  EXPECT_EQ(cast(x, f32).to_vector<float>(), (std::vector<float>{0x1p63f, 0x1p63f}));
  EXPECT_EQ(argmax(x).item(), 1);
}

}  // namespace
}  // namespace gradus::dtypes_test
