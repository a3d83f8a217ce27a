/// Work that threads take over from each other changes no bit: products in the midst of their chains, products that are
/// followed, whole programs.
#include <cstring>
#include <thread>
#include "gradus/backend/cpu/tiles/product.h"
#include "gradus/base/floating_point_state.h"
#include "gradus/base/share.h"
#include "tests/backend_cpu/compiled.h"
#include "tests/instruction_sets.h"

namespace gradus::testing_loops::shares_test {
namespace {

using cpu_backend::Isa;
using cpu_backend::Product;

struct Case {
  std::int64_t m, n, k;
  bool transpose_a = false, transpose_b = false;
  std::int64_t batch = 1;
  DType dtype = f32;
};

/// Deep and short chains, several blocks of columns, many matrices, few rows, nothing to sum, rows that are packed in
/// groups.
constexpr Case cases[] = {{300, 200, 2600},
                          {300, 200, 2600, true},
                          {200, 300, 1500, false, true},
                          {90, 5000, 700},
                          {130, 4000, 300, true, true},
                          {500, 64, 33},
                          {40, 70, 600, false, false, 5},
                          {40, 70, 600, false, true, 5},
                          {64, 100, 0},
                          {3, 1000, 1000},
                          {1000, 1, 1000},
                          {560, 2000, 300},
                          {1024, 200, 300, true},
                          {200, 150, 1200, false, false, 1, f64},
                          {200, 150, 1200, true, false, 1, i32},
                          {300, 150, 700, false, false, 1, bf16},
                          {300, 150, 701, true, true, 1, bf16}};

Product product_of(const Case& c, Isa isa) {
  Product p{.dtype = c.dtype, .batch = c.batch, .m = c.m, .n = c.n, .k = c.k, .isa = isa, .amx = false};
  p.a_row = c.transpose_a ? 1 : c.k, p.a_column = c.transpose_a ? c.m : 1;
  p.b_row = c.transpose_b ? 1 : c.n, p.b_column = c.transpose_b ? c.k : 1;
  p.a_batch = c.m * c.k, p.b_batch = c.n * c.k, p.c_row = c.n, p.c_batch = c.m * c.n;
  return p;
}

/// Numbers of which sums round, so that they differ in another order.
std::vector<std::byte> random_elements(DType dtype, std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(static_cast<std::size_t>(count * size_of(dtype)) + 64);
  for (std::int64_t i = 0; i < count; ++i) {
    const float x = static_cast<float>(static_cast<std::int32_t>(random())) * 1e-9f;
    std::byte* const at = bytes.data() + i * size_of(dtype);
    if (dtype == f32) std::memcpy(at, &x, sizeof x);
    else if (dtype == bf16) std::memcpy(at, reinterpret_cast<const char*>(&x) + 2, 2);
    else if (const double wide = x; dtype == f64) std::memcpy(at, &wide, sizeof wide);
    else if (const auto whole = static_cast<std::int32_t>(random()); dtype == i32)
      std::memcpy(at, &whole, sizeof whole);
  }
  return bytes;
}

/// One product, by one thread or by several that take over what the first one has.
struct Work {
  const Product& p;
  const std::vector<std::byte>&a, &b;
  std::vector<std::byte> c = std::vector<std::byte>(static_cast<std::size_t>(p.batch * p.m * p.n * size_of(p.dtype)));

  void run(Share* share, std::byte* scratch) {
    const KernelFloats flush;
    cpu_backend::run_units(p, a.data(), b.data(), c.data(), 0, cpu_backend::units(p), scratch, {&copy, this}, share);
  }
  /// Of a product that is followed: what it hands on is copied, and counted.
  static void copy(void* state, const cpu_backend::Piece& piece) {
    Work& work = *static_cast<Work*>(state);
    const auto size = static_cast<std::size_t>(size_of(work.p.dtype));
    for (std::int64_t row = 0; row < piece.rows; ++row)
      std::memcpy(work.copied.data() + static_cast<std::size_t>(piece.first + row * work.p.n) * size,
                  static_cast<const std::byte*>(piece.c) + static_cast<std::size_t>(row * piece.pitch) * size,
                  static_cast<std::size_t>(piece.columns) * size);
    work.elements += piece.rows * piece.columns;
  }
  std::vector<std::byte> copied = c;
  std::atomic<std::int64_t> elements = 0;
};

std::vector<std::byte> scratch_for(const Product& p) {
  return std::vector<std::byte>(cpu_backend::scratch_bytes(p) + 64);
}

/// How often something was taken over.
int run_shared(Work& work, int threads) {
  std::vector<Share> shares(static_cast<std::size_t>(threads));
  shares[0].begin({0, cpu_backend::units(work.p)});
  std::atomic<int> taken = 0;
  const auto take_over = [&](std::size_t self, std::byte* scratch) {
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (std::size_t i = 1; i < shares.size(); ++i) {
        const auto found = shares[self].take_over(shares[(self + i) % shares.size()], 1);
        goes_on |= found != Share::Found::nothing;
        if (found == Share::Found::taken) ++taken, work.run(&shares[self], scratch);
      }
    }
  };
  std::vector<std::jthread> others;
  for (std::size_t w = 1; w < shares.size(); ++w)
    others.emplace_back([&, w] {
      auto scratch = scratch_for(work.p);
      take_over(w, scratch.data());
    });
  auto scratch = scratch_for(work.p);
  work.run(&shares[0], scratch.data());
  take_over(0, scratch.data());
  return taken;
}

TEST(Shares, OfProductsKeepTheirBits) {
  int taken = 0;
  for (const Isa isa : isas_here()) {
    for (const Case& c : cases)
      for (const bool is_followed : {false, true}) {
        Product p = product_of(c, isa);
        p.is_followed = is_followed;
        const auto a = random_elements(c.dtype, c.batch * c.m * c.k, 1);
        const auto b = random_elements(c.dtype, c.batch * c.k * c.n, 2);
        Work alone{p, a, b};
        auto scratch = scratch_for(p);
        alone.run(nullptr, scratch.data());
        for (int again = 0; again < 3; ++again) {
          Work shared{p, a, b};
          taken += run_shared(shared, 2 + again);
          const std::string what = text(c.m, " x ", c.n, " x ", c.k, " of ", c.dtype, ", followed: ", is_followed);
          EXPECT_TRUE((is_followed && !cpu_backend::needs_c(p)) || shared.c == alone.c) << what;
          EXPECT_TRUE(shared.copied == alone.copied) << what;
          EXPECT_EQ(shared.elements, alone.elements) << what;
        }
      }
  }
  EXPECT_GT(taken, 0);
}

/// Jobs that are long enough to be taken over from, by more threads than there are cores, which lose them at any
/// moment.
TEST(Shares, OfProgramsKeepTheirBits) {
  Graph graph = parse_graph(
      "%0 = input : f32[s0,700]\n%1 = input : f32[700,1100]\n%2 = input : f32[s0,1100]\n"
      "%3 = matmul{transpose_a=false; transpose_b=false} %0 %1 : f32[s0,1100]\n%4 = tanh %3 : f32[s0,1100]\n"
      "%5 = multiply %4 %2 : f32[s0,1100]\n%6 = matmul{transpose_a=false; transpose_b=true} %5 %1 : f32[s0,700]\n"
      "%7 = matmul{transpose_a=true; transpose_b=false} %0 %5 : f32[700,1100]\n%8 = add %1 %7 : f32[700,1100]\n"
      "%9 = sum{axis=-2} %5 : f32[1,1100]\nreturn %6 %8 %9\n");
  for (const std::int64_t rows : {900, 37}) {
    const std::vector<std::int64_t> symbols{rows};
    const auto inputs = random_inputs(graph, symbols, 4);
    std::vector<Ref<Buffer>> expected;
    {
      const Threads one(1);
      expected = run(*cpu_backend::compile(graph), inputs, symbols);
    }
    for (const std::vector<std::string>& disable : {std::vector<std::string>{}, {"balance"}, {"concurrency"}}) {
      const auto program = cpu_backend::compile(graph, {.disable = disable});
      for (const int threads : {2, 3, 5}) {
        const Threads scope(threads);
        for (int again = 0; again < 3; ++again)
          expect_same(*program, run(*program, inputs, symbols), expected, symbols, text(threads, " threads"));
      }
    }
  }
}

}  // namespace
}  // namespace gradus::testing_loops::shares_test
