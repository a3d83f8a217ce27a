/// What calls itself while it is traced: with an end it is traced along, without one it is an InvalidArgument that says
/// so, on any thread's stack.
#include <gtest/gtest.h>
#include <pthread.h>
#include <thread>
#include "gradus/function/function.h"
#include "gradus/gradients/functional.h"
#include "gradus/gradients/tape.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/control.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"
#include "tests/errors.h"

namespace gradus::recursion_test {
namespace {

using Call = std::function<Tensor(Tensor)>;
const FunctionOptions f_called{.name = "f"}, g_called{.name = "g"};

struct Endless {
  std::string name;
  std::function<void()> call;
  std::vector<std::string> says;
};
void PrintTo(const Endless& endless, std::ostream* out) { *out << endless.name; }

Tensor x() { return constant({1.0F, 2.0F}); }

void itself() {
  Call f;
  f = function([&](Tensor a) { return f(a) + 1; }, f_called);
  f(x());
}
void through_another() {
  Call f, g;
  f = function([&](Tensor a) { return g(a) + 1; }, f_called);
  g = function([&](Tensor a) { return f(a * 2); }, g_called);
  f(x());
}
void under_a_tape() {
  Call f;
  f = function([&](Tensor a) { return f(a) + 1; }, f_called);
  GradientTape tape;
  f(x());
}
void eagerly() {
  Call f;
  f = function([&](Tensor a) { return f(a) + 1; }, {.name = "f", .run_eagerly = true});
  f(x());
}
void of_open_sizes() {
  Call f;
  f = function([&](Tensor a) { return f(a) + 1; }, {.name = "f", .input_signature = {{f32, {any_size}}}});
  f(x());
}
void behind_a_branch() {
  Call f;
  f = function([&](Tensor a) { return reduce_sum(a) > 0 ? f(a * 2) : a; }, f_called);
  f(x());
}
Tensor factorial(const Tensor& n) {
  return cond(n <= 1, [&] { return n; }, [&] { return n * factorial(n - 1); });
}
void cond_itself() { factorial(constant(4)); }
void cond_in_function() {
  function([](Tensor n) { return factorial(n); })(constant(4));
}
Tensor looped(const Tensor& n) {
  return while_loop([](Tensor a) { return reduce_sum(a) < 3; }, [](Tensor a) { return looped(a) + 1; }, n);
}
void while_itself() { looped(x()); }
Tensor scanned(const Tensor& n) {
  return scan([](Tensor carry, Tensor) { return std::pair(scanned(carry), carry); }, n, n).first;
}
void scan_itself() {
  function([](Tensor n) { return scanned(n); })(x());
}
void function_in_scan() {
  Call f;
  f = function(
      [&](Tensor a) { return scan([&](Tensor carry, Tensor) { return std::pair(f(carry), carry); }, a, a).first; },
      f_called);
  f(x());
}
Tensor mapped(const Tensor& n) {
  return vectorized_map([](Tensor row) { return reduce_sum(mapped(stack({row, row}))); }, n);
}
void vectorized_map_itself() { mapped(x()); }
void hessian_itself() {
  Call f;
  f = function([&](Tensor a) { return hessian([&](Tensor at) { return reduce_sum(f(at)); }, a); }, f_called);
  f(x());
}

class Recursion : public testing::TestWithParam<Endless> {};

TEST_P(Recursion, WithoutAnEndIsAnError) {
  const std::string message = error_of(GetParam().call);
  for (const std::string& part : GetParam().says) expect_says(message, part);
  EXPECT_LT(message.size(), 2000u);
  EXPECT_EQ((function([](Tensor a) { return a + 1; })(x()).to_vector<float>()), (std::vector{2.0F, 3.0F}));
}

/// A thread with little stack.
TEST_P(Recursion, IsAnErrorOnASmallStack) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, std::size_t{1} << 20);
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, &attributes,
                [](void* endless) -> void* {
                  EXPECT_THROW(static_cast<const Endless*>(endless)->call(), Error);
                  return nullptr;
                },
                const_cast<Endless*>(&GetParam())),
            0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

const std::vector<std::string> of_f{"function f calls itself without an end: function f -> function f;", "while_loop"};
INSTANTIATE_TEST_SUITE_P(
    Functions, Recursion,
    testing::Values(
        Endless{"itself", itself, of_f},
        Endless{"through_another", through_another, {"calls itself without an end", "function g -> function f"}},
        Endless{"under_a_tape", under_a_tape, of_f}, Endless{"eagerly", eagerly, of_f},
        Endless{"of_open_sizes", of_open_sizes, of_f},
        Endless{"behind_a_branch", behind_a_branch, {"more than 128 C++ branches", "while_loop"}},
        Endless{"cond_itself", cond_itself, {"cond: its function lies", "while_loop"}},
        Endless{"cond_in_function", cond_in_function, {"cond: its function lies"}},
        Endless{"while_itself", while_itself, {"while_loop: its function lies"}},
        Endless{"scan_itself", scan_itself, {"scan: its function lies"}},
        Endless{"function_in_scan", function_in_scan, {"without an end"}},
        Endless{"vectorized_map_itself", vectorized_map_itself, {"deep"}},
        Endless{"hessian_itself", hessian_itself, {"without an end"}}),
    [](const auto& info) { return info.param.name; });

/// 2^n x
TEST(Recursion, OverAnIntegerEnds) {
  std::function<Tensor(Tensor, int)> f;
  f = function([&](Tensor a, int n) { return n == 0 ? a : f(a * 2, n - 1); }, f_called);
  for (const int n : {0, 1, 30, 100}) EXPECT_EQ(f(constant(1.0), n).item(), std::ldexp(1.0, n)) << n;
  std::function<Tensor(Tensor, int)> even, odd;
  even = function([&](Tensor a, int n) { return n == 0 ? a : odd(a + 1, n - 1); });
  odd = function([&](Tensor a, int n) { return n == 0 ? -a : even(a + 1, n - 1); });
  EXPECT_EQ(even(constant(0.0), 9).item(), -9);
}

}  // namespace
}  // namespace gradus::recursion_test
