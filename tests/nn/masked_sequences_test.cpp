/// Losses over whole sequences, and the masks of their predictions.
#include <gtest/gtest.h>
#include <limits>
#include "gradus/base/rooms.h"
#include "gradus/gradus.h"
#include "gradus/graph/mask.h"
#include "tests/errors.h"

namespace gradus::masked_sequences_test {
namespace {

/// The mask of the logits, as lengths or with holes, gives what rows of these steps alone give, in value and gradient.
TEST(Ctc, StepsThatAMaskLeavesOutDoNotExist) {
  const Tensor logits = random::normal({4, 6, 4}, {.dtype = f64, .seed = 1}),
               y = constant({{3, 1}, {2, 0}, {1, 1}, {2, 3}});
  const Tensor mask = constant({{true, true, true, false, false, false},
                                {true, true, true, true, true, true},
                                {false, true, false, true, true, true},
                                {false, false, true, true, false, false}});
  const std::vector<std::vector<std::int64_t>> steps{{0, 1, 2}, {0, 1, 2, 3, 4, 5}, {1, 3, 4, 5}, {2, 3}};
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor counts = broadcast_to(expand_dims(mask, -1), logits.shape()), hidden = where(counts, logits, nan);
  const Tensor found = ctc(y, hidden, {.mask = mask});
  const Tensor slopes = gradient([&](const Tensor& x) { return reduce_sum(ctc(y, x, {.mask = mask})); }, hidden);
  for (std::int64_t row = 0; row < 4; ++row) {
    const auto& at = steps[static_cast<std::size_t>(row)];
    const Tensor places = from_values(at, {static_cast<std::int64_t>(at.size())});
    const auto alone = [&](const Tensor& x) { return reduce_sum(ctc(y.rows(row, row + 1), expand_dims(x, 0))); };
    const Tensor own = gather(logits[row], places);
    EXPECT_NEAR(found[row].item(), alone(own).item(), 1e-12) << row;
    EXPECT_LE(max_abs_difference(gather(slopes[row], places), gradient(alone, own)), 1e-12) << row;
  }
  EXPECT_EQ(max_abs_difference(where(counts, 0, slopes), zeros_like(slopes)), 0);

  // The mask of the prediction, in the function and in the Loss, whose hidden steps may be anything.
  const Tensor prediction = Lambda([](const Tensor& x) { return x; })(hidden);
  SequenceMask::set(prediction, mask);
  EXPECT_NEAR(CTC()(y, prediction).item(), reduce_mean(found).item(), 1e-12);
  GradientTape tape;
  tape.watch(prediction);
  const Tensor of_loss = tape.gradient(CTC()(y, prediction), prediction);
  EXPECT_LE(max_abs_difference(of_loss * 4, slopes), 1e-12);
  const Tensor weight = constant({1.0, 0.0, 2.0, 0.5}, f64);
  EXPECT_NEAR(CTC()(y, prediction, weight).item(), reduce_sum(found * weight).item() / 3.5, 1e-12);
  expect_error<InvalidArgument>([&] { ctc(y, logits, {.mask = mask.rows(0, 3)}); }, {"the mask is", "bool[4,6]"});
  expect_error<InvalidArgument>([&] { CTC({.mask = mask}); }, {"ctc(y, prediction, {.mask = m})"});
}

TEST(Ctc, FitTakesTheMaskOfThePrediction) {
  const Tensor words = constant({{3, 5, 1, 2, 0, 0}, {2, 4, 1, 0, 0, 0}, {1, 2, 3, 4, 5, 6}, {0, 0, 0, 0, 0, 0}});
  const Tensor y = constant({{1, 2}, {2, 0}, {3, 1}, {2, 2}});
  Sequential model{Embedding(9, 4, {.mask_zero = true}), GRU(5, {.return_sequences = true}), Dense(4)};
  const Tensor prediction = model(words);
  const CTC loss;
  double sum = 0;
  for (const auto& [row, length] : {std::pair{0, 4}, {1, 3}, {2, 6}})
    sum += ctc(y.rows(row, row + 1), slice_axis(prediction.rows(row, row + 1), 1, 0, length, "steps")).item();
  EXPECT_NEAR(loss(y, prediction).item(), sum / 3, 1e-5) << "the row without a step is left out";
  const auto data = data::from_tensor_slices(words, y).batch(4);
  EXPECT_NEAR(evaluate(model, loss, data).loss, sum / 3, 1e-5);
  SGD optimizer({.learning_rate = 0.1});
  const History history = fit(model, optimizer, loss, data, {.epochs = 5, .verbose = false});
  EXPECT_LT(history.loss.back(), history.loss.front());
}

/// A loss over whole sequences has no place for a mask, and says so.
TEST(MoreLosses, AMaskThatDoesNotFitIsNamed) {
  const Tensor words = constant({{3, 5, 0}, {2, 0, 0}});
  const Sequential model{Embedding(9, 4, {.mask_zero = true}), Dense(4, sigmoid)};
  expect_error<InvalidArgument>([&] { Dice()(ones({2, 3, 4}), model(words)); }, {"mask of the prediction", "Lambda"});
}

}  // namespace
}  // namespace gradus::masked_sequences_test
