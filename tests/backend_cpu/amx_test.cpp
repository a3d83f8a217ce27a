/// AMX: when it is chosen, what its instructions do, how its products compare with exact ones, on any number of threads
/// and through whole programs. That they equal loops bit for bit is in product_test.cpp. All of it runs where the
/// processor has no AMX, too, through an emulator (amx_emulator.h).
#if defined(__x86_64__)
#include <gtest/gtest.h>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <thread>
#include <vector>
#include "gradus/backend/cpu/tiles/amx.h"
#include "gradus/backend/cpu/tiles/product.h"
#include "gradus/base/error.h"
#include "gradus/base/floating_point_state.h"
#include "tests/backend_cpu/amx_emulator.h"
#include "tests/backend_cpu/compiled.h"

namespace gradus::cpu_backend::amx_test {
namespace {

class Amx : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_run_amx()) GTEST_SKIP() << "there is neither AMX nor what its emulation needs";
  }
};

int times_asked = 0;
bool permit() { return ++times_asked, true; }
bool refuse() { return ++times_asked, false; }

TEST(AmxChoice, NeedsTilesTheirProductsAndAKernelThatSavesAndPermitsThem) {
  constexpr std::uint32_t bf16_products = 1u << 22, tiles = 1u << 24, int8_products = 1u << 25;
  constexpr std::uint64_t shapes = 1u << 17, data = 1u << 18, vectors = 0xe7;
  const AmxBits all{true, bf16_products | tiles | int8_products, vectors | shapes | data, permit};
  EXPECT_TRUE(has_amx(all));
  AmxBits bits = all;
  bits.permitted = refuse;
  EXPECT_FALSE(has_amx(bits));
  times_asked = 0;
  const auto lacks = [&](auto change) {
    AmxBits fewer = all;
    change(fewer);
    return !has_amx(fewer);
  };
  EXPECT_TRUE(lacks([](AmxBits& b) { b.pair_products = false; }));
  EXPECT_TRUE(lacks([](AmxBits& b) { b.features &= ~bf16_products; }));
  EXPECT_TRUE(lacks([](AmxBits& b) { b.features &= ~tiles; }));
  EXPECT_TRUE(lacks([](AmxBits& b) { b.saved &= ~shapes; }));
  EXPECT_TRUE(lacks([](AmxBits& b) { b.saved &= ~data; }));
  EXPECT_TRUE(lacks([](AmxBits& b) { b = {}; }));
  EXPECT_EQ(times_asked, 0);  // the kernel is asked last
}

TEST(AmxChoice, AnInstructionSetThatIsNamedIsWithoutIt) {
  const bool before = uses_amx();
  {
    const IsaScope scope(Isa::avx2);
    EXPECT_FALSE(uses_amx());
    EXPECT_FALSE(Product{}.amx);
  }
  if (widest_isa() == Isa::avx512) {
    const IsaScope scope(Isa::avx512, true);
    EXPECT_TRUE(uses_amx());
    EXPECT_EQ(isa(), Isa::avx512);
  }
  EXPECT_EQ(uses_amx(), before);
}

// ---------------------------------------------------------------- instructions

AmxConfiguration stored_configuration() {
  AmxConfiguration c;
  c.palette = 77;
  __asm__ volatile("sttilecfg %0" : "=m"(c));
  return c;
}

/// A tile's 16 rows of 64 bytes; those that the instruction does not write are 0xee.
struct Rows {
  std::uint8_t bytes[16][64];
  Rows() { std::memset(bytes, 0xee, sizeof bytes); }
};

Rows counting(int first) {
  Rows rows;
  for (int i = 0; i < 16 * 64; ++i) rows.bytes[i / 64][i % 64] = static_cast<std::uint8_t>(first + 7 * i);
  return rows;
}

void expect_rows(const Rows& got, const Rows& want, int rows, int bytes) {
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 64; ++j)
      ASSERT_EQ(got.bytes[i][j], i < rows && j < bytes ? want.bytes[i][j] : 0xee) << i << " " << j;
}

TEST_F(Amx, TilesHaveTheShapesThatTheyAreGiven) {
  AmxConfiguration shapes;
  shapes.rows[0] = 5, shapes.row_bytes[0] = 20;
  shapes.rows[7] = 16, shapes.row_bytes[7] = 64;
  __asm__ volatile("ldtilecfg %0" : : "m"(shapes));
  const AmxConfiguration stored = stored_configuration();
  EXPECT_EQ(std::memcmp(&stored, &shapes, sizeof shapes), 0);
  const Rows source = counting(1);
  Rows target, whole, zeros;
  std::memset(zeros.bytes, 0, sizeof zeros.bytes);
  const char* const from = reinterpret_cast<const char*>(&source) - 1000;  // by large and small displacements
  char* const to = reinterpret_cast<char*>(&target) + 3;
  __asm__ volatile("tileloadd 1000(%0,%1,1), %%tmm0\n\ttileloaddt1 1000(%0,%2,2), %%tmm7"
                   :
                   : "r"(from), "r"(64l), "r"(32l)
                   : "memory");
  __asm__ volatile("tilestored %%tmm0, -3(%0,%1,8)" : : "r"(to), "r"(8l) : "memory");
  expect_rows(target, source, 5, 20);
  __asm__ volatile("mov %0, %%r12\n\tmov %1, %%r13\n\ttilestored %%tmm7, (%%r12,%%r13,1)"
                   :
                   : "r"(&whole), "r"(64l)
                   : "memory", "r12", "r13");
  expect_rows(whole, source, 16, 64);
  __asm__ volatile("tilezero %%tmm7\n\ttilestored %%tmm7, (%0,%1,1)" : : "r"(&whole), "r"(64l) : "memory");
  expect_rows(whole, zeros, 16, 64);
  // Without an index there is no stride: every row is the first.
  Rows first;
  for (auto& row : first.bytes) std::memcpy(row, source.bytes[0], 64);
  __asm__ volatile("mov %0, %%r13\n\ttileloadd (%%r13), %%tmm0" : : "r"(&source) : "memory", "r13");
  Rows repeated;
  __asm__ volatile("tilestored %%tmm0, (%0,%1,1)" : : "r"(&repeated), "r"(64l) : "memory");
  expect_rows(repeated, first, 5, 20);
  __asm__ volatile("tilerelease");
  EXPECT_EQ(stored_configuration().palette, 0);
}

TEST_F(Amx, LoadsGoOnFromTheRowWhereTheyWereInterrupted) {
  AmxConfiguration shapes;
  shapes.rows[2] = 9, shapes.row_bytes[2] = 64, shapes.start_row = 4;
  __asm__ volatile("ldtilecfg %0" : : "m"(shapes));
  const Rows source = counting(5);
  Rows target, want = source;
  std::memset(want.bytes, 0, 4 * 64);
  __asm__ volatile("tileloadd (%0,%1,1), %%tmm2" : : "r"(&source), "r"(64l) : "memory");
  EXPECT_EQ(stored_configuration().start_row, 0);
  __asm__ volatile("tilestored %%tmm2, (%0,%1,1)\n\ttilerelease" : : "r"(&target), "r"(64l) : "memory");
  expect_rows(target, want, 9, 64);
}

float of_bf16(std::uint16_t bits) { return static_cast<float>(bfloat16::from_bits(bits)); }

/// Tiles of 3 x 5 sums of 4 pairs: even and odd k are chains of their own; subnormals count as zeros and become zeros,
/// whatever the thread's own mode is.
TEST_F(Amx, ProductsSumEvenAndOddStepsApart) {
  constexpr int rows = 3, columns = 5, pairs = 4;
  AmxConfiguration shapes;
  shapes.rows[1] = rows, shapes.row_bytes[1] = 4 * columns;
  shapes.rows[5] = rows, shapes.row_bytes[5] = 4 * pairs;
  shapes.rows[6] = pairs, shapes.row_bytes[6] = 4 * columns;
  std::mt19937 random(9);
  for (int trial = 0; trial < 200; ++trial) {
    std::uint16_t a[rows][2 * pairs], b[pairs][2 * columns];
    float sums[rows][columns], want[rows][columns];
    const auto element = [&] {  // products are around the smallest normal number in half of the trials
      const unsigned exponent = random() % 9 == 0 ? 0 : (trial % 2 ? 60 : 120) + random() % 8;
      return static_cast<std::uint16_t>((random() & 0x807f) | exponent << 7);
    };
    for (auto& row : a)
      for (auto& x : row) x = element();
    for (auto& row : b)
      for (auto& x : row) x = element();
    for (auto& row : sums)
      for (float& x : row) x = trial % 4 < 2 ? 0.0f : of_bf16(element());
    {
      const KernelFloats flush;
      for (int i = 0; i < rows; ++i)
        for (int j = 0; j < columns; ++j) {
          volatile float even = 0, odd = 0;
          for (int k = 0; k < pairs; ++k) {
            even = std::fma(of_bf16(a[i][2 * k]), of_bf16(b[k][2 * j]), even);
            odd = std::fma(of_bf16(a[i][2 * k + 1]), of_bf16(b[k][2 * j + 1]), odd);
          }
          const volatile float both = even + odd;
          want[i][j] = sums[i][j] + both;
        }
    }
    __asm__ volatile(
        "ldtilecfg %0\n\t"
        "tileloadd (%1,%2,1), %%tmm1\n\t"
        "tileloadd (%3,%4,1), %%tmm5\n\t"
        "tileloadd (%5,%2,1), %%tmm6\n\t"
        "tdpbf16ps %%tmm6, %%tmm5, %%tmm1\n\t"
        "tilestored %%tmm1, (%1,%2,1)\n\t"
        "tilerelease"
        :
        : "m"(shapes), "r"(sums), "r"(4l * columns), "r"(a), "r"(4l * pairs), "r"(b)
        : "memory");
    EXPECT_EQ(std::memcmp(sums, want, sizeof sums), 0) << trial;
  }
}

// ---------------------------------------------------------------- products

struct Operands {
  std::vector<bfloat16> a, b;
  Product product;
};

Operands random_operands(std::int64_t m, std::int64_t n, std::int64_t k, bool transpose_a = false) {
  Operands o;
  std::mt19937 random(static_cast<unsigned>(m + 3 * n + 7 * k));
  std::normal_distribution<float> normal;
  for (auto [operand, size] : {std::pair{&o.a, m * k}, {&o.b, k * n}})
    for (std::int64_t i = 0; i < size; ++i) operand->push_back(static_cast<bfloat16>(normal(random)));
  o.product = {.dtype = bf16, .m = m, .n = n, .k = k, .a_row = transpose_a ? 1 : k, .a_column = transpose_a ? m : 1};
  o.product.b_row = n, o.product.c_row = n, o.product.isa = Isa::avx512, o.product.amx = true;
  return o;
}

std::vector<bfloat16> run_on(const Operands& o, int threads) {
  const Product& p = o.product;
  std::vector<bfloat16> c(static_cast<std::size_t>(p.m * p.n));
  const std::int64_t count = units(p);
  std::vector<std::thread> members;
  for (int i = 0; i < threads; ++i)
    members.emplace_back([&, i] {
      std::vector<std::byte> scratch(scratch_bytes(p));
      run_units(p, o.a.data(), o.b.data(), c.data(), count * i / threads, count * (i + 1) / threads, scratch.data());
    });
  for (std::thread& member : members) member.join();
  return c;
}

TEST_F(Amx, ProductsHaveTheSameBitsOnAnyNumberOfThreads) {
  for (auto [m, n, k] : {std::array{15, 31, 33}, {33, 32, 64}, {100, 200, 31}, {65, 17, 1100}, {1, 300, 70}})
    for (bool transpose : {false, true}) {
      const Operands o = random_operands(m, n, k, transpose);
      const auto one = run_on(o, 1);
      for (int threads : {2, 3})
        EXPECT_EQ(std::memcmp(run_on(o, threads).data(), one.data(), one.size() * sizeof one[0]), 0)
            << m << " " << threads;
    }
}

/// A sum of k products in f32, and one rounding to bf16.
TEST_F(Amx, ProductsAgreeWithExactOnes) {
  for (std::int64_t k : {1, 2, 31, 64, 777}) {
    const Operands o = random_operands(40, 50, k);
    const auto c = run_on(o, 1);
    for (std::int64_t i = 0; i < 40; ++i)
      for (std::int64_t j = 0; j < 50; ++j) {
        double exact = 0, magnitude = 0;
        for (std::int64_t l = 0; l < k; ++l) {
          const double product =
              static_cast<double>(static_cast<float>(o.a[i * k + l])) * static_cast<float>(o.b[l * 50 + j]);
          exact += product, magnitude += std::abs(product);
        }
        const double sum_error = static_cast<double>(k + 2) * 0x1p-24 * magnitude;
        EXPECT_NEAR(static_cast<double>(c[i * 50 + j]), exact, 0x1p-8 * (std::abs(exact) + sum_error) + sum_error);
      }
  }
}

TEST_F(Amx, ARowHasItsBitsWhateverStandsBesideIt) {
  const Operands all = random_operands(70, 40, 100);
  const auto together = run_on(all, 1);
  for (std::int64_t row : {0, 34, 69}) {
    Operands one = all;
    one.a.assign(all.a.begin() + row * 100, all.a.begin() + (row + 1) * 100);
    one.product.m = 1;
    EXPECT_EQ(std::memcmp(run_on(one, 1).data(), &together[row * 40], 40 * sizeof(bfloat16)), 0) << row;
  }
}

TEST_F(Amx, SumsAreRoundedAlikeWithAndWithoutAnInstructionForIt) {
  Operands o = random_operands(45, 37, 66);
  o.product.rounds_by_instruction = false;
  const auto without = run_on(o, 1);
  o.product.rounds_by_instruction = has_pair_products();
  EXPECT_EQ(std::memcmp(run_on(o, 1).data(), without.data(), without.size() * sizeof(bfloat16)), 0);
}

TEST_F(Amx, ThreadsKeepNoTiles) {
  run_on(random_operands(40, 40, 40), 1);
  const Operands o = random_operands(40, 40, 40);
  std::vector<bfloat16> c(1600);
  std::vector<std::byte> scratch(scratch_bytes(o.product));
  const std::int64_t before = amx_instructions_emulated();
  run_units(o.product, o.a.data(), o.b.data(), c.data(), 0, units(o.product), scratch.data());
  EXPECT_TRUE(has_amx() || amx_instructions_emulated() > before);
  EXPECT_EQ(stored_configuration().palette, 0);
}

// ---------------------------------------------------------------- programs

/// A product, its transposes and a batch, with what a program fuses around them.
TEST_F(Amx, ProgramsHaveTheSameBitsInEveryWay) {
  using testing_loops::run, testing_loops::expect_same;
  const IsaScope scope(Isa::avx512, true);
  const Graph graph = parse_graph(
      "%0 = input : bf16[33,70]\n%1 = input : bf16[70,45]\n%2 = input : bf16[3,45,20]\n%3 = matmul{transpose_a=false; "
      "transpose_b=false} %0 %1 : "
      "bf16[33,45]\n"
      "%4 = exp %3 : bf16[33,45]\n%5 = matmul{transpose_a=false; transpose_b=false} %4 %2 : bf16[3,33,20]\n%6 = "
      "matmul{transpose_a=true; transpose_b=false} "
      "%0 "
      "%3 : bf16[70,45]\nreturn %5 %6\n");
  std::vector<Ref<Buffer>> inputs;
  unsigned seed = 0;
  for (int input : graph.inputs) inputs.push_back(testing_loops::random_buffer(graph[input].spec, 4 * ++seed));
  const auto interpreted = cpu_backend::compile(graph, {.tier = Tier::interpreted});
  const auto expected = run(*interpreted, inputs, {});
  for (int threads : {1, 2, 3}) {
    const Threads threads_scope(threads);
    const auto program = cpu_backend::compile(graph, {});
    expect_same(*program, run(*program, inputs, {}), expected, {}, "compiled");
  }
}

}  // namespace
}  // namespace gradus::cpu_backend::amx_test
#endif
