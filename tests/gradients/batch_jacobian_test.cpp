/// batch_jacobian: against the Jacobian of each example on its own, in both modes; and which functions mix examples.
#include <gtest/gtest.h>
#include <cfenv>
#include <functional>
#include "gradus/function/function.h"
#include "gradus/gradients/custom_gradient.h"
#include "gradus/gradients/functional.h"
#include "gradus/nn/layers.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/control.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/softmax.h"
#include "tests/errors.h"

namespace gradus::batch_jacobian_test {
namespace {

using Function1 = std::function<Tensor(Tensor)>;

Tensor noise(const Shape& shape, std::uint64_t seed) { return random::normal(shape, {.dtype = f64, .seed = seed}); }

/// The Jacobian of each example, in a batch of one.
Tensor one_by_one(const Function1& f, const Tensor& x) {
  std::vector<Tensor> each;
  for (std::int64_t i = 0; i < x.shape()[0]; ++i) {
    const Tensor j = jacobian([&](Tensor row) { return f(expand_dims(row, 0)); }, x[i]);  // [1, y..., x...]
    each.push_back(j[0]);
  }
  return stack(each);
}

struct Case {
  std::string name;
  Function1 f;
  Shape x;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

Tensor normalized(Tensor x) {
  const ReduceOptions last{.axis = {-1}, .keepdims = true};
  return (x - reduce_mean(x, last)) / (reduce_std(x, last) + 1e-3);
}

Tensor attention(Tensor x) {  // [n, t, 4], two heads
  const std::int64_t n = x.shape()[0], t = x.shape()[1];
  const Tensor heads = transpose(reshape(matmul(x, noise({4, 4}, 5)), {n, t, 2, 2}), {0, 2, 1, 3});
  const Tensor weights = softmax(matmul(heads, transpose(heads)));
  return reshape(transpose(matmul(weights, heads), {0, 2, 1, 3}), {n, t, 4});
}

const std::vector<Case> apart{
    {"dense", [](Tensor x) { return tanh(matmul(x, noise({3, 2}, 5)) + noise({2}, 6)); }, {4, 3}},
    {"dense of a sequence", [](Tensor x) { return matmul(x, noise({3, 2}, 5)); }, {4, 2, 3}},
    {"one number", [](Tensor x) { return reduce_sum(square(x), {.axis = {1}}); }, {4, 3}},
    {"more outputs than inputs", [](Tensor x) { return matmul(x, noise({2, 5}, 5)); }, {4, 2}},
    {"softmax", [](Tensor x) { return softmax(x); }, {4, 3}},
    {"logsumexp", [](Tensor x) { return reduce_logsumexp(x, {.axis = {-1}}); }, {4, 3}},
    {"layer norm", normalized, {4, 5}},
    {"attention", attention, {3, 2, 4}},
    {"flatten", [](Tensor x) { return matmul(reshape(x, {x.shape()[0], 6}), noise({6, 2}, 5)); }, {4, 2, 3}},
    {"a sum of all but the first", [](Tensor x) { return reduce_sum(x * x, {.axis = {1, 2}}); }, {4, 2, 3}},
    {"slices and concat",
     [](Tensor x) { return concat({slice(x, {0, 1}, {-1, 2}), sin(x), reverse(x, {1})}, 1); },
     {4, 3}},
    {"back and forth", [](Tensor x) { return transpose(matmul(noise({2, 3}, 5), transpose(x))); }, {4, 3}},
    {"cumsum", [](Tensor x) { return cumsum(x, 1) * x; }, {4, 3}},
    {"gather of columns", [](Tensor x) { return gather(x, constant({2, 0, 2}), 1); }, {4, 3}},
    {"tile", [](Tensor x) { return tile(x, {1, 2}) * tile(x, {1, 2}); }, {4, 3}},
    {"prod", [](Tensor x) { return reduce_prod(x, {.axis = {1}}); }, {4, 3}},
    {"max", [](Tensor x) { return reduce_max(x, {.axis = {1}}); }, {4, 3}},
    {"vectorized_map",
     [](Tensor x) {
       return vectorized_map([](Tensor r) { return reshape(matmul(reshape(r, {1, 3}), noise({3, 3}, 5)), {3}) * r; },
                             x);
     },
     {4, 3}},
    {"gradient of a sum",
     [](Tensor x) { return gradient([](Tensor t) { return reduce_sum(exp(t) * t); }, x); },
     {4, 3}},
    {"stopped", [](Tensor x) { return x / stop_gradient(reduce_max(abs(x)) * 0 + 2); }, {4, 3}},
    {"recomputed",
     [](Tensor x) { return recompute_grad([](Tensor t) { return tanh(matmul(t, noise({3, 2}, 5))); })(x); },
     {4, 3}},
    {"gradient of a recomputed sum",
     [](Tensor x) {
       return gradient([](Tensor t) { return reduce_sum(recompute_grad([](Tensor r) { return exp(r) * r; })(t)); }, x);
     },
     {4, 3}},
    {"a gradient of one's own",
     [](Tensor x) {
       return custom_gradient([](Tensor t) { return std::pair{exp(t), [t](Tensor dy) { return dy * sin(t); }}; })(x);
     },
     {4, 3}},
    {"constant", [](Tensor x) { return noise({x.shape()[0], 2}, 5); }, {4, 3}},
    {"identity", [](Tensor x) { return x; }, {4, 3}},
    {"examples of one number", [](Tensor x) { return x * x; }, {4}},
    {"cond",
     [](Tensor x) {
       return cond(reduce_sum(x) > 100, [&] { return exp(x); }, [&] { return tanh(matmul(x, noise({3, 3}, 5))); });
     },
     {4, 3}},
    {"scan along another axis",
     [](Tensor x) {
       const auto step = [](Tensor h, Tensor part) {
         const Tensor next = tanh(matmul(h, noise({2, 2}, 5)) + part);
         return std::pair{next, next * part};
       };
       const auto [last, all] = scan(step, reduce_mean(x, {.axis = {1}}), transpose(x, {1, 0, 2}));
       return concat({expand_dims(last, 1), transpose(all, {1, 0, 2})}, 1);
     },
     {4, 3, 2}},
    {"while_loop",
     [](Tensor x) {
       const auto first = [](Tensor i, Tensor) { return i < 3; };
       const auto step = [](Tensor i, Tensor t) { return std::tuple{i + 1, tanh(t) * 0.7 + t}; };
       return std::get<1>(while_loop(first, step, std::tuple{constant(0), x}, {.max_iterations = 8}));
     },
     {4, 3}},
    {"one example", [](Tensor x) { return x * reduce_sum(x); }, {1, 3}},
};

class Apart : public ::testing::TestWithParam<Case> {};
TEST_P(Apart, IsTheJacobianOfEachExample) {
  const Tensor x = noise(GetParam().x, 1);
  const Tensor j = batch_jacobian(GetParam().f, x), want = one_by_one(GetParam().f, x);
  EXPECT_LE(max_abs_difference(j, want), 1e-12) << j << want;
}
TEST_P(Apart, TracedWithAnyNumberOfExamples) {
  Shape shape = GetParam().x;
  shape.set(0, any_size);
  const auto compiled =
      function([&](Tensor x) { return batch_jacobian(GetParam().f, x); }, {.input_signature = {{f64, shape}}});
  for (const std::int64_t n : {4, 2, 0}) {
    if (GetParam().name == "one example") GTEST_SKIP();
    shape.set(0, n);
    const Tensor x = noise(shape, 1);
    EXPECT_TRUE(bitwise_equal(compiled(x), batch_jacobian(GetParam().f, x))) << n;
  }
  EXPECT_EQ(compiled.explain().variants, 1);
}
/// What is compiled does not depend on how the caller rounds.
TEST_P(Apart, HasTheSameBitsWhereTheCallerRoundsUpwards) {
  const Tensor x = noise(GetParam().x, 1);
  Shape shape = GetParam().x;
  if (GetParam().name != "one example") shape.set(0, any_size);
  const auto compiled = [&] {
    return function([&](Tensor in) { return batch_jacobian(GetParam().f, in); },
                    {.input_signature = {{f64, shape}}})(x);
  };
  const Tensor want = compiled();
  std::fesetround(FE_UPWARD);
  const Tensor got = compiled();
  std::fesetround(FE_TONEAREST);
  EXPECT_TRUE(bitwise_equal(got, want));
}
INSTANTIATE_TEST_SUITE_P(Functions, Apart, ::testing::ValuesIn(apart));

struct Mixing {
  Case function;
  std::string named;
};
void PrintTo(const Mixing& c, std::ostream* out) { *out << c.function.name; }

const std::vector<Mixing> mixing{
    {{"batch statistics", [](Tensor x) { return x - reduce_mean(x, {.axis = {0}}); }, {4, 3}},
     "`sum{axis=-2}` of f64[4,3]"},
    {{"sum of all", [](Tensor x) { return x * reduce_sum(x); }, {4, 3}}, "`sum"},
    {{"reversed", [](Tensor x) { return reverse(x, {0}); }, {4, 3}}, "`reverse"},
    {{"rolled", [](Tensor x) { return roll(x, 1, 0); }, {4, 3}}, "`slice"},
    {{"one row", [](Tensor x) { return x * x[0]; }, {4, 3}}, "`slice"},
    {{"products of examples", [](Tensor x) { return matmul(x, transpose(x)); }, {4, 3}}, "`matmul"},
    {{"weighted examples", [](Tensor x) { return matmul(noise({4, 4}, 5), x); }, {4, 3}}, "`matmul"},
    {{"running sum over examples", [](Tensor x) { return cumsum(x, 0); }, {4, 3}}, "`cumsum"},
    {{"gather of examples", [](Tensor x) { return gather(x, constant({0, 0, 1, 2})); }, {4, 3}}, "`gather"},
    {{"softmax over examples", [](Tensor x) { return softmax(x, 0); }, {4, 3}}, "`sum"},
    {{"transposed", [](Tensor x) { return transpose(x); }, {3, 3}}, "do not lie along dimension 0"},
    {{"halves exchanged",
      [](Tensor x) { return reshape(transpose(reshape(x, {2, 2, 3}), {1, 0, 2}), {4, 3}); },
      {4, 3}},
     "`transpose"},
    {{"two directions at once", [](Tensor x) { return x + transpose(x); }, {3, 3}}, "`add` of f64[3,3], f64[3,3]"},
    {{"recomputed batch statistics",
      [](Tensor x) { return recompute_grad([](Tensor t) { return t / reduce_max(t); })(x); },
      {4, 3}},
     "`max"},
    {{"a gradient of one's own that is normalized over the batch",
      [](Tensor x) {
        return custom_gradient([](Tensor t) { return std::pair{t * 2, [](Tensor dy) { return dy / norm(dy); }}; })(x);
      },
      {4, 3}},
     "the gradient of `custom_call` of f64[4,3]"},
    {{"a scan over examples",
      [](Tensor x) {
        const auto step = [](Tensor h, Tensor row) { return std::pair{h + row, h * row}; };
        return scan(step, noise({3}, 5), x).second;
      },
      {4, 3}},
     "`scan` of"},
    {{"a branch that mixes",
      [](Tensor x) { return cond(reduce_sum(x) > 0, [&] { return x; }, [&] { return x * reduce_max(x); }); },
      {4, 3}},
     "`max"},
    {{"another number", [](Tensor x) { return x.rows(0, 2); }, {4, 3}}, "same number of examples"},
    {{"a scalar", [](Tensor x) { return reduce_sum(x); }, {4, 3}}, "same number of examples"},
};

class Mixes : public ::testing::TestWithParam<Mixing> {};
TEST_P(Mixes, IsAnErrorThatNamesTheOp) {
  const auto& [c, named] = GetParam();
  expect_says(error_of<InvalidArgument>([&] { batch_jacobian(c.f, noise(c.x, 1)); }), named);
}
INSTANTIATE_TEST_SUITE_P(Functions, Mixes, ::testing::ValuesIn(mixing));

TEST(BatchJacobian, OfModels) {
  Sequential model{Dense(8, tanh), BatchNormalization(), Dense(3, softmax)};
  const Tensor x = random::normal({5, 4}, {.seed = 1});
  model(x, inference);
  const auto f = [&](Tensor t) { return model(t, inference); };
  const Tensor j = batch_jacobian(model, x);
  EXPECT_EQ(j.shape(), (Shape{5, 3, 4}));
  EXPECT_LE(max_abs_difference(j, one_by_one(f, x)), 1e-6);
  const std::string error =
      error_of<InvalidArgument>([&] { batch_jacobian([&](Tensor t) { return model(t, training); }, x); });
  expect_says(error, "batch_normalization");
  expect_says(error, "examples mix");
}

TEST(BatchJacobian, FromATape) {
  const Tensor x = noise({4, 3}, 1);
  const auto f = [](Tensor t) { return tanh(matmul(t, noise({3, 2}, 5))); };
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = f(x);
  EXPECT_TRUE(bitwise_equal(tape.batch_jacobian(y, x), batch_jacobian(f, x)));
  EXPECT_TRUE(bitwise_equal(tape.jacobian(y, x), jacobian(f, x)));
  const Tensor z = x * reduce_sum(x);
  expect_says(error_of<InvalidArgument>([&] { tape.batch_jacobian(z, x); }), "batch_jacobian: examples mix");
}

TEST(BatchJacobian, ATapeRefuses) {
  const Tensor x = noise({4, 3}, 1), other = noise({4, 3}, 2);
  GradientTape tape;
  tape.watch(x);
  expect_says(error_of<InvalidArgument>([&] { tape.jacobian(x * other, other); }),
              "jacobian: argument `source`, f64[4,3], was not watched");
  expect_says(error_of<InvalidArgument>([&] { tape.jacobian(argmax(x), x); }), "the target is i32[4]");
  tape.jacobian(x * x, x);
  expect_says(error_of<InvalidArgument>([&] { tape.jacobian(x * x, x); }), "used up");
}

}  // namespace
}  // namespace gradus::batch_jacobian_test
