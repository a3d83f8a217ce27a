/// Byte budgets of functions: they are kept in every call, an error names the smallest, and no bit changes.
#include <gtest/gtest.h>
#include <charconv>
#include "gradus/gradus.h"
#include "gradus/graph/graph.h"
#include "tests/threads.h"

namespace gradus::budget_test {
namespace {

Sequential deep(int layers, std::int64_t units) {
  std::vector<Module> all;
  for (int i = 0; i < layers; ++i) all.push_back(Dense(units, i % 2 ? Activation(gelu) : Activation(tanh)));
  all.push_back(Dense(4));
  return Sequential(std::move(all));
}

/// Loss and first gradient of a deep model.
struct Problem {
  Tensor x = random::normal({256, 32}, {.seed = 1}), y = random::integers({256}, {.high = 4, .seed = 2});
  Sequential model = deep(8, 32);
  auto body() const {
    return [this](Tensor a, Tensor b) {
      GradientTape tape;
      const Loss loss = Loss::mean(sparse_categorical_crossentropy(b, model(a, training), from_logits));
      return std::pair{loss, tape.gradient(loss, model.trainable_variables())};
    };
  }
};

std::size_t bytes_of_results(const Gradients& gradients) {
  std::size_t bytes = 4 + 4 + 8;  // a loss, its weight and that of the gradients are not told apart
  for (std::size_t i = 0; i < gradients.size(); ++i) bytes += gradients[i].bytes();
  return bytes;
}

/// What the error for a budget of one byte says to be enough.
std::size_t smallest_budget(const auto& body, const Tensor& x, const Tensor& y) {
  try {
    function(body, {.name = "lean", .max_bytes = 1})(x, y);
  } catch (const ResourceExhausted& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("function lean: max_bytes: "), std::string::npos) << message;
    std::size_t bytes = 0;
    const auto at = message.find("works is ");
    std::from_chars(message.data() + at + 9, message.data() + message.size(), bytes);
    return bytes;
  }
  ADD_FAILURE() << "a byte was enough";
  return 0;
}

TEST(Budget, EveryBudgetGivesTheSameBits) {
  const Problem problem;
  const auto plain = function(problem.body());
  const auto [loss, gradients] = plain(problem.x, problem.y);
  const std::size_t smallest = smallest_budget(problem.body(), problem.x, problem.y);
  const std::size_t whole = plain.explain().peak_bytes;
  EXPECT_EQ(plain.explain().recomputed_bytes, 0u);
  EXPECT_LT(smallest, whole / 4);
  std::size_t before = 0;
  for (const std::size_t budget : {smallest, smallest * 3 / 2, smallest * 2, smallest * 3, whole}) {
    const auto lean = function(problem.body(), {.max_bytes = budget});
    const auto [lean_loss, lean_gradients] = lean(problem.x, problem.y);
    EXPECT_TRUE(bitwise_equal(loss.value(), lean_loss.value()));
    for (std::size_t i = 0; i < gradients.size(); ++i)
      EXPECT_TRUE(bitwise_equal(gradients[i], lean_gradients[i])) << budget << ": " << i;
    const Explanation e = lean.explain();
    EXPECT_GE(e.peak_bytes, before);
    EXPECT_EQ(e.recomputed_bytes > 0, budget < whole);
    before = e.peak_bytes / 2;
  }
  EXPECT_THROW(function(problem.body(), {.max_bytes = smallest - 1})(problem.x, problem.y), ResourceExhausted);
}

TEST(Budget, IsKeptByWhatIsReallyAllocated) {
  const Threads scope(1);  // packed parts of products are a thread's, and not counted
  const Problem problem;
  const std::size_t smallest = smallest_budget(problem.body(), problem.x, problem.y);
  const auto plain = function(problem.body()), lean = function(problem.body(), {.max_bytes = smallest});
  const auto growth = [&](const auto& f) {
    f(problem.x, problem.y);
    synchronize();
    reset_peak_memory();
    const std::size_t before = memory_use().live_bytes;
    const auto [loss, gradients] = f(problem.x, problem.y);
    return memory_use().peak_bytes - before - bytes_of_results(gradients);
  };
  EXPECT_LT(growth(lean), smallest + 128 * KiB);
  EXPECT_GT(growth(plain), 3 * growth(lean));
}

TEST(Budget, TrainsInPlaceToTheSameWeights) {
  const Problem problem;
  Sequential a = problem.model, b = problem.model;
  a.build({f32, {any_size, 32}});
  b = a;
  Sequential c = a;
  const auto trained = [&](Sequential& model, std::size_t max_bytes) {
    Adam optimizer({.learning_rate = 1e-2});
    const auto step = function(
        [&](Tensor x, Tensor y) {
          GradientTape tape;
          const Loss loss = Loss::mean(sparse_categorical_crossentropy(y, model(x, training), from_logits));
          optimizer.apply_gradients(clip_by_global_norm(tape.gradient(loss, model.trainable_variables()), 1.0));
          return loss;
        },
        {.max_bytes = max_bytes});
    for (int i = 0; i < 5; ++i) step(problem.x, problem.y);
    return step.explain();
  };
  const Explanation whole = trained(a, 0), lean = trained(c, 200 * KiB);
  EXPECT_LT(lean.peak_bytes, whole.peak_bytes / 2);
  EXPECT_GT(lean.recomputed_bytes, 0u);
  for (std::size_t i = 0; i < a.variables().size(); ++i)
    EXPECT_TRUE(bitwise_equal(a.variables()[i].value(), c.variables()[i].value())) << a.variables()[i].name();
}

TEST(Budget, HoldsForSizesThatComeLater) {
  const Problem problem;
  const std::vector<Spec> any{{f32, {any_size, 32}}, {i32, {any_size}}};
  const std::size_t smallest = smallest_budget(problem.body(), problem.x, problem.y);
  const auto lean = function(problem.body(), {.input_signature = any, .max_bytes = 2 * smallest});
  const auto plain = function(problem.body());
  const auto expect_equal = [&](std::int64_t rows) {
    const Tensor x = problem.x.rows(0, rows), y = problem.y.rows(0, rows);
    EXPECT_TRUE(bitwise_equal(lean(x, y).second[0], plain(x, y).second[0])) << rows;
  };
  expect_equal(32);
  EXPECT_EQ(lean.explain().recomputed_bytes, 0u);
  expect_equal(40);
  EXPECT_EQ(lean.explain().variants, 1) << "it fits as it is";
  expect_equal(256);
  EXPECT_EQ(lean.explain().variants, 2) << "computed again, for this size";
  EXPECT_GT(lean.explain().recomputed_bytes, 0u);
  EXPECT_NE(lean.explain().retraces.at(0).reason.find("max_bytes"), std::string::npos)
      << lean.explain().retraces[0].reason;
  expect_equal(100);
  EXPECT_EQ(lean.explain().variants, 2);
}

TEST(Budget, WithPartsThatAreRecomputedAnyway) {
  const Problem problem;
  const std::vector<Dense> layers(6, Dense(32, gelu));
  const auto body = [&](Tensor x) {
    GradientTape tape;
    tape.watch(x);
    Tensor h = x;
    for (std::size_t i = 0; i < layers.size(); ++i)
      h = i % 2 ? recompute_grad([&, i](Tensor t) { return layers[i](t) * 2; })(h) : layers[i](h);
    return tape.gradient(reduce_sum(square(h)), x);
  };
  const auto plain = function(body);
  const Tensor gradient = plain(problem.x);
  for (const std::size_t budget : {100 * KiB, 140 * KiB, 200 * KiB, 400 * KiB})
    EXPECT_TRUE(bitwise_equal(gradient, function(body, {.max_bytes = budget})(problem.x))) << budget;
}

/// Nothing has to be kept for them but keys. (Without a budget they are stored: decision 163.)
TEST(Budget, MasksOfDropoutAreDrawnAgain) {
  constexpr int layers = 6;
  const Tensor x = random::normal({512, 32}, {.seed = 1}), y = random::integers({512}, {.high = 4, .seed = 2});
  std::vector<Module> all;
  for (int i = 0; i < layers; ++i) all.insert(all.end(), {Dense(128, relu), Dropout(0.1)});
  all.push_back(Dense(4));
  Sequential model(std::move(all));
  model.build(x.spec());
  const auto body = [&](Tensor a, Tensor b) {
    GradientTape tape;
    const Loss loss = Loss::mean(sparse_categorical_crossentropy(b, model(a, training), from_logits));
    return std::pair{loss, tape.gradient(loss, model.trainable_variables())};
  };
  const auto called = [&](const auto& f) {
    set_seed(3);
    return f(x, y).second;
  };
  const auto plain = function(body);
  const Gradients want = called(plain);
  std::size_t kept = 0;
  for (const Kernel& kernel : plain.explain().kernels) kept = std::max(kept, kernel.bytes_alive);
  const auto lean = function(body, {.max_bytes = kept / 2});
  const Gradients got = called(lean);
  const auto draws = [](const Explanation& e) {
    const Graph graph = parse_graph(e.graph());
    return std::ranges::count_if(graph.values, [](const Value& v) {
      return v.op && v.op->name == std::string_view("philox") && v.spec.shape == Shape{512, 128};
    });
  };
  EXPECT_EQ(draws(plain.explain()), layers);
  EXPECT_GE(draws(lean.explain()), 2 * layers);
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(bitwise_equal(want[i], got[i])) << i;
}

TEST(Budget, WithLoopsAndBranches) {
  const Problem problem;
  const Tensor w = random::normal({32, 32}, {.mean = 0, .stddev = 0.2, .seed = 9});
  const auto body = [&](Tensor x, Tensor steps) {
    GradientTape tape;
    tape.watch(x);
    Tensor h = tanh(matmul(x, w));
    const auto [last, all] = scan(
        [&](Tensor state, Tensor row) {
          const Tensor next = tanh(matmul(state, w) + row);
          return std::pair{next, reduce_sum(next, {.axis = {0}})};
        },
        h, steps);
    h = cond(reduce_sum(all) > 0, [&] { return gelu(matmul(last, w)); }, [&] { return matmul(h, w); });
    for (int i = 0; i < 4; ++i) h = gelu(matmul(h, w));
    return tape.gradient(reduce_sum(square(h)), x);
  };
  const Tensor steps = random::normal({5, 32}, {.seed = 10});
  const auto plain = function(body);
  const Tensor gradient = plain(problem.x, steps);
  const std::size_t smallest = smallest_budget(body, problem.x, steps);
  EXPECT_LT(smallest, plain.explain().peak_bytes);
  for (const std::size_t budget : {smallest, smallest * 5 / 4, smallest * 2})
    EXPECT_TRUE(bitwise_equal(gradient, function(body, {.max_bytes = budget})(problem.x, steps))) << budget;
}

/// What lies before a C++ branch would otherwise stay to the end of the call, outside of any plan.
TEST(Budget, WithCppBranchesOnTensors) {
  const Threads scope(1);  // packed parts of products are a thread's, and not counted
  const Problem problem;
  const auto body = [&](Tensor x, Tensor y) {
    GradientTape tape;
    Tensor loss = reduce_mean(sparse_categorical_crossentropy(y, problem.model(x, training), from_logits));
    loss = loss * reduce_max(abs(x));
    if (loss > 100) loss = loss / 2;
    const Gradients gradients = tape.gradient(loss, problem.model.trainable_variables());
    if (global_norm(gradients) > 10) return std::pair{loss * 0, gradients};
    return std::pair{loss, gradients};
  };
  const Tensor large = problem.x * 1e6f;
  const std::size_t smallest = smallest_budget(body, problem.x, problem.y);
  EXPECT_NO_THROW(function(body, {.max_bytes = smallest})(problem.x, problem.y));
  EXPECT_THROW(function(body, {.max_bytes = smallest - 1})(problem.x, problem.y), ResourceExhausted);
  const std::size_t budget = smallest + 16 * KiB;
  const auto plain = function(body), lean = function(body, {.max_bytes = budget});
  for (int round = 0; round < 3; ++round)
    for (const Tensor& x : {problem.x, large}) {
      x.observed();
      synchronize();
      reset_peak_memory();
      const std::size_t before = memory_use().live_bytes;
      const auto [loss, gradients] = lean(x, problem.y);
      EXPECT_LT(memory_use().peak_bytes - before - bytes_of_results(gradients), budget + 128 * KiB) << round;
      const auto [plain_loss, plain_gradients] = plain(x, problem.y);
      EXPECT_TRUE(bitwise_equal(loss, plain_loss));
      for (std::size_t i = 0; i < gradients.size(); ++i)
        EXPECT_TRUE(bitwise_equal(gradients[i], plain_gradients[i])) << round << ": " << i;
    }
  EXPECT_GE(lean.explain().paths, 2);
  EXPECT_LT(lean.explain().peak_bytes, plain.explain().peak_bytes / 2);
}

TEST(Budget, SwitchedOffThereIsNone) {
  const Problem problem;
  const auto free = function(problem.body(), {.max_bytes = 1, .disable = {"recompute"}});
  free(problem.x, problem.y);
  EXPECT_EQ(free.explain().recomputed_bytes, 0u);
}

}  // namespace
}  // namespace gradus::budget_test
