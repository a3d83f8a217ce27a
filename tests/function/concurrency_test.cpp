/// Independent work runs side by side: what explain() says of it, and that no bit depends on it.
#include <gtest/gtest.h>
#include <map>
#include "gradus/backend/cpu/thread_rates.h"
#include "gradus/gradus.h"
#include "tests/threads.h"

namespace concurrency_test {
using namespace gradus;

/// Several towers on one input.
struct Towers {
  std::array<Dense, 4> wide{Dense(64, relu), Dense(64, tanh), Dense(64, relu), Dense(64, gelu)};
  std::array<Dense, 4> narrow{Dense(16), Dense(16), Dense(16), Dense(16)};
  Dense scores{4};
  Tensor operator()(const Tensor& x) const {
    std::vector<Tensor> parts;
    for (std::size_t i = 0; i < wide.size(); ++i) parts.push_back(narrow[i](wide[i](x)));
    return scores(concat(parts, -1));
  }
};

struct Problem {
  const ThreadRatesScope rates{ThreadRates()};  // which kernels run side by side follows from them
  Tensor x = random::normal({256, 64}, {.seed = 1}), y = random::integers({256}, {.high = 4, .seed = 2});
  Model<Towers> model;
  Problem() { model.build({f32, {any_size, 64}}); }
  auto body() const {
    return [this](Tensor a, Tensor b) {
      GradientTape tape;
      const Loss loss = Loss::mean(sparse_categorical_crossentropy(b, model(a, training), from_logits));
      return std::pair{loss, tape.gradient(loss, model.trainable_variables())};
    };
  }
};

/// The most products in one stage.
int products_together(const Explanation& e) {
  std::map<int, int> products;
  int most = 0;
  for (const Kernel& kernel : e.kernels)
    if (kernel.name.starts_with("matmul")) most = std::max(most, ++products[kernel.stage]);
  return most;
}

TEST(Concurrency, TowersRunSideBySide) {
  const Problem problem;
  const auto step = function(problem.body(), {.name = "towers"});
  const auto one_by_one = function(problem.body(), {.disable = {"concurrency"}});
  const auto [loss, gradients] = step(problem.x, problem.y);
  for (const int n : {1, 2, 3, 8}) {
    const Threads threads(n);
    for (const auto& f : {step, one_by_one}) {
      const auto [again, again_gradients] = f(problem.x, problem.y);
      EXPECT_TRUE(bitwise_equal(loss.value(), again.value())) << n;
      for (std::size_t i = 0; i < gradients.size(); ++i)
        EXPECT_TRUE(bitwise_equal(gradients[i], again_gradients[i])) << n << ": " << i;
    }
    const Explanation together = step.explain(), apart = one_by_one.explain();
    EXPECT_EQ(products_together(together) >= 4, n > 1) << n;
    EXPECT_EQ(together.side_by_side_seconds > 0, n > 1);
    EXPECT_EQ(products_together(apart), 1);
    EXPECT_EQ(apart.side_by_side_seconds, 0);
    EXPECT_LE(together.kernels.size(), apart.kernels.size());  // those that run one by one have no epilogues
  }
}

TEST(Concurrency, ThePrintedExplanationShowsIt) {
  const Problem problem;
  const Threads threads(2);
  const auto step = function(problem.body(), {.name = "towers"});
  step(problem.x, problem.y);
  step(problem.x.rows(0, 100), problem.y.rows(0, 100));
  std::ostringstream out;
  out << step.explain();
  for (const char* part : {"function towers: 2 variants", "temporaries and results", "variant 1: argument 0",
                           "|  matmul", "kernels run side by side in", "alive", "####"})
    EXPECT_NE(out.str().find(part), std::string::npos) << part << " in\n" << out.str();
}

TEST(Concurrency, WhatIsAliveIsToldForEachKernel) {
  const Problem problem;
  const auto step = function(problem.body());
  step(problem.x, problem.y);
  const Explanation e = step.explain();
  std::size_t most = 0;
  for (const Kernel& kernel : e.kernels) most = std::max(most, kernel.bytes_alive);
  EXPECT_GT(most, problem.x.bytes());
  EXPECT_LE(most, e.peak_bytes);
}

}  // namespace concurrency_test
