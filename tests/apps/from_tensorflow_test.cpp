/// What docs/from-tensorflow.md says that Gradus does with TensorFlow's common mistakes.
#include <gtest/gtest.h>
#include <cmath>
#include <limits>
#include <set>
#include "gradus/gradus.h"
#include "tests/errors.h"

namespace gradus::from_tensorflow_test {
namespace {

Tensor inputs() { return random::normal({8, 4}, {.seed = 1}); }
Tensor labels() { return argmax(random::normal({8, 3}, {.seed = 2})); }

TEST(FromTensorFlow, ScoresAreNoProbabilities) {
  Sequential model{Dense(3, softmax)};
  const SparseCategoricalCrossentropy loss(from_logits);
  expect_says(error_of<InvalidArgument>([&] { loss(labels(), model(inputs(), training)); }), "softmax");
}

TEST(FromTensorFlow, AColumnIsNoRow) {
  expect_says(error_of<InvalidArgument>([] { mean_squared_error(zeros({8}), zeros({8, 1})); }), "[8]");
}

TEST(FromTensorFlow, AGradientIsNeverNothing) {
  Variable used(constant(2.0f), "used"), unused(constant(3.0f), "unused");
  const auto gradients = [&](GradientOptions options) {
    GradientTape tape;
    const Tensor target = used.value() * used.value();
    return tape.gradient(target, Variables{used, unused}, options);
  };
  expect_says(error_of<InvalidArgument>([&] { gradients({}); }), "unused");
  EXPECT_EQ(gradients({.unconnected = Unconnected::zero})[unused].item(), 0);
  const Tensor x = constant(2.0f);
  GradientTape tape;
  EXPECT_THROW(tape.gradient(x * x, x), InvalidArgument);  // nobody watched it
}

TEST(FromTensorFlow, GradientsKnowTheirVariables) {
  Sequential model{Dense(3)}, other{Dense(3)};
  model(inputs());
  other(inputs());
  SGD optimizer, of_other;
  const SparseCategoricalCrossentropy loss(from_logits);
  const auto step = [&](Sequential& net, Optimizer& with) {
    GradientTape tape;
    with.apply_gradients(tape.gradient(loss(labels(), net(inputs(), training)), net.trainable_variables()));
  };
  step(other, of_other);
  const Tensor before = other.trainable_variables()[0];
  step(model, optimizer);
  EXPECT_TRUE(bitwise_equal(before, other.trainable_variables()[0]));
  EXPECT_THROW(step(model, of_other), InvalidArgument);
}

TEST(FromTensorFlow, UnequalPartsCountByTheirExamples) {
  const Tensor x = range(27, f32), y = zeros({27});
  Loss total;
  for (auto [xb, yb] : micro_batches({x, y}, 8)) total += Loss::mean(square(xb - yb));
  EXPECT_NEAR(total.item(), 26.0 * 53 / 6, 1e-4);  // the mean of k^2 for k < 27
  EXPECT_EQ(total.weight().item(), 27);
}

TEST(FromTensorFlow, NumbersNeverTraceAnew) {
  auto scaled = function([](Tensor x, Tensor by) { return x * by; });
  for (const double by : {0.1, 0.2, 0.3}) EXPECT_NEAR(scaled(constant(1.0f), by).item(), by, 1e-6);
  EXPECT_EQ(scaled.explain().variants, 1);
  auto chosen = function([](Tensor x, bool doubled) { return doubled ? x * 2 : x; });
  chosen(constant(1.0f), true);
  chosen(constant(1.0f), false);
  EXPECT_EQ(chosen.explain().variants, 2);
}

TEST(FromTensorFlow, BranchesOnValues) {
  auto magnitude = function([](Tensor x) {
    if (x > 0) return x;
    return -x;
  });
  auto looked = function([](Tensor x) { return x * x.item(); });
  expect_says(error_of<Error>([&] { looked(constant(3.0f)); }), "is not known while its function is traced");
  EXPECT_EQ(magnitude(constant(3.0f)).item(), 3);
  EXPECT_EQ(magnitude(constant(-3.0f)).item(), 3);
}

TEST(FromTensorFlow, PolesBehindAWhere) {
  using Function = std::function<Tensor(Tensor)>;
  Variable x(from_values(std::vector<float>{0, 0.25}, {2}), "x");
  const auto gradient_of = [&](const Function& f) {
    GradientTape tape;
    const Tensor value = x;
    const Tensor target = reduce_sum(where(value > 0, f(value), zeros_like(value)));
    return tape.gradient(target, x).to_vector<float>();
  };
  const std::vector<Function> solved{
      [](Tensor t) { return log(t); },          [](Tensor t) { return 1 / t; },
      [](Tensor t) { return sqrt(t); },         [](Tensor t) { return pow(t, -0.5); },
      [](Tensor t) { return rsqrt(t); },        [](Tensor t) { return cbrt(t); },
      [](Tensor t) { return log2(t); },         [](Tensor t) { return log10(t); },
      [](Tensor t) { return log1p(t - 1); },    [](Tensor t) { return acos(1 - t); },
      [](Tensor t) { return asin(1 - t); },     [](Tensor t) { return acosh(1 + t); },
      [](Tensor t) { return atanh(1 - t); },    [](Tensor t) { return erfinv(1 - t); },
      [](Tensor t) { return ndtri(t); },        [](Tensor t) { return lgamma(t); },
      [](Tensor t) { return digamma(t); },      [](Tensor t) { return expint(t); },
      [](Tensor t) { return bessel_k0(t); },    [](Tensor t) { return bessel_y0(t); },
      [](Tensor t) { return pow(t, t); },       [](Tensor t) { return log(t * 2 - 0.25); },
      [](Tensor t) { return sqrt(t - 0.125); },
  };
  for (std::size_t i = 0; i < solved.size(); ++i) {
    const std::vector<float> gradient = gradient_of(solved[i]);
    EXPECT_EQ(gradient[0], 0) << i;
    EXPECT_TRUE(std::isfinite(gradient[1]) && gradient[1] != 0) << i;
  }
  const std::vector<Function> open{[](Tensor t) { return t * log(t); }, [](Tensor t) { return exp(1000 - t * 4000); },
                                   [](Tensor t) { return square(log(t)); }, [](Tensor t) { return sin(1 / t); }};
  for (std::size_t i = 0; i < open.size(); ++i) EXPECT_TRUE(std::isnan(gradient_of(open[i])[0])) << i;
}

TEST(FromTensorFlow, IntegersStayIntegers) {
  EXPECT_EQ((constant(7) / 2).dtype(), i32);
  EXPECT_EQ((constant(7) / 2).item(), 3);
  expect_says(error_of<InvalidArgument>([] { (void)(constant(7) * 0.5); }), "cast");
  expect_says(error_of<InvalidArgument>([] { (void)(constant(7) / 2.0); }), "cast");
  EXPECT_THROW(argmax(zeros({2, 300}), {.output_type = u8}), OutOfRange);
}

TEST(FromTensorFlow, ADataSetIsBatched) {
  Sequential model{Dense(3)};
  Adam optimizer;
  const auto data = data::from_tensor_slices(inputs(), labels());
  const SparseCategoricalCrossentropy loss(from_logits);
  expect_says(error_of<InvalidArgument>([&] { fit(model, optimizer, loss, data, {.verbose = false}); }), ".batch(");
}

TEST(FromTensorFlow, OptionsMeanSomething) {
  expect_says(error_of<InvalidArgument>([] { Adam({.learning_rate = -1}); }), "learning_rate");
  Sequential model{Dense(3)};
  Adam optimizer;
  const auto data = data::from_tensor_slices(inputs(), labels()).batch(4);
  const SparseCategoricalCrossentropy loss(from_logits);
  expect_says(error_of<InvalidArgument>([&] { fit(model, optimizer, loss, data, {.epochs = 0}); }), "epochs");
  AUC auc;
  auc.update(constant({0, 1}), constant({-2.0, 3.0}));
  expect_says(error_of<InvalidArgument>([&] { auc.result(); }), "from_logits");
}

TEST(FromTensorFlow, AStepThatIsNotFiniteChangesNothing) {
  Sequential model({Dense(4, relu), Dense(3, linear, {.dtype = f32})}, {.policy = mixed_float16});
  Adam optimizer;
  const SparseCategoricalCrossentropy loss(from_logits);
  model(inputs());
  const Tensor before = model.trainable_variables()[0];
  GradientTape tape;
  const Tensor x = inputs() * std::numeric_limits<float>::infinity();
  optimizer.apply_gradients(tape.gradient(loss(labels(), model(x, training)), model.trainable_variables()));
  EXPECT_TRUE(bitwise_equal(before, model.trainable_variables()[0]));
  EXPECT_EQ(optimizer.iterations(), 0);
  EXPECT_EQ(optimizer.skipped_steps(), 1);
}

class Plain {  // no layer, and its field cannot be seen
 public:
  Tensor operator()(const Tensor& x) const { return head_(x); }

 private:
  Dense head_{1};
};
struct NetOfPlain {
  Plain head{};
  Tensor operator()(const Tensor& x) const { return head(x); }
};

TEST(FromTensorFlow, LayersAreFoundOrMissed) {
  const Model<NetOfPlain> model;
  model(inputs());
  EXPECT_EQ(model.trainable_variables().size(), 2u);
  const Dense dense(1);
  const Sequential with_lambda{Lambda([&](Tensor x) { return dense(x); })};
  expect_says(error_of<InvalidArgument>([&] { with_lambda(inputs()); }), "neither trained nor saved");
}

TEST(FromTensorFlow, SharingIsSaid) {
  const Sequential generator{Dense(2)}, discriminator{Dense(1)};
  const Sequential copies{generator, discriminator}, gan{shared(generator), shared(discriminator)};
  copies(inputs()), gan(inputs());
  EXPECT_EQ(gan.variables()[0].cell(), generator.variables()[0].cell());
  EXPECT_NE(copies.variables()[0].cell(), generator.variables()[0].cell());
  expect_says(copies.summary(), "is a copy of");
  EXPECT_EQ(gan.summary().find("is a copy of"), std::string::npos);
}

TEST(FromTensorFlow, AShuffleIsAPermutationOfEverything) {
  std::set<std::int64_t> begin, all;
  for (const Tensor& i : data::range(1000).shuffle({.seed = 1})) {
    all.insert(static_cast<std::int64_t>(i.item()));
    if (all.size() <= 20) begin.insert(static_cast<std::int64_t>(i.item()));
  }
  EXPECT_EQ(all.size(), 1000u);
  EXPECT_GT(*begin.rbegin(), 500);  // not of the beginning alone
}

}  // namespace
}  // namespace gradus::from_tensorflow_test
