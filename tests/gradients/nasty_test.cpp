/// Cases on which gradients are known to go wrong, one test each.
#include <gtest/gtest.h>
#include <pthread.h>
#include <cmath>
#include "gradus/autodiff/vjp.h"
#include "gradus/function/function.h"
#include "gradus/function/variable.h"
#include "gradus/gradients/tape.h"
#include "gradus/gradients/functional.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/cumulative.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"

namespace gradus::nasty_test {
namespace {

using Map = std::function<Tensor(const Tensor&)>;

/// x -> the gradient of sum(f(x)).
Map derivative(Map f) {
  return [f = std::move(f)](const Tensor& x) { return gradient([&](const Tensor& t) { return reduce_sum(f(t)); }, x); };
}
Map derivative(Map f, int order) {
  for (int k = 0; k < order; ++k) f = derivative(std::move(f));
  return f;
}

/// The same lazily, seen again, and compiled.
std::vector<double> in_every_way(const Map& f, const Tensor& x, const std::string& what) {
  const Tensor lazy = f(x);
  const auto compiled = function([&](Tensor t) { return f(t); });
  EXPECT_TRUE(bitwise_equal(f(x), lazy)) << what << ", seen again";
  EXPECT_TRUE(bitwise_equal(compiled(x), lazy)) << what << ", traced";
  EXPECT_TRUE(bitwise_equal(compiled(x), lazy)) << what << ", compiled";
  return lazy.to_vector<double>();
}

TEST(Nasty, AWhereHidesAnInfiniteGradientInEveryOrder) {
  const Tensor x = constant({0.0, -1.0, 4.0}, f64);
  struct Pole {
    std::string name;
    Map f;
    std::array<double, 4> at_four;  // first to fourth derivative
  };
  for (const Pole& pole :
       {Pole{"sqrt", [](const Tensor& t) { return sqrt(t); }, {0.25, -1.0 / 32, 3.0 / 256, -15.0 / 2048}},
        Pole{"log", [](const Tensor& t) { return log(t); }, {0.25, -1.0 / 16, 1.0 / 32, -3.0 / 128}},
        Pole{"rsqrt", [](const Tensor& t) { return rsqrt(t); }, {-1.0 / 16, 3.0 / 128, -15.0 / 1024, 105.0 / 8192}},
        Pole{"1/t", [](const Tensor& t) { return 1 / t; }, {-1.0 / 16, 1.0 / 32, -3.0 / 128, 3.0 / 128}},
        Pole{"t^0.5", [](const Tensor& t) { return pow(t, 0.5); }, {0.25, -1.0 / 32, 3.0 / 256, -15.0 / 2048}},
        Pole{"t^-1", [](const Tensor& t) { return pow(t, -1); }, {-1.0 / 16, 1.0 / 32, -3.0 / 128, 3.0 / 128}}})
    for (int order = 1; order <= 4; ++order) {
      const Map hidden = [&](const Tensor& t) { return where(t > 0, pole.f(t), zeros_like(t)); };
      const std::string what = text(pole.name, ", order ", order);
      const std::vector<double> d = in_every_way(derivative(hidden, order), x, what);
      EXPECT_EQ(d[0], 0) << what;
      EXPECT_EQ(d[1], 0) << what;
      EXPECT_NEAR(d[2], pole.at_four[static_cast<std::size_t>(order - 1)], 1e-14) << what;
    }
}

/// Row by row, as vjps of the gradient.
std::vector<double> hessian_of(const Map& f, const Tensor& x) {
  std::vector<double> all;
  const std::int64_t n = x.shape().size();
  for (std::int64_t i = 0; i < n; ++i) {
    GradientTape tape;
    tape.watch(x);
    const Tensor slope = derivative(f)(x)[i];  // which may be constant
    const auto row = tape.gradient(slope, x, {.unconnected = Unconnected::zero}).to_vector<double>();
    all.insert(all.end(), row.begin(), row.end());
  }
  return all;
}

double product_without(const std::vector<double>& x, std::size_t begin, std::size_t end, std::size_t i, std::size_t j) {
  double product = 1;
  for (std::size_t k = begin; k < end; ++k)
    if (k != i && k != j) product *= x[k];
  return product;
}

const std::vector<std::vector<double>>& with_zeros() {
  static const std::vector<std::vector<double>> all{
      {2, 3, 5, 7, 11}, {2, 0, 5, 7, 11}, {0, 3, 5, 0, 11}, {0, 3, 0, 0, 11}, {0, 0}, {0}, {-0.0, 2, 0, 3}};
  return all;
}

TEST(Nasty, ProductsWithZerosInSecondOrder) {
  for (const std::vector<double>& values : with_zeros()) {
    const std::size_t n = values.size();
    const Tensor x = from_values(values, {static_cast<std::int64_t>(n)});
    const Map product = [](const Tensor& t) { return reduce_prod(t); };
    const std::vector<double> slope = derivative(product)(x).to_vector<double>(), h = hessian_of(product, x);
    for (std::size_t i = 0; i < n; ++i) {
      EXPECT_EQ(slope[i], product_without(values, 0, n, i, i)) << x;
      for (std::size_t j = 0; j < n; ++j)
        EXPECT_EQ(h[i * n + j], i == j ? 0 : product_without(values, 0, n, i, j)) << x << i << ' ' << j;
    }
  }
}

/// Each element is the product of those up to it, as an einsum of running products would be written by hand.
Tensor running_products(const Tensor& x) {
  Tensors parts = unstack(x);
  for (std::size_t k = 1; k < parts.size(); ++k) parts[k] = parts[k - 1] * parts[k];
  return stack(parts);
}

void check_running_products(const std::string& what, const Map& products) {
  for (const std::vector<double>& values : with_zeros()) {
    const std::size_t n = values.size();
    const Tensor x = from_values(values, {static_cast<std::int64_t>(n)});
    const std::vector<double> slope = in_every_way(derivative(products), x, what);
    const std::vector<double> h = hessian_of(products, x);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) {
        double first = 0, second = 0;  // sums over the products that hold element i, and i and j
        for (std::size_t end = i + 1; end <= n; ++end) first += product_without(values, 0, end, i, i);
        for (std::size_t end = std::max(i, j) + 1; end <= n; ++end) second += product_without(values, 0, end, i, j);
        EXPECT_EQ(slope[i], first) << what << x << i;
        EXPECT_EQ(h[i * n + j], i == j ? 0 : second) << what << x << i << ' ' << j;
      }
  }
}

TEST(Nasty, CumulativeProductsWithZerosInSecondOrder) {
  check_running_products("written out", running_products);
  check_running_products("cumprod", [](const Tensor& x) { return cumprod(x); });
  check_running_products("cumprod in reverse",
                         [](const Tensor& x) { return reverse(cumprod(reverse(x, {0}), {.reverse = true}), {0}); });
  check_running_products("cumprod, exclusive", [](const Tensor& x) {
    return slice_within(cumprod(concat({x, ones({1}, f64)}), {.exclusive = true}), 0, 1, x.shape()[0]);
  });
}

/// The sizes are known at each call alone.
TEST(Nasty, ProductsOfUnknownSizeWithZeros) {
  const auto slopes = [](const Map& product) {
    return function([=](Tensor x) { return derivative(product)(x); }, {.input_signature = {{f64, {any_size}}}});
  };
  const auto total = slopes([](const Tensor& x) { return reduce_prod(x); });
  const auto running = slopes([](const Tensor& x) { return cumprod(x); });
  for (const std::vector<double>& values : with_zeros()) {
    const std::size_t n = values.size();
    const Tensor x = from_values(values, {static_cast<std::int64_t>(n)});
    const std::vector<double> slope = total(x).to_vector<double>(), sums = running(x).to_vector<double>();
    for (std::size_t i = 0; i < n; ++i) {
      double first = 0;
      for (std::size_t end = i + 1; end <= n; ++end) first += product_without(values, 0, end, i, i);
      EXPECT_EQ(slope[i], product_without(values, 0, n, i, i)) << x << i;
      EXPECT_EQ(sums[i], first) << x << i;
    }
  }
}

/// Each slot is an argument of its own, whatever is put into it.
TEST(Nasty, OneTensorInTwoArgumentSlots) {
  const Tensor x = constant({2.0, 3.0}, f64);
  const auto f = [](const Tensor& a, const Tensor& b) { return reduce_sum(a * b * b); };
  const auto both = [&](const Tensor& t) { return gradient(f, {t, t}); };
  const std::array<Tensor, 2> lazy = both(x);
  EXPECT_EQ(lazy[0].to_vector<double>(), (std::vector<double>{4, 9}));   // b^2
  EXPECT_EQ(lazy[1].to_vector<double>(), (std::vector<double>{8, 18}));  // 2 a b
  const auto compiled = function([&](Tensor t) { return both(t); });
  for (std::size_t i = 0; i < 2; ++i) EXPECT_TRUE(bitwise_equal(compiled(x)[i], lazy[i]));
}

/// A compiled function's arguments are its own: the same when its call is traced along, or run op by op.
TEST(Nasty, OneTensorInTwoArgumentSlotsOfAFunction) {
  const Tensor x = constant({2.0, 3.0}, f64);
  const auto by_first = [](Tensor a, Tensor b) {
    GradientTape tape;
    tape.watch(a);
    return tape.gradient(reduce_sum(a * b * b), a);
  };
  const auto compiled = function(by_first);
  const auto eager = function(by_first, {.run_eagerly = true});
  const auto outer = function([&](Tensor t) { return compiled(t, t); });
  const std::vector<double> want{4, 9};
  EXPECT_EQ(compiled(x, x).to_vector<double>(), want);
  EXPECT_EQ(eager(x, x).to_vector<double>(), want);
  EXPECT_EQ(outer(x).to_vector<double>(), want);
  GradientTape tape;
  tape.watch(x);
  const Tensor under_a_tape = compiled(x, x);
  EXPECT_EQ(under_a_tape.to_vector<double>(), want);
  EXPECT_EQ(tape.gradient(reduce_sum(under_a_tape), x).to_vector<double>(), (std::vector<double>{4, 6}));  // of x^2
}

/// Runs `body` on a stack of 8 MB.
void on_a_small_stack(const std::function<void()>& body) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, std::size_t{8} << 20), 0);
  pthread_t thread;
  const auto run = [](void* f) -> void* {
    (*static_cast<const std::function<void()>*>(f))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, const_cast<std::function<void()>*>(&body)), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

std::uint64_t nodes_made() { return Tensor::parameter({}, 0).node()->sequence; }

/// The nodes that a chain of n ops and its gradient make; the gradient of x * 1.00001^n is 1.00001^n.
std::uint64_t differentiate_a_chain(int n) {
  const std::uint64_t before = nodes_made();
  const Tensor x = constant({1.0, 2.0}, f64), factor = full({}, 1.00001, f64);
  GradientTape tape;
  tape.watch(x);
  Tensor y = x;
  for (int i = 0; i < n; ++i) y = y * factor;
  const Tensor slope = tape.gradient(reduce_sum(y), x);
  EXPECT_NEAR(slope.to_vector<double>()[1], std::pow(1.00001, n), 1e-8);
  return nodes_made() - before;
}

TEST(Nasty, AHundredThousandChainedOpsOnASmallStack) {
  on_a_small_stack([] {
    const std::uint64_t half = differentiate_a_chain(50'000), whole = differentiate_a_chain(100'000);
    EXPECT_LE(whole, 2 * half);
    EXPECT_LE(whole, 8 * 100'000u);
  });
}

TEST(Nasty, FortyDoublings) {
  const Map doublings = [](const Tensor& x) {
    Tensor y = x;
    for (int i = 0; i < 40; ++i) y = y + y;
    return y;
  };
  const Tensor x = constant({1.0, -3.0}, f64);
  const std::uint64_t before = nodes_made();
  const Tensor slope = derivative(doublings)(x);
  EXPECT_LE(nodes_made() - before, 200u);
  EXPECT_EQ(slope.to_vector<double>(), (std::vector<double>{0x1p40, 0x1p40}));
  EXPECT_EQ(in_every_way(derivative([&](const Tensor& t) { return square(doublings(t)); }), x, "doublings"),
            (std::vector<double>{0x1p81, -3 * 0x1p81}));
}

TEST(Nasty, AThousandSources) {
  std::vector<Variable> weights;
  Variables sources;
  for (int i = 0; i < 1000; ++i) weights.emplace_back(constant({1.0 * i, 1.0}, f64), text("w", i));
  for (Variable& w : weights) sources.add(w);
  const auto gradients = [&] {
    GradientTape tape;
    Tensor sum = fill({}, 0, f64);
    for (const Variable& w : weights) sum = sum + reduce_sum(square(w));
    return tape.gradient(sum, sources);
  };
  const std::uint64_t before = nodes_made();
  const Gradients lazy = gradients();
  EXPECT_LE(nodes_made() - before, 20'000u);
  for (std::size_t i = 0; i < 1000; ++i)
    ASSERT_EQ(lazy[i].to_vector<double>(), (std::vector<double>{2.0 * static_cast<double>(i), 2}));
  std::vector<Tensor> leaves;
  for (int i = 0; i < 1000; ++i) leaves.push_back(constant(1.0 + i, f64));
  Tensor product = fill({}, 0, f64);
  for (const Tensor& leaf : leaves) product = product + log(leaf);
  const Tensors each = vjp(product, leaves);
  for (std::size_t i = 0; i < 1000; ++i) ASSERT_EQ(each[i].item(), 1.0 / (1.0 + static_cast<double>(i)));
}

TEST(Nasty, AStaleCaptureIsWhatItWasAndItsGradientToo) {
  Tensor captured = constant(2.0, f64);
  const auto f = [&](const Tensor& x) { return reduce_sum(x * x * captured); };
  const auto traced = function([&](Tensor x) { return std::array{f(x), gradient(f, x)}; });
  const Tensor x = constant({3.0}, f64);
  for (int call = 0; call < 3; ++call) {
    const auto [y, dx] = traced(x);
    EXPECT_EQ(y.item(), 18);
    EXPECT_EQ(dx.item(), 12);
    captured = constant(5.0, f64);  // frozen in the trace, as C++ state is
  }
  EXPECT_EQ(gradient(f, x).item(), 30);
}

TEST(Nasty, AStepCalledWithTheValueOfItsOwnVariable) {
  Variable w(constant({1.0, -2.0, 3.0}, f64), "w");
  const auto step = function([&](Tensor x) {
    GradientTape tape;
    const Tensor loss = reduce_sum(square(w.value()) * x);
    w.assign_sub(tape.gradient(loss, w) * 0.25);
    return loss;
  });
  std::vector<double> expected{1, -2, 3};
  for (int call = 0; call < 4; ++call) {
    const Tensor before = w.value();
    double loss = 0;
    for (double& v : expected) {
      loss += v * v * v;
      v -= 0.25 * 2 * v * v;  // x is what w was
    }
    EXPECT_DOUBLE_EQ(step(before).item(), loss);
    EXPECT_EQ(w.value().to_vector<double>(), expected);
    EXPECT_FALSE(bitwise_equal(before, w.value())) << "what was handed out stays";
  }
}

/// vjp(c * G) = c * vjp(G), in every bit where c is a power of two.
TEST(Nasty, GradientsAreLinearInTheCotangentAtEveryScale) {
  const Tensor x = random::normal({6, 5}, {.dtype = f64, .seed = 4}),
               w = random::normal({5, 4}, {.dtype = f64, .seed = 5});
  const Tensor seed = random::normal({6, 4}, {.dtype = f64, .seed = 6});
  const auto by = [&](const Tensor& cotangent) {
    GradientTape tape;
    tape.watch(x);
    tape.watch(w);
    const Tensor y = softplus(matmul(tanh(x), w)) / norm(x) + sqrt(1 + square(matmul(x, w)));
    return tape.gradient(y, {x, w}, {.output_gradients = cotangent});
  };
  const auto once = by(seed);
  for (double power : {0x1p-40, 0x1p40}) {
    const auto scaled = by(seed * full({}, power, f64));
    for (std::size_t i = 0; i < 2; ++i) EXPECT_TRUE(bitwise_equal(scaled[i], once[i] * full({}, power, f64))) << power;
  }
  for (double factor : {1e-12, 1e12}) {
    const auto scaled = by(seed * full({}, factor, f64));
    for (std::size_t i = 0; i < 2; ++i)
      EXPECT_LE(max_abs_difference(scaled[i] / full({}, factor, f64), once[i]), 1e-14) << factor;
  }
}

TEST(Nasty, ThirdOrderTracedIsThatOfTheLazyCall) {
  struct Case {
    std::string name;
    Map f;
    double (*third)(double);
  };
  const Tensor x = constant({0.3, -0.7, 1.1}, f64);
  for (const Case& c : {Case{"x^5", [](const Tensor& t) { return pow(t, 5); }, [](double v) { return 60 * v * v; }},
                        Case{"sin", [](const Tensor& t) { return sin(t); }, [](double v) { return -std::cos(v); }},
                        Case{"tanh", [](const Tensor& t) { return tanh(t); },
                             [](double v) {
                               const double y = std::tanh(v), s = 1 - y * y;
                               return -2 * s * s + 4 * y * y * s;
                             }},
                        Case{"exp(x) x^2", [](const Tensor& t) { return exp(t) * square(t); },
                             [](double v) { return std::exp(v) * (v * v + 6 * v + 6); }}}) {
    const std::vector<double> got = in_every_way(derivative(c.f, 3), x, c.name), at = x.to_vector<double>();
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], c.third(at[i]), 1e-12) << c.name;
  }
}

/// Through products, reductions, and a softmax: lazily and compiled alike.
TEST(Nasty, ThirdOrderOfAModel) {
  const Tensor x = random::normal({4, 3}, {.dtype = f64, .seed = 8}),
               w = random::normal({3, 5}, {.dtype = f64, .seed = 9});
  const Map model = [&](const Tensor& t) {
    const Tensor scores = matmul(gelu(t), w);
    return reduce_logsumexp(scores, {.axis = {-1}}) * reduce_prod(tanh(scores), {.axis = {-1}});
  };
  for (int order = 1; order <= 3; ++order) in_every_way(derivative(model, order), x, text("order ", order));
}

}  // namespace
}  // namespace gradus::nasty_test
