/// Attention, embeddings and recurrent layers: values by plain loops, variables, options, and what is refused.
#include <gtest/gtest.h>
#include <cmath>
#include "gradus/function/function.h"
#include "gradus/gradients/tape.h"
#include "gradus/nn/attention.h"
#include "gradus/nn/cells.h"
#include "gradus/nn/embedding.h"
#include "gradus/nn/model.h"
#include "gradus/nn/recurrent.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/softmax.h"
#include "tests/errors.h"

namespace gradus::sequence_layers_test {
namespace {

std::vector<std::string> names_of(const Variables& variables) {
  std::vector<std::string> names;
  for (const Variable& variable : variables) names.push_back(variable.name());
  return names;
}

Tensor noise(const Shape& shape, std::uint64_t seed) { return random::normal(shape, {.dtype = f64, .seed = seed}); }

TEST(Embedding, LooksUpRows) {
  set_seed(1);
  const Embedding layer(7, 3);
  const Tensor tokens = constant({{0, 6}, {2, 2}});
  const Tensor y = layer(tokens);
  EXPECT_EQ(y.spec(), (Spec{f32, {2, 2, 3}}));
  EXPECT_TRUE(bitwise_equal(y[1][0], layer.table().value()[2]));
  EXPECT_LE(reduce_max(abs(layer.table().value())).item(), 0.05);
  EXPECT_EQ(names_of(layer.variables()), (std::vector<std::string>{"embedding/embeddings"}));
  EXPECT_THROW(layer(constant({7})).observed(), OutOfRange);
  expect_says(error_of([] { Embedding(3, 2)(zeros({2})); }), "integers");
}

TEST(PositionEmbedding, AddsWhatBelongsToThePlace) {
  set_seed(1);
  const PositionEmbedding layer(5);
  const Tensor y = layer(zeros({2, 3, 4}));
  EXPECT_TRUE(bitwise_equal(y[0], layer.variables()[0].value().rows(0, 3)));
  EXPECT_TRUE(bitwise_equal(y[0], y[1]));
  expect_says(error_of([&] { layer(zeros({2, 6, 4})); }), "more than the 5 places");
}

/// By the formula, a head at a time.
Tensor attended(const Variables& v, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& bias,
                std::int64_t shared) {
  Tensor sum;
  for (std::int64_t h = 0; h < v[0].shape()[1]; ++h) {
    const auto head = [&](const Tensor& x, std::size_t which, std::int64_t k) {
      const Tensor kernel = v[which].value(), offset = v[which + 1].value();
      return matmul(x, squeeze(slice(kernel, {0, k, 0}, {-1, 1, -1}), {1})) + offset[k];
    };
    const Tensor q = head(query, 0, h), k = head(key, 2, h / shared), u = head(value, 4, h / shared);
    const Tensor weights = softmax(matmul(q, transpose(k)) / std::sqrt(static_cast<double>(q.shape()[2])) + bias);
    const Tensor part = matmul(matmul(weights, u), v[6].value()[h]);
    sum = sum.defined() ? sum + part : part;
  }
  return sum + v[7];
}

TEST(MultiHeadAttention, IsTheFormula) {
  set_seed(1);
  const MultiHeadAttention layer(3, 4, {.value_dim = 5});
  const Tensor query = noise({2, 3, 6}, 1), key = noise({2, 4, 7}, 2), value = noise({2, 4, 8}, 3);
  const Tensor y = layer(query, key, value);
  EXPECT_LT(max_abs_difference(y, attended(layer.variables(), query, key, value, zeros({}, f64), 1)), 1e-12);
  EXPECT_EQ(
      names_of(layer.variables()),
      (std::vector<std::string>{
          "multi_head_attention/query/kernel", "multi_head_attention/query/bias", "multi_head_attention/key/kernel",
          "multi_head_attention/key/bias", "multi_head_attention/value/kernel", "multi_head_attention/value/bias",
          "multi_head_attention/attention_output/kernel", "multi_head_attention/attention_output/bias"}));
  EXPECT_EQ(layer.variables()[4].shape(), (Shape{8, 3, 5}));
  EXPECT_EQ(layer.variables()[6].shape(), (Shape{3, 5, 6}));
}

TEST(MultiHeadAttention, MasksAndCausality) {
  set_seed(1);
  const MultiHeadAttention causal(2, 4, {.causal = true}), plain(2, 4);
  const Tensor x = noise({2, 3, 6}, 1);
  const Tensor y = causal(x);
  plain(x);  // builds
  for (std::size_t i = 0; i < 8; ++i) plain.variables()[i].assign(causal.variables()[i].value());
  const Tensor later = concat({slice(x, {0, 0, 0}, {-1, 2, -1}), noise({2, 1, 6}, 9)}, 1);
  EXPECT_TRUE(bitwise_equal(slice(y, {0, 0, 0}, {-1, 2, -1}), slice(causal(later), {0, 0, 0}, {-1, 2, -1})));
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor bias = from_values(std::vector<double>{0, -inf, -inf, 0, 0, -inf, 0, 0, 0}, {3, 3});
  EXPECT_LT(max_abs_difference(y, attended(causal.variables(), x, x, x, bias, 1)), 1e-12);
  EXPECT_EQ(max_abs_difference(plain(x, {.mask = equal(bias, 0)}), y), 0);
  EXPECT_TRUE(reduce_all(is_finite(plain(x, {.mask = zeros({3, 3}, f64) > 1}))).item());
}

TEST(MultiHeadAttention, DropsInTrainingAlone) {
  set_seed(1);
  const MultiHeadAttention layer(2, 4, {.dropout = 0.5});
  const Tensor x = noise({2, 5, 6}, 1);
  EXPECT_TRUE(bitwise_equal(layer(x), layer(x, inference)));
  EXPECT_FALSE(bitwise_equal(layer(x, training), layer(x, training)));
}

TEST(MultiHeadAttention, Options) {
  const MultiHeadAttention layer(2, 4, {.use_bias = false, .name = "look"});
  layer(noise({1, 2, 3}, 1));
  EXPECT_EQ(names_of(layer.variables()),
            (std::vector<std::string>{"look/query/kernel", "look/key/kernel", "look/value/kernel",
                                      "look/attention_output/kernel"}));
  expect_says(error_of([] { MultiHeadAttention(0, 4); }), "positive");
  expect_says(error_of([] { MultiHeadAttention(2, 4)(zeros({2, 3})); }), "[batch, time, width]");
  expect_says(error_of([&] { layer(noise({1, 2, 5}, 1)); }), "expected [batch, time, 3]");
  expect_says(error_of([] { GroupedQueryAttention(4, 3, 2); }), "do not divide");
}

TEST(GroupedQueryAttention, SharesKeysAmongNeighbours) {
  set_seed(1);
  const GroupedQueryAttention layer(4, 6, 2);
  const Tensor x = noise({2, 3, 5}, 1);
  const Tensor y = layer(x);
  EXPECT_LT(max_abs_difference(y, attended(layer.variables(), x, x, x, zeros({}, f64), 3)), 1e-12);
}

TEST(Orthogonal, HasOrthonormalRowsOrColumns) {
  set_seed(1);
  const auto product = [](const Tensor& a) { return matmul(transpose(a), a); };
  EXPECT_LT(max_abs_difference(product(initializers::orthogonal({7, 4})), eye(4)), 1e-6);
  EXPECT_LT(max_abs_difference(product(transpose(initializers::orthogonal({3, 12}))), eye(3)), 1e-6);
  EXPECT_LT(max_abs_difference(product(reshape(initializers::orthogonal({3, 4, 5}), {12, 5})), eye(5)), 1e-6);
  expect_says(error_of([] { initializers::orthogonal({5}); }), "two dimensions");
}

double squash(double x) { return 1 / (1 + std::exp(-x)); }

/// One unit over one sequence, by hand.
TEST(LSTM, IsTheFormula) {
  LSTM layer(1, {.return_sequences = true});
  layer.build({f64, {any_size, any_size, 1}});
  const Variables v = layer.variables();
  EXPECT_EQ(names_of(v), (std::vector<std::string>{"lstm/kernel", "lstm/recurrent_kernel", "lstm/bias"}));
  EXPECT_EQ(v[2].value().to_vector<double>(), (std::vector<double>{0, 1, 0, 0}));
  v[0].assign(from_values(std::vector<double>{0.5, -0.3, 0.8, 0.2}, {1, 4}));
  v[1].assign(from_values(std::vector<double>{0.1, 0.4, -0.6, 0.7}, {1, 4}));
  const std::vector<double> xs{1, -2, 0.5};
  double h = 0, c = 0;
  std::vector<double> want;
  for (double x : xs) {
    const double i = squash(0.5 * x + 0.1 * h), f = squash(-0.3 * x + 0.4 * h + 1), o = squash(0.2 * x + 0.7 * h);
    c = f * c + i * std::tanh(0.8 * x - 0.6 * h);
    h = o * std::tanh(c);
    want.push_back(h);
  }
  EXPECT_LT(max_abs_difference(layer(from_values(xs, {1, 3, 1})), from_values(want, {1, 3, 1})), 1e-15);
}

TEST(LSTM, ItsActivationIsThatOfItsCell) {
  set_seed(1);
  const LSTM layer(3, {.activation = relu});
  const RNN cells(LSTMCell(3, {.activation = relu}));
  const Tensor x = noise({2, 4, 5}, 1);
  const Tensor y = layer(x);
  cells(x);  // builds
  for (std::size_t i = 0; i < 3; ++i) cells.variables()[i].assign(layer.variables()[i].value());
  EXPECT_LT(max_abs_difference(cells(x), y), 1e-12);
}

TEST(GRU, ResetsAfterTheProduct) {
  GRU layer(1);
  layer.build({f64, {any_size, any_size, 1}});
  const Variables v = layer.variables();
  EXPECT_EQ(v[2].shape(), (Shape{2, 3}));
  v[0].assign(from_values(std::vector<double>{0.5, -0.3, 0.8}, {1, 3}));
  v[1].assign(from_values(std::vector<double>{0.1, 0.4, -0.6}, {1, 3}));
  v[2].assign(from_values(std::vector<double>{0.1, 0.2, 0.3, 0.4, 0.5, 0.6}, {2, 3}));
  double h = 0;
  for (double x : {1.0, -2.0}) {
    const double z = squash(0.5 * x + 0.1 + 0.1 * h + 0.4), r = squash(-0.3 * x + 0.2 + 0.4 * h + 0.5);
    h = z * h + (1 - z) * std::tanh(0.8 * x + 0.3 + r * (-0.6 * h + 0.6));
  }
  EXPECT_NEAR(layer(from_values(std::vector<double>{1, -2}, {1, 2, 1})).item(), h, 1e-15);
  GRU before(2, {.reset_after = false});
  before.build({f32, {any_size, any_size, 3}});
  EXPECT_EQ(before.variables()[2].shape(), (Shape{6}));
}

TEST(SimpleRNN, GoesEitherWay) {
  set_seed(1);
  SimpleRNN forwards(4, {.return_sequences = true});
  const Tensor x = noise({2, 5, 3}, 1);
  const Tensor y = forwards(x);
  EXPECT_EQ(y.shape(), (Shape{2, 5, 4}));
  SimpleRNN last(4);
  last.build({f64, {any_size, any_size, 3}});
  SimpleRNN backwards(4, {.return_sequences = true, .go_backwards = true});
  backwards.build({f64, {any_size, any_size, 3}});
  for (std::size_t i = 0; i < 3; ++i) {
    last.variables()[i].assign(forwards.variables()[i].value());
    backwards.variables()[i].assign(forwards.variables()[i].value());
  }
  EXPECT_TRUE(bitwise_equal(last(x), squeeze(slice(y, {0, 4, 0}, {-1, 1, -1}), {1})));
  EXPECT_TRUE(bitwise_equal(backwards(reverse(x, {1})), y));
  expect_says(error_of([] { SimpleRNN(0); }), "units");
  expect_says(error_of([] { SimpleRNN(2)(zeros({2, 3})); }), "[batch, time, inputs]");
}

/// Both directions are layers of their own, with states of their own; Keras gives them in this order.
TEST(Bidirectional, TakesAndGivesTheStatesOfBothDirections) {
  set_seed(3);
  const Tensor x = random::normal({2, 5, 4}),
               mask = constant({{true, true, true, false, false}, {true, true, true, true, true}});
  for (const bool sequences : {false, true}) {
    const auto states = [](int n) {
      std::vector<Tensor> all;
      for (int i = 0; i < n; ++i) all.push_back(random::normal({2, 3}));
      return all;
    };
    const auto check = [&]<class L>(const L& like, const L& forward, const L& backward, int n) {
      const Bidirectional both(like);
      const std::vector<Tensor> first = states(n), second = states(n);
      std::vector<Tensor> initial = first;
      initial.insert(initial.end(), second.begin(), second.end());
      const RecurrentOutput got = both.with_state(x, {.mask = mask, .initial_state = initial});
      forward(x);
      backward(x);
      const Variables all = both.variables();
      for (std::size_t i = 0; i < all.size(); ++i)
        (i < 3 ? forward : backward).variables()[i % 3].assign(all[i].value());
      const RecurrentOutput a = forward.with_state(x, {.mask = mask, .initial_state = first});
      const RecurrentOutput b = backward.with_state(x, {.mask = mask, .initial_state = second});
      EXPECT_TRUE(bitwise_equal(got.output, concat({a.output, sequences ? reverse(b.output, {1}) : b.output}, -1)));
      ASSERT_EQ(got.state.size(), static_cast<std::size_t>(2 * n));
      for (int i = 0; i < 2 * n; ++i) {
        const auto at = static_cast<std::size_t>(i);
        EXPECT_TRUE(bitwise_equal(got.state[at], i < n ? a.state[at] : b.state[at - static_cast<std::size_t>(n)])) << i;
      }
      EXPECT_TRUE(bitwise_equal(both(x, {.mask = mask, .initial_state = initial}), got.output));
      EXPECT_TRUE(bitwise_equal(both.with_state(x).output, both(x)));
      expect_says(error_of([&] { both(x, {.initial_state = first}); }), "expected " + std::to_string(2 * n));
    };
    const RecurrentOptions plain{.return_sequences = sequences, .zero_output_for_mask = true},
        back{.return_sequences = sequences, .go_backwards = true, .zero_output_for_mask = true};
    check(GRU(3, plain), GRU(3, plain), GRU(3, back), 1);
    check(LSTM(3, plain), LSTM(3, plain), LSTM(3, back), 2);
  }
}

TEST(Bidirectional, JoinsBothDirections) {
  set_seed(1);
  const Bidirectional layer(LSTM(3, {.return_sequences = true}));
  const Tensor x = noise({2, 4, 5}, 1);
  const Tensor y = layer(x);
  EXPECT_EQ(y.shape(), (Shape{2, 4, 6}));
  EXPECT_EQ(names_of(layer.variables())[0], "bidirectional/forward_lstm/kernel");
  EXPECT_EQ(names_of(layer.variables())[5], "bidirectional/backward_lstm/bias");
  EXPECT_FALSE(bitwise_equal(layer.variables()[0].value(), layer.variables()[3].value()));
  LSTM one(3, {.return_sequences = true});
  one.build({f64, {any_size, any_size, 5}});
  for (std::size_t i = 0; i < 3; ++i) one.variables()[i].assign(layer.variables()[i + 3].value());
  EXPECT_TRUE(bitwise_equal(slice(y, {0, 0, 3}, {-1, -1, 3}), reverse(one(reverse(x, {1})), {1})));
  EXPECT_EQ(Bidirectional(GRU(3), {.merge_mode = Merge::sum})(x).shape(), (Shape{2, 3}));
  const Bidirectional copy = layer;
  EXPECT_TRUE(bitwise_equal(copy(x), y));
  expect_says(error_of([&] { Bidirectional(Dense(3)); }), "SimpleRNN, GRU or LSTM");
  expect_says(error_of([&] { Bidirectional{std::move(one)}; }), "is built");
}

TEST(TimeDistributed, IsTheLayerAtEveryPlace) {
  set_seed(1);
  const TimeDistributed layer(Dense(3, relu));
  const Tensor x = noise({2, 4, 5}, 1);
  const Tensor y = layer(x);
  EXPECT_EQ(names_of(layer.variables())[0], "time_distributed/dense/kernel");
  EXPECT_TRUE(bitwise_equal(y, relu(matmul(x, layer.variables()[0]) + layer.variables()[1])));
}

TEST(RecurrentLayers, DropInputsInTrainingAlone) {
  set_seed(1);
  const LSTM layer(3, {.dropout = 0.5});
  const Tensor x = noise({2, 4, 5}, 1);
  EXPECT_TRUE(bitwise_equal(layer(x), layer(x, inference)));
  EXPECT_FALSE(bitwise_equal(layer(x, training), layer(x, training)));
}

/// A compiled step through a loop, with sizes that are not known when it is traced.
TEST(RecurrentLayers, TrainCompiled) {
  set_seed(1);
  Sequential model{Embedding(11, 4), Bidirectional(GRU(5)), Dense(1)};
  model.build({i32, {any_size, 6}});
  const auto step = function([&](Tensor x) {
    GradientTape tape;
    return tape.gradient(reduce_mean(square(model(x, training))), model.trainable_variables())[1];
  });
  const Tensor x = random::integers({3, 6}, {.high = 11, .seed = 1});
  GradientTape tape;
  const Tensor want = tape.gradient(reduce_mean(square(model(x, training))), model.trainable_variables())[1];
  EXPECT_TRUE(bitwise_equal(step(x), want));
  EXPECT_TRUE(bitwise_equal(step(x), want));
}

}  // namespace
}  // namespace gradus::sequence_layers_test
