/// Masks where several ways of dividing a batch meet: shards, micro-batches, sample weights, metrics, losses over whole
/// sequences. However a batch is divided, the places that count are those of the whole.
#include <gtest/gtest.h>
#include "gradus/base/rooms.h"
#include "gradus/gradus.h"
#include "gradus/graph/mask.h"

namespace gradus::masks_of_shards_test {
namespace {

class MasksOfShards : public ::testing::Test {
 protected:
  void SetUp() override { set_seed(5); }
  const Tensor words = constant({{3, 5, 1, 0}, {2, 0, 0, 0}, {1, 2, 3, 4}, {7, 0, 0, 0}, {5, 6, 0, 0}});
  const Tensor counts = not_equal(words, 0);
  Embedding look{9, 4, {.mask_zero = true}};
  const MirroredStrategy uneven{{.devices = {cpu(0), cpu(1)}, .micro_shards = 3}};  // of 5 rows: 2, 2, 1
  const MirroredStrategy halves{{.devices = {cpu(0), cpu(1)}}};
};

TEST_F(MasksOfShards, InAccumulatedGradients) {
  const Sequential head{GRU(3, {.return_sequences = true}), Dense(2)};
  const Tensor y = random::normal({5, 4, 2}), e = look(words);
  const MeanSquaredError mse;
  head(e);
  const Variables weights = head.trainable_variables();
  const auto [loss, gradients] = value_and_gradient([&] { return mse(y, head(e)); }, weights);
  const auto by_parts = [&](Tensor x, Tensor t) {
    const auto one = [&](Tensor xs, Tensor ts) { return mse(ts, head(xs)); };
    const auto [sum, all] = accumulated_gradients(one, weights, {x, t}, {.micro_batch = 1});
    return std::pair{sum, all};
  };
  const auto check = [&](const char* way, const auto& found) {
    EXPECT_NEAR(found.first.item(), loss.item(), 1e-6) << way;
    for (std::size_t i = 0; i < gradients.size(); ++i)
      EXPECT_LE(max_abs_difference(found.second[i], gradients[i]), 1e-6) << way;
  };
  check("lazily", by_parts(e, y));
  check("function", function(by_parts)(e, y));
  check("signature", function(by_parts, {.input_signature = {{f32, {5, 4, 4}}, {f32, {5, 4, 2}}}})(e, y));
  check("strategy", halves.run(by_parts, e, y));
}

TEST_F(MasksOfShards, BesideSampleWeightsAndMetrics) {
  const Tensor y = random::normal({5, 4, 2}), labels = argmax(y);
  Sequential model{look, Dense(2)};
  const Tensor each = mean_squared_error(y, model(words)), mask = cast(counts, f32);
  const MeanSquaredError loss;
  const Tensor of_rows = constant({1.0f, 2.0f, 0.0f, 1.0f, 3.0f}), of_places = random::uniform({5, 4});
  for (const Tensor& weight : {of_rows, of_places}) {
    const Tensor joint = mask * (weight.shape().rank() == 1 ? expand_dims(weight, 1) : weight);
    const double want = (reduce_sum(each * joint) / reduce_sum(joint)).item();
    const auto rows = data::from_tensor_slices(words, y, weight);
    EXPECT_NEAR(loss(y, model(words), weight).item(), want, 1e-5);
    for (const std::int64_t batch : {2, 5}) {
      EXPECT_NEAR(evaluate(model, loss, rows.batch(batch), {.sample_weight = true}).loss, want, 1e-5);
      EXPECT_NEAR(evaluate(model, loss, rows.batch(batch), {.sample_weight = true, .strategy = uneven}).loss, want,
                  1e-5);
      for (const std::int64_t micro_batch : {0, 2}) {
        SGD optimizer({.learning_rate = 0});
        const History history = fit(model, optimizer, loss, rows.batch(batch),
                                    {.sample_weight = true, .micro_batch = micro_batch, .verbose = false});
        EXPECT_NEAR(history.loss[0], want, 1e-5);
      }
    }
  }
  const double right =
      reduce_sum(cast(equal(argmax(model(words)), labels), f32) * mask).item() / reduce_sum(mask).item();
  SparseCategoricalAccuracy lazily, traced, divided;
  lazily.update(labels, model(words));
  function([&](Tensor w, Tensor t) { traced.update(t, model(w)); })(words, labels);
  uneven.run([&](Tensor w, Tensor t) { divided.update(t, model(w)); }, words, labels);
  for (const Metric* metric :
       {static_cast<const Metric*>(&lazily), static_cast<const Metric*>(&traced), static_cast<const Metric*>(&divided)})
    EXPECT_NEAR(metric->result(), right, 1e-6);
}

/// Padding has no part in CTC, however the batch is divided.
TEST_F(MasksOfShards, OfWholeSequences) {
  const Tensor y = constant({{1, 2}, {2, 0}, {3, 1}, {2, 0}, {1, 3}}), padded = concat({words, zeros({5, 2}, i32)}, 1);
  Sequential model{look, GRU(5, {.return_sequences = true}), Dense(4)};
  const CTC loss;
  const auto of = [&](Tensor w, Tensor t) { return loss(t, model(w)); };
  const double want = of(padded, y).item();
  EXPECT_NEAR(of(words, y).item(), want, 1e-5);
  const auto traced = function(of, {.input_signature = {{i32, {any_size, any_size}}, {i32, {any_size, any_size}}}});
  EXPECT_NEAR(traced(padded, y).item(), want, 1e-5);
  EXPECT_NEAR(traced(words, y).item(), want, 1e-5);
  EXPECT_NEAR(uneven.run(of, padded, y).item(), want, 1e-5);
  for (const std::int64_t micro_batch : {0, 2}) {
    SGD optimizer({.learning_rate = 0});
    const History history = fit(model, optimizer, loss, data::from_tensor_slices(padded, y).batch(5),
                                {.micro_batch = micro_batch, .verbose = false});
    EXPECT_NEAR(history.loss[0], want, 1e-4);
  }
}

TEST_F(MasksOfShards, InResults) {
  const PerReplica<Tensor> fewer = uneven.run([&](Tensor w) { return look(w); }, words.rows(0, 2));
  EXPECT_TRUE(bitwise_equal(SequenceMask::of(fewer.concat()), counts.rows(0, 2))) << "a shard without rows";
  const auto [masked, sum] = uneven.run([&](Tensor w) { return std::pair{look(w), reduce_sum(look(w))}; }, words);
  EXPECT_TRUE(bitwise_equal(SequenceMask::of(masked.concat()), counts));
  EXPECT_FALSE(SequenceMask::of(sum.concat()).defined());
  const PerReplica<Tensor> common = halves.run([&](Tensor) { return look(words); }, words);
  EXPECT_TRUE(bitwise_equal(SequenceMask::of(common[1]), counts)) << "the same on all shards";
  const PerReplica<Tensor> squares = halves.run([&](Tensor w) { return look(w); }, words.rows(0, 4));
  EXPECT_FALSE(SequenceMask::of(squares.sum()).defined()) << "a sum";
  const Tensor one = look(words.rows(0, 1));
  const Dropout drop(0.5);
  const auto noise = [&](Tensor) { return drop(one, training); };
  const Tensor noisy = halves.run(noise, words.rows(0, 2)).concat();  // one mask, and other values on each shard
  EXPECT_TRUE(bitwise_equal(SequenceMask::of(noisy), concat({counts.rows(0, 1), counts.rows(0, 1)})));
}

}  // namespace
}  // namespace gradus::masks_of_shards_test
