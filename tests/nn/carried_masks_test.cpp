/// Masks go with tensors: a table of layers (layers that read, pass on, stop and make masks) by ways of calling them.
/// However a layer is called, result and mask are those of the model's call. If a plain op lost a mask, a layer that
/// looks at places, or a loss, prints a notice once.
#include <gtest/gtest.h>
#include "gradus/gradus.h"
#include "gradus/graph/context.h"
#include "gradus/graph/mask.h"
#include "gradus/ops/masked_rows.h"
#include "tests/errors.h"

namespace gradus::carried_masks_test {
namespace {

/// The mask of a layer's result, as Keras's layer of this name gives it: supports_masking and compute_mask.
enum class Gives { mask, turned_mask, nothing };
struct Row {
  std::string name;
  Module layer;
  Gives gives;
  bool reads = true;  // its result depends on the mask
};

std::vector<Row> rows() {
  const RecurrentOptions all{.return_sequences = true},
      back{.return_sequences = true, .go_backwards = true, .zero_output_for_mask = true};
  return {{"simple_rnn", SimpleRNN(3), Gives::nothing},
          {"gru", GRU(3), Gives::nothing},
          {"gru of all", GRU(3, all), Gives::mask},
          {"lstm", LSTM(3), Gives::nothing},
          {"lstm of all", LSTM(3, all), Gives::mask},
          {"lstm backwards", LSTM(3, back), Gives::turned_mask},
          {"bidirectional", Bidirectional(GRU(3, all)), Gives::mask},
          {"rnn", RNN(GRUCell(3)), Gives::nothing},
          {"rnn of all", RNN(LSTMCell(3), {.return_sequences = true}), Gives::mask},
          {"attention", Attention(), Gives::mask},
          {"additive attention", AdditiveAttention(), Gives::mask},
          {"multi head attention", MultiHeadAttention(2, 3), Gives::mask},
          {"grouped query attention", GroupedQueryAttention(2, 4, 2), Gives::mask},
          {"mean", GlobalAveragePooling1D(), Gives::nothing},
          {"softmax over time", Softmax(1), Gives::mask},
          {"unit normalization over time", UnitNormalization({1}), Gives::mask},
          {"distributed", TimeDistributed(Dense(3)), Gives::mask, false},
          {"dense", Dense(3), Gives::mask, false},
          {"dropout", Dropout(0.5), Gives::mask, false},
          {"relu", ReLU(), Gives::mask, false},
          {"identity", Identity(), Gives::mask, false},
          {"batch normalization", BatchNormalization(), Gives::mask, false},
          {"layer normalization", LayerNormalization(), Gives::mask, false},
          {"position", PositionEmbedding(16), Gives::mask, false},
          {"masking", Masking(), Gives::mask, false},
          {"masked and read", Sequential{Dense(4), GRU(3)}, Gives::nothing},
          {"nested", Sequential{Sequential{Dense(4)}, GRU(3, all)}, Gives::mask},
          {"flatten", Flatten(), Gives::nothing, false},
          {"reshape", Reshape({4, 6}), Gives::nothing, false},
          {"permute", Permute({2, 1}), Gives::nothing, false},
          {"convolution", Conv1D(3, 2), Gives::nothing, false},
          {"max pooling", MaxPooling1D(2), Gives::nothing, false},
          {"average pooling", AveragePooling1D(2), Gives::nothing, false},
          {"rms normalization", RMSNormalization(), Gives::nothing, false},
          {"lambda", Lambda([](const Tensor& x) { return x; }), Gives::nothing, false}};
}

struct Net {
  Embedding look{9, 4, {.mask_zero = true}};
  Module layer;
  Tensor encode(const Tensor& words) const { return layer(look(words)); }
  Tensor operator()(const Tensor& words) const { return encode(words); }
};

class CarriedMasks : public ::testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override { set_seed(5); }
  static Tensor words() {
    return constant({{3, 5, 1, 0, 0, 0}, {2, 0, 0, 0, 0, 0}, {1, 2, 3, 4, 5, 6}, {7, 8, 0, 0, 0, 0}});
  }
  const Row row = rows()[GetParam()];
};

TEST_P(CarriedMasks, AreThoseOfTheModelsCall) {
  const Model<Net> model(Net{.layer = row.layer});
  const Tensor x = words(), counts = not_equal(x, 0), want = model(x), mask = model.compute_mask(x);
  ASSERT_EQ(mask.defined(), row.gives != Gives::nothing);
  if (row.name != "masking" && mask.defined()) {
    EXPECT_TRUE(bitwise_equal(mask, row.gives == Gives::turned_mask ? reverse(counts, {1}) : counts));
  }
  const Tensor embedded = model->look(x), without = model->layer(Lambda([](const Tensor& e) { return e; })(embedded));
  EXPECT_EQ(row.reads, !bitwise_equal(without, want));

  const auto check = [&](const char* way, const Tensor& y) {
    EXPECT_TRUE(bitwise_equal(y, want)) << way;
    const Tensor own = SequenceMask::of(y);
    ASSERT_EQ(own.defined(), mask.defined()) << way;
    if (mask.defined()) { EXPECT_TRUE(bitwise_equal(own, mask)) << way; }
  };
  check("model", model(x));
  check("method", model->encode(x));
  check("layer by layer", model->layer(embedded));
  const Tensor seen = model->look(x);
  seen.to_vector<float>();
  check("looked at in between", model->layer(seen));
  check("moved", model->layer(model->look(x).to(cpu(0))));
  check("Sequential", Sequential{shared(model->look), shared(model->layer)}(x));
  const auto encode = function([&](Tensor w) { return model->encode(w); });
  check("function", encode(x));
  check("function again", encode(x));
  const auto look = function([&](Tensor w) { return model->look(w); });
  const auto read = function([&](Tensor e) { return model->layer(e); });
  check("over borders of functions", read(look(x)));
  check("over borders of functions again", read(look(x)));
  check("function in a function", function([&](Tensor w) { return read(look(w)); })(x));
  check("run eagerly", function([&](Tensor w) { return model->encode(w); }, {.run_eagerly = true})(x));
  const auto declared =
      function([&](Tensor e) { return model->layer(e); }, {.input_signature = {{f32, {any_size, 6, 4}}}});
  check("a declared signature", declared(embedded));
  const Tensor first = declared(masked_rows(embedded, 0, 2));
  EXPECT_LE(max_abs_difference(first, want.rows(0, 2)), 1e-6);
  EXPECT_EQ(SequenceMask::of(first).defined(), mask.defined());
  EXPECT_EQ(declared.explain().variants, 1) << "masks have the declared sizes of their arguments";
  {
    const RecordingScope recorded;
    check("recorded", model->encode(x));
  }
}

TEST_P(CarriedMasks, InVectorizedMapAndStrategies) {
  const Model<Net> model(Net{.layer = row.layer});
  const Tensor x = words(), want = model(x), mask = model.compute_mask(x);
  const auto near = [&](const char* way, const Tensor& y) {
    ASSERT_EQ(y.shape(), want.shape()) << way;
    EXPECT_LE(reduce_max(abs(y - want)).item(), 1e-6) << way;
  };
  const auto with_mask = [&](const char* way, const Tensor& y) {
    near(way, y);
    const Tensor own = SequenceMask::of(y);
    ASSERT_EQ(own.defined(), mask.defined()) << way;
    if (mask.defined()) { EXPECT_TRUE(bitwise_equal(own, mask)) << way; }
  };
  const auto encode = [&](const Tensor& w) { return model->encode(w); };
  const Tensor both = vectorized_map(encode, stack({x, reverse(x, {0})}));
  near("vectorized_map", both[0]);
  near("vectorized_map, reversed", reverse(both[1], {0}));
  const Tensor stacked = model->look(stack({x, x}));
  near("rows of masked tensors", vectorized_map([&](const Tensor& e) { return model->layer(e); }, stacked)[1]);
  MirroredStrategy strategy({.devices = {cpu(0), cpu(1)}});
  with_mask("strategy", strategy.run(encode, x).concat());
  with_mask("masked arguments", strategy.run([&](Tensor e) { return model->layer(e); }, model->look(x)).concat());
  MirroredStrategy uneven({.devices = {cpu(0), cpu(1)}, .micro_shards = 3});
  const PerReplica<Tensor> parts = uneven.run(encode, x);
  with_mask("shards of two lengths", parts.concat());
  with_mask("replica by replica", joined_rows({parts[0], parts[1]}));
}

TEST_P(CarriedMasks, InPartsOfABatch) {
  const Model<Net> model(Net{.layer = row.layer});
  const Tensor x = words(), want = model(x), mask = model.compute_mask(x), embedded = model->look(x);
  const auto check = [&](const char* way, const Tensor& y) {
    ASSERT_EQ(y.shape(), want.shape()) << way;
    EXPECT_LE(max_abs_difference(y, want), 1e-6) << way;
    ASSERT_EQ(SequenceMask::of(y).defined(), mask.defined()) << way;
    if (mask.defined()) { EXPECT_TRUE(bitwise_equal(SequenceMask::of(y), mask)) << way; }
  };
  Tensors parts;
  for (const auto& [part] : micro_batches({embedded}, 3)) parts.push_back(model->layer(part));
  check("micro_batches", joined_rows(parts));
  const auto layer = [&](Tensor e) { return model->layer(e); };
  check("map_batches", map_batches(layer, embedded, {.batch_size = 3}));
  check("map_batches, whole", map_batches(layer, embedded, {.batch_size = 8}));
  check("predict", predict(model->layer, embedded, {.batch_size = 3}));
  check("predict, whole", predict(model->layer, embedded));
  MirroredStrategy strategy({.devices = {cpu(0), cpu(1)}});
  check("predict by a strategy", predict(model->layer, embedded, {.batch_size = 3, .strategy = strategy}));
  check("predict of words", predict(model, x, {.batch_size = 3}));
  check("predict of a data set", predict(model, data::from_tensor_slices(x).batch(3)));
}

INSTANTIATE_TEST_SUITE_P(Layers, CarriedMasks, testing::Range(std::size_t{0}, rows().size()), [](const auto& info) {
  std::string name = rows()[info.param].name;
  std::ranges::replace(name, ' ', '_');
  return name;
});

/// The text written to standard error while `work` runs.
template <class Work> std::string said_by(const Work& work) {
  testing::internal::CaptureStderr();
  work();
  return testing::internal::GetCapturedStderr();
}

bool looks_at_places(const Layer& layer) {
  return layer.looks_at_places() ||
         std::ranges::any_of(layer.children(), [](const auto& child) { return looks_at_places(*child); });
}

class LostMasks : public ::testing::Test {
 protected:
  void SetUp() override { set_seed(5); }
  const Tensor words = constant({{3, 5, 1, 0}, {2, 0, 0, 0}});
  Embedding look{9, 4, {.mask_zero = true}};
};

TEST_F(LostMasks, AreSaidOnceByEachLayerThatLooksAtPlaces) {
  for (const Row& row : rows()) {
    const bool looks = looks_at_places(row.layer.layer_behind());
    if (row.name == "position" || row.name == "reshape") continue;  // its result has another length
    row.layer(look(words));                                         // builds it, which computes waiting ops
    const std::string said = said_by([&] { row.layer(look(words) * 2).to_vector<float>(); });
    EXPECT_EQ(said.find("takes all places") != std::string::npos, looks) << row.name << said;
    if (looks) { expect_says(said, "by `multiply`"); }
    EXPECT_EQ(said_by([&] { row.layer(look(words) * 2); }), "") << row.name;
  }
}

TEST_F(LostMasks, AreNotSaidWhereTheMaskIsThereOrIsGivenOrNeverWas) {
  const Embedding plain(9, 4);
  const Tensor mask = not_equal(words, 0);
  EXPECT_EQ(said_by([&] {
              GRU(3)(look(words));
              GRU(3)(Rescaling(2)(look(words)));
              GRU(3)(Add()(look(words), Dense(4)(look(words))));
              GRU(3)(look(words) * 2, {.mask = mask});
              GRU(3)(plain(words) * 2);
              GRU(3)(Lambda([](const Tensor& e) { return e * 2; })(look(words)));
              const Tensor keys = look(words), weights = softmax(matmul(plain(words), transpose(keys)));
              GRU(3)(matmul(weights, keys));  // as many queries as keys
              GRU(3)(RepeatVector(4)(GRU(3)(look(words))) * 2);
              GlobalAveragePooling1D()(Conv1D(3, 2)(look(words)) * 2);
              MeanSquaredError()(zeros({2}), reduce_mean(GRU(3)(look(words)), {.axis = {-1}}));
              MeanSquaredError()(zeros({2, 4, 1}), Dense(1)(look(words)));
              MeanSquaredError()(zeros({2, 4, 1}), Dense(1)(look(words)) * 2, cast(mask, f32));
            }),
            "");
}

TEST_F(LostMasks, AreSaidInEveryWay) {
  const auto twice = [&](Tensor w) { return look(w) * 2; };
  const auto says = [&](const char* way, const auto& work) {
    EXPECT_NE(said_by(work).find("takes all places"), std::string::npos) << way;
  };
  twice(words);
  says("looked at in between", [&] {
    const Tensor seen = twice(words);
    seen.to_vector<float>();
    GRU(3)(seen + 1);
  });
  GRU a(3), b(3), c(3), d(3);
  says("function", [&] { function([&](Tensor w) { return a(twice(w)); })(words); });
  says("over a border", [&] { b(function([&](Tensor w) { return twice(w); })(words)); });
  says("into a function", [&] { function([&](Tensor e) { return c(e); })(twice(words)); });
  says("vectorized_map", [&] { vectorized_map([&](Tensor w) { return d(twice(w)); }, stack({words, words})); });
  MirroredStrategy strategy({.devices = {cpu(0), cpu(1)}});
  GRU e(3);
  says("strategy", [&] { strategy.run([&](Tensor w) { return e(twice(w)); }, words); });
  says("concat", [&] { GRU(3)(concat({look(words), look(words)}, 1)); });
  says("matmul", [&] { GRU(3)(matmul(look(words), ones({4, 5}))); });
  says("a layer behind", [&] { GRU(3)(Dense(5)(look(words) * 2)); });
  says("a part of the time", [&] { GRU(3)(slice_axis(look(words), 1, 0, 2, "part")); });
  says("rows", [&] { GRU(3)(look(words).rows(0, 1)); });
  says("chosen rows", [&] { GRU(3)(gather(look(words), constant({1}))); });
  says("rows of two", [&] { GRU(3)(concat({look(words), look(words)})); });
  says("parts", [&] {
    for (const auto& [part] : micro_batches({look(words) * 2}, 1)) GRU(3)(part);
  });
  says("map_batches", [&] { GRU(3)(map_batches([&](Tensor w) { return twice(w); }, words, {.batch_size = 1})); });
  says("a declared signature", [&] {
    GRU read(3);
    function([&](Tensor e) { return read(e); }, {.input_signature = {{f32, {any_size, any_size, 4}}}})(twice(words));
  });
  says("results of a strategy", [&] { GRU(3)(strategy.run([&](Tensor w) { return twice(w); }, words).concat()); });
  says("a loss", [&] { MeanSquaredError()(zeros({2, 4, 1}), Dense(1)(look(words)) * 2); });
}

/// As in Keras, a loss leaves out the places that do not count, wherever it is called.
TEST_F(LostMasks, LossesTakeTheMaskOfThePrediction) {
  Sequential model{look, Dense(2)};
  const Tensor y = random::normal({2, 4, 2}), weight = cast(not_equal(words, 0), f32);
  const MeanSquaredError loss;
  const Lambda drop([](const Tensor& x) { return x; });
  const Tensor prediction = model(words), plain = drop(prediction);
  EXPECT_EQ(loss(y, prediction).item(), loss(y, plain, weight).item());
  EXPECT_NE(loss(y, prediction).item(), loss(y, plain).item());
  EXPECT_EQ(loss(y, prediction, weight).item(), loss(y, plain, weight).item());
  EXPECT_EQ(loss(y, prediction, constant({2.0f, 0.5f})).item(),
            loss(y, plain, weight * constant({{2.0f}, {0.5f}})).item());
  const auto step = function([&](Tensor w, Tensor t) { return loss(t, model(w)); });
  EXPECT_EQ(step(words, y).item(), loss(y, prediction).item());
  SGD optimizer({.learning_rate = 0});
  const History history = fit(model, optimizer, loss, data::from_tensor_slices(words, y).batch(2), {.verbose = false});
  EXPECT_FLOAT_EQ(static_cast<float>(history.loss.back()), static_cast<float>(loss(y, prediction).item()));
}

/// Gradients of parts add up to those of the batch, whose masks count.
TEST_F(LostMasks, ArePartsOfTheBatchInAccumulatedGradients) {
  Sequential model{GRU(3, {.return_sequences = true}), Dense(2)};
  const Tensor words = constant({{3, 5, 1, 0}, {2, 0, 0, 0}, {1, 2, 3, 4}}), y = random::normal({3, 4, 2});
  const Tensor embedded = look(words);
  const MeanSquaredError mse;
  const auto loss = [&](Tensor e, Tensor t) { return mse(t, model(e)); };
  model(embedded);
  const Variables weights = model.trainable_variables();
  GradientTape tape;
  const Loss want = loss(embedded, y);
  const Gradients gradients = tape.gradient(want, weights);
  const LossAndGradients parts = accumulated_gradients(loss, weights, {embedded, y}, {.micro_batch = 2});
  Loss by_hand;
  for (const auto& [e, t] : micro_batches({embedded, y}, 2)) by_hand += loss(e, t);
  EXPECT_NEAR(parts.loss.item(), want.item(), 1e-6);
  EXPECT_NEAR(by_hand.item(), want.item(), 1e-6);
  EXPECT_EQ(parts.loss.weight().item(), 8);
  for (std::size_t i = 0; i < gradients.size(); ++i)
    EXPECT_LE(max_abs_difference(parts.gradients[i], gradients[i]), 1e-6);
}

TEST_F(LostMasks, MetricsTakeTheMaskOfThePredictionAsFitDoes) {
  Sequential model{look, Dense(3)};
  const Tensor y = constant({{1, 2, 0, 0}, {2, 0, 0, 0}});
  SparseCategoricalAccuracy by_hand, by_weight;
  const Tensor prediction = model(words), weight = cast(not_equal(words, 0), f32);
  by_hand.update(y, prediction);
  by_weight.update(y, Lambda([](const Tensor& x) { return x; })(prediction), weight);
  EXPECT_EQ(by_hand.result(), by_weight.result());
  by_hand.update(y, prediction, weight);
  EXPECT_EQ(by_hand.result(), by_weight.result());
  const Evaluation found =
      evaluate(model, SparseCategoricalCrossentropy(from_logits), data::from_tensor_slices(words, y).batch(2),
               {.metrics = {SparseCategoricalAccuracy()}});
  EXPECT_EQ(found.metrics[0].second, by_weight.result());
}

/// Bodies of calls, branches and loops see the masks of what they capture and take; results have theirs, or have lost
/// them.
TEST_F(LostMasks, GoThroughBodies) {
  const Tensor e = look(words), mask = not_equal(words, 0);
  const Dense dense(4);
  const GRU gru(3);
  const Lambda drop([](const Tensor& x) { return x * 1; });
  const Tensor want = gru(e);
  const auto has_mask = [&](const char* way, const Tensor& y) {
    ASSERT_TRUE(SequenceMask::of(y).defined()) << way;
    EXPECT_TRUE(bitwise_equal(SequenceMask::of(y), mask)) << way;
  };
  const auto reads = [&](const char* way, const Tensor& y) {
    EXPECT_LE(max_abs_difference(y, want), 1e-6) << way;
    EXPECT_FALSE(SequenceMask::is_lost(y)) << way;
  };
  reads("recompute_grad", recompute_grad([&](Tensor x) { return gru(x); })(e));
  reads("cond", cond(constant(true), [&] { return gru(e); }, [&] { return gru(e) * 2; }));
  reads("jvp", jvp([&](const Tensor& x) { return gru(x); }, e, ones_like(e)).first);
  reads("vjp", vjp([&](const Tensor& x) { return gru(x); }, e).first);
  const auto with_pullback = [&](Tensor x) { return std::pair{gru(x), [&](const Tensor&) { return zeros_like(e); }}; };
  reads("custom_gradient", custom_gradient(with_pullback)(e));
  has_mask("recompute_grad", recompute_grad([&](Tensor x) { return dense(x); })(e));
  has_mask("made in recompute_grad", recompute_grad([&](Tensor x) { return look(cast(x, i32)); })(cast(words, f32)));
  has_mask("custom_gradient",
           custom_gradient([&](Tensor x) { return std::pair{dense(x), [](const Tensor& dy) { return dy; }}; })(e));
  has_mask("cond", cond(constant(true), [&] { return dense(e); }, [&] { return dense(dense(e)); }));
  EXPECT_TRUE(SequenceMask::is_lost(cond(constant(true), [&] { return dense(e); }, [&] { return e * 1; })));
  EXPECT_TRUE(SequenceMask::is_lost(recompute_grad([&](Tensor x) { return x * 2; })(e)));
  EXPECT_FALSE(SequenceMask::is_lost(recompute_grad([&](Tensor x) { return drop(x); })(e)));
  const GRU steps(4, {.return_sequences = true}), repeats(4, {.return_sequences = true});
  const auto step = [&](Tensor state, Tensor) { return std::pair{steps(state), reduce_sum(state)}; };
  expect_says(said_by([&] { scan(step, e, zeros({2})); }), "takes all places");
  const auto goes_on = [](Tensor state) { return reduce_sum(state) > 1e9; };
  expect_says(said_by([&] { while_loop(goes_on, [&](Tensor state) { return repeats(state); }, e); }),
              "takes all places");
}

TEST_F(LostMasks, AreThoseOfExamplesInGradientsOfExamples) {
  const GRU gru(3);
  const Tensor e = look(words);
  const auto losses = [&](Tensor x) { return reduce_sum(gru(x), {.axis = {1}}); };
  gru(e);
  const Variables weights = gru.trainable_variables();
  GradientTape tape;
  const Gradients whole = tape.gradient(Loss::of(reduce_sum(losses(e))), weights);
  for (const std::size_t max_bytes : {std::size_t{0}, std::size_t{1} << 20}) {
    const PerExampleGradients each = per_example_gradients(losses, weights, {e}, {.max_bytes = max_bytes});
    for (std::size_t i = 0; i < weights.size(); ++i)
      EXPECT_LE(max_abs_difference(reduce_sum(each[weights[i]], {.axis = {0}}), whole[i]), 1e-5);
  }
  const Tensor rows = batch_jacobian([&](const Tensor& x) { return gru(x); }, e);
  EXPECT_EQ(reduce_max(abs(rows[1][0][1])).item(), 0) << "a place that does not count";
}

/// A Variable is a value: it has no mask, within functions and outside.
TEST_F(LostMasks, AreNotKeptByVariables) {
  Variable first(look(words), "first"), later(zeros({2, 4, 4}), "later"), traced(zeros({2, 4, 4}), "traced");
  later.assign(look(words));
  function([&](Tensor e) { traced.assign(e); })(look(words));
  for (const Variable* each : {&first, &later, &traced}) {
    EXPECT_FALSE(SequenceMask::of(each->value()).defined()) << each->name();
    EXPECT_TRUE(bitwise_equal(each->value(), look(words))) << each->name();
  }
  expect_says(said_by([&] { GRU(3)(later.value()); }), "takes all places");
}

TEST_F(LostMasks, AreFreedWithTheirTensors) {
  const GRU read(3, {.return_sequences = true});
  const auto run = [&] {
    for (int i = 0; i < 50; ++i) {
      read(look(words)).to_vector<float>();
      (look(words) * 2).to_vector<float>();
      (void)look(words);
    }
  };
  run();
  const std::size_t before = memory_use().live_bytes;
  run();
  EXPECT_EQ(memory_use().live_bytes, before);
}

}  // namespace
}  // namespace gradus::carried_masks_test
