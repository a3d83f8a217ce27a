/// Functions, variants and paths by the ten thousand: what is dropped goes back to the system.
#include <gtest/gtest.h>
#include <fstream>
#include <optional>
#include "gradus/function/function.h"
#include "gradus/function/program_cache.h"
#include "gradus/function/variable.h"
#include "gradus/gradients/functional.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"

namespace gradus {
namespace {

double resident_mib() {
  long pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return static_cast<double>(resident) * 4096 / (1 << 20);
}

/// Resident memory stays within a tenth of what it was once everything was warm.
template <class F> void expect_flat(const F& round) {
  constexpr int rounds = 10000, warm = 1000;
  for (int i = 0; i < warm; ++i) round(i);
  const double before = resident_mib();
  for (int i = warm; i < rounds; ++i) round(i);
  EXPECT_LE(resident_mib(), 1.1 * before) << "MiB; it was " << before;
}

TEST(Memory, DestroyedFunctionsReturnTheirs) {
  expect_flat([](int i) {
    const float own = static_cast<float>(i);  // another structure, other code
    const auto f = function([own](Tensor x) {
      Tensor y = tanh(x * own) + own;
      if (reduce_sum(y) > 0) y = y * own;
      return gradient([&](Tensor v) { return reduce_sum(v * v * y); }, x);
    });
    const Tensor x = full({3 + i % 50, 4}, i % 2 ? 1 : -1);
    for (int call = 0; call < 2; ++call) f(x);  // interpreted, compiled
    if (i % 5 == 0) f(-x);
  });
}

TEST(Memory, VariantsWhoseVariablesDiedReturnTheirs) {
  std::optional<Variable> w;
  const auto f = function([&](Tensor x) {
    w->assign_add(x * static_cast<float>(w->shape()[0]));
    return reduce_sum(*w);
  });
  expect_flat([&](int i) {
    w.emplace(from_values(std::vector<float>(static_cast<std::size_t>(1 + i)), {1 + i}), "w");
    for (int call = 0; call < 2; ++call) f(constant(1.0f));
  });
}

TEST(Memory, LazyProgramsThatLeaveTheCacheReturnTheirs) {
  const std::size_t limit = program_cache_use().limit_bytes;
  set_program_cache_limit(4 << 20);
  expect_flat([](int i) {
    Tensor x = ones({2, 3 + i});
    for (int k = 0; k < 3; ++k) x = concat({x, x * 2}, k % 2);
    EXPECT_GT(reduce_sum(x).item(), 0);
  });
  set_program_cache_limit(limit);
}

}  // namespace
}  // namespace gradus
