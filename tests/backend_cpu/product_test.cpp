/// Matrix products equal three naive loops bit for bit: every type, instruction set, layout, shape and division of
/// work.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>
#include "gradus/backend/cpu/tiles/product.h"
#include "gradus/base/error.h"
#include "gradus/base/floating_point_state.h"
#include "tests/backend_cpu/amx_emulator.h"
#include "tests/instruction_sets.h"

namespace gradus::cpu_backend::product_test {
namespace {

/// What a product may be computed with on this processor.
struct Tiles {
  Isa isa;
  bool near_panels = false, pairs = false, amx = false, rounds = false;
  void set(Product& p) const {
    p.isa = isa, p.near_panels = near_panels, p.pair_tiles = pairs, p.amx = amx, p.rounds_by_instruction = rounds;
  }
};
template <class T> std::vector<Tiles> all_tiles() {
  std::vector<Tiles> all;
  for (Isa isa : isas_here()) all.push_back({isa});
  if (isas_here().back() == Isa::avx512) all.push_back({.isa = Isa::avx512, .near_panels = true});
  if (std::is_same_v<T, bfloat16> && has_pair_products()) {
    all.push_back({.isa = Isa::avx512, .pairs = true});
    all.push_back({.isa = Isa::avx512, .rounds = true});
  }
  if (std::is_same_v<T, bfloat16> && can_run_amx())
    all.push_back({.isa = Isa::avx512, .pairs = has_pair_products(), .amx = true, .rounds = has_pair_products()});
  return all;
}

/// In which a chain is summed.
template <class T> using Sum = std::conditional_t<std::is_same_v<T, bfloat16>, float, T>;

template <class T> T next(T sum, T x, T y) {
  if constexpr (std::is_floating_point_v<T>) return std::fma(x, y, sum);
  else
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(sum) +
                          static_cast<std::make_unsigned_t<T>>(x) * static_cast<std::make_unsigned_t<T>>(y));
}

template <class T> std::vector<T> random_values(std::size_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<T> values(count);
  for (T& value : values) {
    if constexpr (FloatingElement<T>)
      value = static_cast<T>(static_cast<Sum<T>>(static_cast<std::int64_t>(random())) * Sum<T>(1e-18));
    else value = static_cast<T>(random());
  }
  return values;
}

/// The bits of a value; every NaN is the same.
template <class T> std::uint64_t bits(T value) {
  if constexpr (FloatingElement<T>)
    if (value != value) return ~0ull;
  std::uint64_t result = 0;
  std::memcpy(&result, &value, sizeof value);
  return result;
}

struct Case {
  std::int64_t m, n, k;
  bool transpose_a = false, transpose_b = false;
  std::int64_t batch = 1;
  bool repeat_a = false, repeat_b = false;
  std::int64_t gap = 0;  // elements between rows, and between matrices, that are not part of them
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.batch << " of " << c.m << " x " << c.n << " x " << c.k << (c.transpose_a ? " T" : " N")
             << (c.transpose_b ? "T" : "N") << (c.repeat_a ? ", one a" : "") << (c.repeat_b ? ", one b" : "")
             << ", gap " << c.gap;
}

Product make_product(const Case& c, DType dtype) {
  Product p{.dtype = dtype, .batch = c.batch, .m = c.m, .n = c.n, .k = c.k};
  (c.transpose_a ? p.a_row : p.a_column) = 1;
  (c.transpose_a ? p.a_column : p.a_row) = (c.transpose_a ? c.m : c.k) + c.gap;
  (c.transpose_b ? p.b_row : p.b_column) = 1;
  (c.transpose_b ? p.b_column : p.b_row) = (c.transpose_b ? c.k : c.n) + c.gap;
  p.c_row = c.n + c.gap;
  p.a_batch = c.repeat_a ? 0 : (c.transpose_a ? c.k * p.a_column : c.m * p.a_row) + c.gap;
  p.b_batch = c.repeat_b ? 0 : (c.transpose_b ? c.n * p.b_column : c.k * p.b_row) + c.gap;
  p.c_batch = c.m * p.c_row + c.gap;
  return p;
}

/// Memory that ends where no access is allowed.
template <class T> class Guarded {
 public:
  explicit Guarded(const std::vector<T>& values) : page_(sysconf(_SC_PAGESIZE)) {
    const std::size_t bytes = values.size() * sizeof(T);
    size_ = (bytes + page_ - 1) / page_ * page_ + page_;
    memory_ = static_cast<char*>(mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(memory_ + size_ - page_, page_, PROT_NONE);
    data_ = reinterpret_cast<T*>(memory_ + size_ - page_ - bytes);
    std::copy(values.begin(), values.end(), data_);
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  ~Guarded() { munmap(memory_, size_); }
  T* data() { return data_; }

 private:
  std::size_t page_, size_;
  char* memory_;
  T* data_;
};

/// Operands of a case, and its result by three loops.
template <class T> struct Problem {
  Case shape;
  Product product;
  std::vector<T> a, b, expected, expected_of_amx;

  explicit Problem(const Case& c) : shape(c), product(make_product(c, dtype_of<T>())) {
    const Product& p = product;
    a = random_values<T>(1 + c.batch * p.a_batch + (c.m + 1) * p.a_row + (c.k + 1) * p.a_column, 1);
    b = random_values<T>(1 + c.batch * p.b_batch + (c.k + 1) * p.b_row + (c.n + 1) * p.b_column, 2);
    solve();
  }

  static T untouched() { return T(77); }
  std::vector<T> target() const {
    return std::vector<T>(shape.batch * product.c_batch + shape.m * product.c_row + 1, untouched());
  }

  void solve() {
    expected = expected_of_amx = target();
    const std::vector<Sum<T>> all = sums();
    for_each_element([&](const T* x, const T* y, std::size_t at) {
      expected[at] = static_cast<T>(all[at]);
      if constexpr (std::is_same_v<T, bfloat16>) expected_of_amx[at] = static_cast<T>(sum_of_amx(x, y));
    });
  }

  static constexpr float untouched_sum = 77;
  /// Not rounded.
  std::vector<Sum<T>> sums() const {
    std::vector<Sum<T>> all(target().size(), static_cast<Sum<T>>(untouched_sum));
    const Product& p = product;
    for_each_element([&](const T* x, const T* y, std::size_t result) {
      Sum<T> sum = 0;
      for (std::int64_t k = 0; k < p.k; ++k) {
        const std::int64_t at = std::is_same_v<T, bfloat16> ? k ^ 1 : k;  // of each pair the odd one first
        sum = at < p.k ? step(sum, x[at * p.a_column], y[at * p.b_row]) : next<Sum<T>>(sum, 0, 0);
      }
      if (std::is_same_v<T, bfloat16> && p.k % 2 == 1)  // the loop met the missing one in place of the last
        sum = step(sum, x[(p.k - 1) * p.a_column], y[(p.k - 1) * p.b_row]);
      all[result] = sum;
    });
    return all;
  }
  /// visit(row of a, column of b, place in c)
  template <class Visit> void for_each_element(const Visit& visit) const {
    const Product& p = product;
    for (std::int64_t i = 0; i < p.batch; ++i)
      for (std::int64_t row = 0; row < p.m; ++row)
        for (std::int64_t column = 0; column < p.n; ++column)
          visit(&a[i * p.a_batch + row * p.a_row], &b[i * p.b_batch + column * p.b_column],
                static_cast<std::size_t>(i * p.c_batch + row * p.c_row + column));
  }
  /// Even and odd k apart, 32 at a time; those that are missing are zeros.
  float sum_of_amx(const bfloat16* x, const bfloat16* y) const {
    const KernelFloats flush;
    const Product& p = product;
    float sum = 0;
    for (std::int64_t first = 0; first < p.k; first += 32) {
      float halves[2] = {};
      for (std::int64_t k = first; k < first + 32; ++k) {
        float& half = halves[k % 2];
        half = k < p.k ? step(half, x[k * p.a_column], y[k * p.b_row]) : next<float>(half, 0, 0);
      }
      sum += halves[0] + halves[1];
    }
    return sum;
  }
  const std::vector<T>& wanted() const { return product.amx && product.dtype == bf16 ? expected_of_amx : expected; }
  static Sum<T> step(Sum<T> sum, T x, T y) { return next<Sum<T>>(sum, static_cast<Sum<T>>(x), static_cast<Sum<T>>(y)); }

  /// Runs the units in the given ranges, and expects the naive result and nothing touched beside it.
  void expect_equal(const std::vector<std::int64_t>& bounds) const {
    std::vector<T> c = target();
    std::vector<unsigned char> scratch(scratch_bytes(product), 0xff);  // all NaN
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i)
      run_units(product, a.data(), b.data(), c.data(), bounds[i], bounds[i + 1], scratch.data());
    for (std::size_t i = 0; i < c.size(); ++i)
      ASSERT_EQ(bits(c[i]), bits(wanted()[i]))
          << product.dtype << " " << name(product.isa) << (product.amx ? " with AMX " : " ") << shape << ": element "
          << i << " is " << static_cast<double>(c[i]) << ", expected " << static_cast<double>(wanted()[i]);
  }
  void expect_equal() const { expect_equal({0, units(product)}); }

  /// The same of what an epilogue is handed, which sees every element once.
  void expect_pieces(const std::vector<std::int64_t>& cuts) const {
    Product p = product;
    p.is_followed = true;
    std::vector<T> c = target();
    std::vector<int> times(c.size());
    std::vector<T> memory = needs_c(p) ? target() : std::vector<T>();
    Guarded<unsigned char> scratch(std::vector<unsigned char>((scratch_bytes(p) + 63) / 64 * 64, 0xff));
    const auto take = [&](const Piece& piece) {
      for (std::int64_t i = 0; i < piece.rows; ++i)
        for (std::int64_t j = 0; j < piece.columns; ++j) {
          const auto at = static_cast<std::size_t>(piece.first + i * p.n + j);
          c.at(at) = static_cast<const T*>(piece.c)[i * piece.pitch + j];
          ++times.at(at);
        }
    };
    const Epilogue epilogue{[](void* state, const Piece& piece) { (*static_cast<decltype(take)*>(state))(piece); },
                            const_cast<void*>(static_cast<const void*>(&take))};
    std::vector<std::int64_t> bounds{0, units(p)};
    for (std::int64_t cut : cuts) bounds.push_back(units(p) == 0 ? 0 : cut % units(p));
    std::ranges::sort(bounds);
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i)
      run_units(p, a.data(), b.data(), needs_c(p) ? memory.data() : nullptr, bounds[i], bounds[i + 1], scratch.data(),
                epilogue);
    for (std::size_t i = 0; i < c.size(); ++i) {
      ASSERT_EQ(times[i], i < static_cast<std::size_t>(p.batch * p.m * p.n)) << shape << ": element " << i;
      ASSERT_EQ(bits(c[i]), bits(wanted()[i])) << p.dtype << " " << name(p.isa) << " " << shape << ": element " << i;
    }
  }

  /// Every element belongs to one of the ranges alone.
  void expect_disjoint(const std::vector<std::int64_t>& bounds) const {
    std::vector<int> writers(target().size());
    std::vector<unsigned char> scratch(scratch_bytes(product));
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
      std::vector<T> c = target();
      run_units(product, a.data(), b.data(), c.data(), bounds[i], bounds[i + 1], scratch.data());
      for (std::size_t j = 0; j < c.size(); ++j) writers[j] += c[j] != untouched();
    }
    for (std::size_t j = 0; j < writers.size(); ++j)
      ASSERT_EQ(writers[j], wanted()[j] != untouched()) << product.dtype << " " << shape << ": element " << j;
  }
};

template <class T> void check_on_all(const Case& c) {
  Problem<T> problem(c);
  for (const Tiles& tiles : all_tiles<T>()) {
    tiles.set(problem.product);
    problem.expect_equal();
    if (c.gap == 0) problem.expect_pieces({7, 1000});
  }
}

template <class T> class ProductOf : public testing::Test {};
using Types = testing::Types<float, double, bfloat16, std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(ProductOf, Types);

TYPED_TEST(ProductOf, EqualsLoopsAtAllEdges) {
  const std::int64_t sizes[] = {1, 7, 8, 13, 17, 33, 100};
  for (std::int64_t m : sizes)
    for (std::int64_t n : sizes)
      for (std::int64_t k : {1, 7, 17, 33})
        for (int layout = 0; layout < 4; ++layout)
          check_on_all<TypeParam>({.m = m, .n = n, .k = k, .transpose_a = layout % 2 == 1, .transpose_b = layout > 1});
}

TYPED_TEST(ProductOf, EqualsLoopsAtEveryHeightOfTiles) {
  for (std::int64_t m = 1; m <= 25; ++m)
    for (std::int64_t n : {3, 5, 40}) check_on_all<TypeParam>({.m = m, .n = n, .k = 3});
}

/// Wide tiles, their edges, and several panels of few rows.
TYPED_TEST(ProductOf, EqualsLoopsOfFewRows) {
  for (std::int64_t m = 1; m <= 17; ++m)
    for (const bool transpose_a : {false, true})
      for (auto [n, k] : {std::pair{255, 5}, {257, 1}, {600, 66}, {700, 203}})
        check_on_all<TypeParam>({.m = m, .n = n, .k = k, .transpose_a = transpose_a, .gap = m % 3});
}

TYPED_TEST(ProductOf, PausesInMemoryBetweenBlocksOfSteps) {
  for (int layout = 0; layout < 4; ++layout)
    for (std::int64_t k : {513, 900, 1027, 2100})
      check_on_all<TypeParam>({.m = 67, .n = 141, .k = k, .transpose_a = layout % 2 == 1, .transpose_b = layout > 1});
}

TYPED_TEST(ProductOf, PacksRowsAPowerOfTwoApart) {
  for (int layout = 0; layout < 4; ++layout) {
    Case c{.m = 40, .n = 130, .k = 300, .transpose_a = layout % 2 == 1, .transpose_b = layout > 1};
    c.gap = 512 - (c.transpose_a ? c.m : c.k);
    check_on_all<TypeParam>(c);
  }
}

TYPED_TEST(ProductOf, KeepsPackedRowsForAllColumns) {
  for (int layout = 0; layout < 4; ++layout)
    for (auto [m, k] : {std::pair{45, 515}, {130, 515}, {70, 1100}}) {  // few rows, several groups, with a pause
      Case c{.m = m, .n = 600, .k = k, .transpose_a = layout % 2 == 1, .transpose_b = layout > 1};
      c.gap = (k > 1024 ? 2048 : 1024) - (c.transpose_a ? c.m : c.k);
      check_on_all<TypeParam>(c);
    }
}

TYPED_TEST(ProductOf, StreamsBPastFewRows) {
  for (std::int64_t m : {1, 3, 16})
    for (bool transpose : {false, true})
      check_on_all<TypeParam>({.m = m, .n = 700, .k = 300, .transpose_a = transpose});
}

TYPED_TEST(ProductOf, TurnsASingleColumnIntoARow) {
  for (int layout = 0; layout < 4; ++layout)
    for (std::int64_t gap : {0, 2})
      for (std::int64_t m : {1, 5, 200})
        check_on_all<TypeParam>({.m = m,
                                 .n = 1,
                                 .k = 530,
                                 .transpose_a = layout % 2 == 1,
                                 .transpose_b = layout > 1,
                                 .batch = 3,
                                 .repeat_a = gap == 0,
                                 .gap = gap});
}

TYPED_TEST(ProductOf, LeavesGapsAlone) {
  for (int layout = 0; layout < 4; ++layout)
    check_on_all<TypeParam>(
        {.m = 29, .n = 37, .k = 19, .transpose_a = layout % 2 == 1, .transpose_b = layout > 1, .batch = 3, .gap = 5});
}

TYPED_TEST(ProductOf, RepeatsOperandsOverABatch) {
  for (int kind = 0; kind < 16; ++kind)
    for (std::int64_t gap : {0, 3})
      for (std::int64_t m : {4, 70})
        check_on_all<TypeParam>({.m = m,
                                 .n = 35,
                                 .k = m == 4 ? 9 : 520,
                                 .transpose_a = kind % 2 == 1,
                                 .transpose_b = kind / 2 % 2 == 1,
                                 .batch = 3,
                                 .repeat_a = kind / 4 % 2 == 1,
                                 .repeat_b = kind / 8 == 1,
                                 .gap = gap});
}

TYPED_TEST(ProductOf, AnyDivisionIntoUnitsGivesTheSameBits) {
  const Case cases[] = {{.m = 64, .n = 128, .k = 50},
                        {.m = 100, .n = 700, .k = 530},
                        {.m = 30, .n = 70, .k = 40, .transpose_b = true, .batch = 5},
                        {.m = 30, .n = 70, .k = 600, .transpose_b = true, .batch = 5, .repeat_b = true, .gap = 1},
                        // Two blocks of columns, so that rows are divided first: of 32 bits, of 64, of many matrices.
                        {.m = 537, .n = 290, .k = 1000, .transpose_a = true},
                        {.m = 537, .n = 150, .k = 1000},
                        {.m = 225, .n = 128, .k = 257},
                        {.m = 230, .n = 300, .k = 520, .transpose_b = true},
                        {.m = 190, .n = 290, .k = 1000, .batch = 3, .repeat_b = true, .gap = 1}};
  std::mt19937 random(3);
  for (const Case& c : cases) {
    Problem<TypeParam> problem(c);
    for (const Tiles& tiles : all_tiles<TypeParam>()) {
      tiles.set(problem.product);
      const std::int64_t count = units(problem.product);
      for (int trial = 0; trial < (tiles.amx ? 1 : 4); ++trial) {  // which may be emulated
        std::vector<std::int64_t> bounds{0, count};
        for (int cut = 0; cut < 4; ++cut) bounds.push_back(random() % (count + 1));
        std::sort(bounds.begin(), bounds.end());
        problem.expect_equal(bounds);
        problem.expect_disjoint(bounds);
      }
    }
  }
}

TYPED_TEST(ProductOf, ReadsAndWritesNothingPastTheEnd) {
  for (int layout = 0; layout < 4; ++layout)
    for (std::int64_t n : {1, 9, 43, 300})
      for (std::int64_t m : {3, 30, 70})
        for (std::int64_t k : {5, 515}) {
          Problem<TypeParam> problem(
              {.m = m, .n = n, .k = k, .transpose_a = layout % 2 == 1, .transpose_b = layout > 1});
          for (const Tiles& tiles : all_tiles<TypeParam>()) {
            Product& p = problem.product;
            tiles.set(p);
            Guarded<TypeParam> a({problem.a.begin(), problem.a.begin() + m * k});
            Guarded<TypeParam> b({problem.b.begin(), problem.b.begin() + k * n});
            Guarded<TypeParam> c(std::vector<TypeParam>(m * n));
            Guarded<unsigned char> scratch(std::vector<unsigned char>((scratch_bytes(p) + 63) / 64 * 64));
            run_units(p, a.data(), b.data(), c.data(), 0, units(p), scratch.data());
            for (std::int64_t i = 0; i < m * n; ++i) ASSERT_EQ(bits(c.data()[i]), bits(problem.wanted()[i]));
          }
        }
}

TYPED_TEST(ProductOf, HandsOverWholeRowsOrBlocksOfColumns) {
  const Case cases[] = {{.m = 300, .n = 270, .k = 70, .transpose_a = true},  // whole rows
                        {.m = 301, .n = 139, .k = 301},
                        {.m = 230, .n = 700, .k = 100, .transpose_a = true, .transpose_b = true},
                        {.m = 90, .n = 2100, .k = 600},  // blocks of columns
                        {.m = 60, .n = 40000, .k = 3, .transpose_a = true},
                        {.m = 2, .n = 90000, .k = 2},
                        {.m = 250, .n = 100, .k = 1500},  // sums that pause in memory
                        {.m = 50, .n = 60, .k = 40, .batch = 7, .repeat_b = true},
                        {.m = 50, .n = 60, .k = 40, .transpose_b = true, .batch = 7}};
  for (const Case& c : cases) {
    Problem<TypeParam> problem(c);
    for (const Tiles& tiles : all_tiles<TypeParam>()) {
      tiles.set(problem.product);
      problem.expect_pieces({});
      problem.expect_pieces({1, 11, 101, 2003});
    }
  }
}

TYPED_TEST(ProductOf, NoStepsGiveZeros) {
  check_on_all<TypeParam>({.m = 31, .n = 45, .k = 0, .batch = 2});
  check_on_all<TypeParam>({.m = 64, .n = 400, .k = 0, .transpose_a = true});
  check_on_all<TypeParam>({.m = 31, .n = 45, .k = 0, .batch = 2, .gap = 1});
  check_on_all<TypeParam>({.m = 31, .n = 45, .k = 0, .transpose_a = true, .transpose_b = true});
  check_on_all<TypeParam>({.m = 67, .n = 300, .k = 0, .transpose_a = true});  // several blocks of columns
}

TYPED_TEST(ProductOf, NothingToComputeTouchesNothing) {
  for (Case c : {Case{0, 5, 5}, Case{5, 0, 5}, Case{0, 0, 0}}) {
    check_on_all<TypeParam>(c);
    EXPECT_EQ(units(make_product(c, dtype_of<TypeParam>())), 0);
  }
  EXPECT_EQ(units(make_product({.m = 5, .n = 5, .k = 5, .batch = 0}, dtype_of<TypeParam>())), 0);
}

TEST(Product, NotANumberAndInfinityStayInTheirRowsAndColumns) {
  for (bool transpose : {false, true}) {
    Problem<float> problem({.m = 45, .n = 75, .k = 20, .transpose_a = transpose, .transpose_b = transpose});
    const Product& p = problem.product;
    problem.a[3 * p.a_row + 2 * p.a_column] = std::numeric_limits<float>::quiet_NaN();
    problem.a[40 * p.a_row + 7 * p.a_column] = std::numeric_limits<float>::infinity();
    problem.b[5 * p.b_row + 70 * p.b_column] = -std::numeric_limits<float>::infinity();
    problem.b[7 * p.b_row + 11 * p.b_column] = 0;  // infinity * 0
    problem.solve();
    for (Isa isa : isas_here()) {
      problem.product.isa = isa;
      problem.expect_equal();
    }
    EXPECT_TRUE(std::isnan(problem.expected[40 * 75 + 11]));
    EXPECT_FALSE(std::isnan(problem.expected[41 * 75 + 11]));
  }
}

/// Of numbers so small that products, sums or both are subnormal, and of infinities, in every order of signs.
TEST(Product, OfPairsFlushesAsSingleStepsDo) {
  const KernelFloats flush;
  std::mt19937 random(5);
  for (std::int64_t k : {1, 2, 7, 32}) {
    Problem<bfloat16> problem({.m = 61, .n = 77, .k = k, .transpose_b = k == 7});
    for (auto* operand : {&problem.a, &problem.b})
      for (bfloat16& x : *operand) {
        const unsigned exponent = random() % 16 == 0 ? random() % 4 : 58 + random() % 10;
        x = bfloat16::from_bits(static_cast<std::uint16_t>((random() & 0x807f) | exponent << 7));
      }
    if (k == 32) problem.a[40] = std::numeric_limits<bfloat16>::infinity();
    problem.solve();
    for (const Tiles& tiles : all_tiles<bfloat16>()) {
      tiles.set(problem.product);
      problem.expect_equal();
    }
  }
}

TEST(Product, OfPairsRoundsItsSumsOnce) {
  // 256 + 1 + 1 + 1 is 259 in f32, rounded to 260; in bf16, whose steps are 2 there, it would stay 256.
  std::vector<bfloat16> a(4, bfloat16(1.0f)), b(4, bfloat16(1.0f)), c(1);
  a[0] = bfloat16(256.0f);
  Product p{.dtype = bf16, .m = 1, .n = 1, .k = 4, .a_row = 4, .b_row = 1, .c_row = 1};
  for (const Tiles& tiles : all_tiles<bfloat16>()) {
    tiles.set(p);
    std::vector<unsigned char> scratch(scratch_bytes(p));
    run_units(p, a.data(), b.data(), c.data(), 0, units(p), scratch.data());
    EXPECT_EQ(static_cast<float>(c[0]), 260) << name(tiles.isa) << (tiles.pairs ? " with pairs" : "");
  }
}

/// Wide sums in two parts, of which the first has an even number of k, are those of the whole chain.
TEST(Product, OfPairsMayStayWideAndGoOn) {
  for (int layout = 0; layout < 8; ++layout)
    for (auto [m, n] : {std::pair{1, 1}, {1, 40}, {70, 1}, {64, 32}, {67, 141}, {25, 300}})
      for (std::int64_t k : {0, 1, 6, 33, 530}) {
        const Case c{.m = m,
                     .n = n,
                     .k = k,
                     .transpose_a = layout % 2 == 1,
                     .transpose_b = layout / 2 % 2 == 1,
                     .batch = 2,
                     .gap = layout > 3 ? 1 : 0};
        Problem<bfloat16> problem(c);
        Product& p = problem.product;
        p.wide = true;
        const std::vector<float> expected = problem.sums();
        for (const Tiles& tiles : all_tiles<bfloat16>())
          for (const std::int64_t first : {k, k / 4 * 2}) {
            tiles.set(p);
            std::vector<float> got(expected.size(), Problem<bfloat16>::untouched_sum);
            for (const bool resume : {false, true}) {
              Product part = p;
              part.k = resume ? k - first : first, part.resume = resume;
              std::vector<unsigned char> scratch(scratch_bytes(part), 0xff);
              const std::int64_t from = resume ? first : 0;
              run_units(part, problem.a.data() + from * p.a_column, problem.b.data() + from * p.b_row, got.data(), 0,
                        units(part), scratch.data());
            }
            for (std::size_t i = 0; i < got.size(); ++i)
              ASSERT_EQ(bits(got[i]), bits(expected[i])) << name(tiles.isa) << " " << c << ": element " << i;
          }
      }
}

TEST(Product, OfSmallShapesHasEnoughUnitsForSixteenThreads) {
  for (bool transpose_b : {false, true}) {
    Product p = make_product({.m = 64, .n = 128, .k = 784, .transpose_b = transpose_b}, f32);
    for (Isa isa : isas_here()) {
      p.isa = isa;
      EXPECT_GE(units(p), 16);
    }
  }
}

TEST(Product, OfVerySmallShapesDividesEvenlyAmongTwoThreads) {
  for (std::int64_t m : {64, 65, 70, 128})
    for (std::int64_t n : {10, 30})
      for (Isa isa : isas_here()) {
        Product p = make_product({.m = m, .n = n, .k = 100}, f32);
        p.isa = isa;
        EXPECT_TRUE(units(p) % 2 == 0 || units(p) > 8) << m << " x " << n << " has " << units(p);
      }
}

TEST(Product, ChecksItsStrides) {
  EXPECT_THROW(units({.m = 2, .n = 2, .k = 2, .a_row = 4, .a_column = 2, .b_row = 2, .c_row = 2}), InternalError);
  EXPECT_THROW(units({.m = 2, .n = 2, .k = 2, .a_row = 2, .b_row = -2, .c_row = 2}), InternalError);
  EXPECT_THROW(units({.dtype = f16, .m = 2, .n = 2, .k = 2, .a_row = 2, .b_row = 2, .c_row = 2}), InternalError);
  EXPECT_THROW(units({.dtype = bf16, .m = 2, .n = 2, .k = 2, .a_row = 2, .b_row = 2, .c_row = 2, .resume = true}),
               InternalError);
  EXPECT_THROW(units({.dtype = u8, .m = 2, .n = 2, .k = 2, .a_row = 2, .b_row = 2, .c_row = 2}), InternalError);
}

#if defined(__x86_64__)
TEST(InstructionSet, IsTheWidestOrTheOneSet) {
  EXPECT_EQ(choose_isa("", Isa::avx512), Isa::avx512);
  EXPECT_EQ(choose_isa("", Isa::avx2), Isa::avx2);
  EXPECT_EQ(choose_isa("avx2", Isa::avx512), Isa::avx2);
  EXPECT_EQ(choose_isa("avx512", Isa::avx512), Isa::avx512);
}

TEST(InstructionSet, RefusesWhatThereIsNot) {
  EXPECT_THROW(choose_isa("avx512", Isa::avx2), Unavailable);
  EXPECT_THROW(choose_isa("", std::nullopt), Unavailable);
  EXPECT_THROW(choose_isa("neon", Isa::avx512), InvalidArgument);
  try {
    choose_isa("AVX2", Isa::avx512);
    FAIL();
  } catch (const InvalidArgument& problem) {
    EXPECT_STREQ(problem.what(), "GRADUS_ISA: expected avx2 or avx512, given 'AVX2'; unset it to use the widest");
  }
}

#else
TEST(InstructionSet, IsNeon) {
  EXPECT_EQ(choose_isa("", Isa::neon), Isa::neon);
  EXPECT_EQ(choose_isa("neon", Isa::neon), Isa::neon);
  EXPECT_THROW(choose_isa("avx2", Isa::neon), InvalidArgument);
}
#endif

TEST(InstructionSet, ScopesNest) {
  const Isa before = isa();
  for (Isa wanted : isas_here()) {
    IsaScope scope(wanted);
    EXPECT_EQ(isa(), wanted);
    {
      IsaScope inner(narrowest_isa());
      EXPECT_EQ(isa(), narrowest_isa());
    }
    EXPECT_EQ(isa(), wanted);
    EXPECT_EQ(Product{}.isa, wanted);
  }
  EXPECT_EQ(isa(), before);
}

}  // namespace
}  // namespace gradus::cpu_backend::product_test
