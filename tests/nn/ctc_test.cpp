/// ctc_loss and ctc_decode: against Keras, whose values keras/make_ctc.py prints, and against all labelings.
#include <gtest/gtest.h>
#include <cmath>
#include <limits>
#include <map>
#include "gradus/gradus.h"
#include "tests/errors.h"

namespace gradus::ctc_test {
namespace {

using Labels = std::vector<std::int32_t>;

/// [3, 6, 4]
Tensor counted_logits(DType dtype = f32) {
  const Tensor i = range(72);
  return reshape(cast(mod(i * i * 7 + i * 3, 11), dtype) * 0.25, {3, 6, 4});
}

void expect_near(const Tensor& got, const std::vector<double>& want, double tolerance) {
  const std::vector<double> values = cast(got, f64).to_vector<double>();
  ASSERT_EQ(values.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(values[i], want[i], tolerance) << i;
}

TEST(CtcLoss, HasTheValuesOfKeras) {
  const Tensor lengths = constant({3, 2, 1}), steps = constant({6, 5, 4});
  const Tensor target = constant({{1, 2, 1}, {3, 3, 0}, {2, 0, 0}});
  const std::vector<double> first{3.9233357906341553, 6.207757472991943, 3.1415061950683594};
  expect_near(ctc_loss(target, counted_logits(), lengths, steps), first, 2e-6);
  expect_near(
      ctc_loss(constant({{1, 2, 1}, {0, 0, 2}, {2, 1, 0}}), counted_logits(f64), lengths, steps, {.mask_index = 3}),
      {4.061788082122803, 6.73307466506958, 3.784027576446533}, 2e-6);
  auto compiled = function([](Tensor y, Tensor x, Tensor m, Tensor n) { return ctc_loss(y, x, m, n); });
  for (int call = 0; call < 2; ++call) expect_near(compiled(target, counted_logits(), lengths, steps), first, 2e-6);
}

TEST(CtcLoss, StepsThatDoNotCountHaveNoGradient) {
  const Tensor x = counted_logits(f64);
  const auto loss = [](const Tensor& logits) {
    return reduce_sum(
        ctc_loss(constant({{1, 2, 1}, {3, 3, 0}, {2, 0, 0}}), logits, constant({3, 2, 1}), constant({6, 5, 4})));
  };
  const Tensor slope = gradient(loss, x);
  EXPECT_EQ(reduce_max(abs(slope(2, slice(4, end)))).item(), 0);
  EXPECT_GT(reduce_min(reduce_max(abs(slope(2, slice(4))), {.axis = {1}})).item(), 0);
  const double step = 1e-5;
  for (const int k : {0, 5, 23}) {
    const Tensor moved = reshape(one_hot(constant(k), 72, f64) * step, x.shape());
    const double difference = (loss(x + moved).item() - loss(x - moved).item()) / (2 * step);
    EXPECT_NEAR(reshape(slope, {72})[k].item(), difference, 1e-8) << k;
  }
}

struct Decoding {
  CtcDecodeOptions options;
  Labels labels;               // [paths, 3, 6]
  std::vector<double> scores;  // [3, paths]
};

std::vector<Decoding> decodings_of_keras() {
  constexpr auto beam_search = CtcStrategy::beam_search;
  return {
      {{}, {1, 2, 3, -1, -1, -1, 1, 2, 1, -1, -1, -1, 2, -1, -1, -1, -1, -1}, {-14, -10.5, -4}},
      {{.merge_repeated = false}, {1, 2, 3, 3, -1, -1, 1, 2, 2, 1, -1, -1, 2, -1, -1, -1, -1, -1}, {-14, -10.5, -4}},
      {{.mask_index = 3}, {1, 2, 0, -1, -1, -1, 1, 2, 0, 1, -1, -1, 2, 0, -1, -1, -1, -1}, {-14, -10.5, -4}},
      {{.merge_repeated = false, .mask_index = 3},
       {1, 2, 0, 0, -1, -1, 1, 2, 2, 0, 1, -1, 2, 0, -1, -1, -1, -1},
       {-14, -10.5, -4}},
      {{.strategy = beam_search, .beam_width = 3, .top_paths = 3},
       {1, 2,  3,  -1, -1, -1, 1,  2,  1,  -1, -1, -1, 2, -1, -1, -1, -1, -1, 1,  3,  -1, -1, -1, -1, 1,  2,  3,
        1, -1, -1, 1,  -1, -1, -1, -1, -1, 1,  2,  1,  3, -1, -1, 1,  2,  3,  -1, -1, -1, -1, -1, -1, -1, -1, -1},
       {-2.1474883556365967, -2.8305535316467285, -3.2263784408569336, -2.140064239501953, -2.483821153640747,
        -2.9251277446746826, -0.8458433747291565, -1.727907657623291, -1.8799159526824951}},
      {{.strategy = beam_search, .beam_width = 50, .top_paths = 3},
       {1,  2,  3,  -1, -1, -1, 1,  2,  1,  -1, -1, -1, 2, -1, -1, -1, -1, -1, 1, 3,  -1, -1, -1, -1, 2,  1,  -1,
        -1, -1, -1, 1,  -1, -1, -1, -1, -1, 1,  2,  1,  3, -1, -1, 1,  2,  3,  1, -1, -1, -1, -1, -1, -1, -1, -1},
       {-1.8153469562530518, -2.463963508605957, -2.793084144592285, -1.7733012437820435, -2.268754005432129,
        -2.3229751586914062, -0.8458433747291565, -1.727907657623291, -1.8799159526824951}},
      {{.strategy = beam_search, .beam_width = 3, .top_paths = 3, .mask_index = 3},
       {1,  2,  0,  -1, -1, -1, 1,  2,  1,  -1, -1, -1, 2, 0,  -1, -1, -1, -1, 1, 0,  -1, -1, -1, -1, 2,  1,  -1,
        -1, -1, -1, 0,  -1, -1, -1, -1, -1, 1,  2,  0,  1, -1, -1, 1,  2,  0,  1, -1, -1, 1,  0,  -1, -1, -1, -1},
       {-2.218088388442993, -2.6578738689422607, -2.719442367553711, -2.5563249588012695, -2.6104400157928467,
        -2.912128210067749, -1.1299159526824951, -1.8010262250900269, -1.8799159526824951}},
      {{.strategy = beam_search, .beam_width = 50, .top_paths = 3, .mask_index = 3},
       {1,  0,  -1, -1, -1, -1, 1,  2,  1,  -1, -1, -1, 2,  0,  -1, -1, -1, -1, 1, 2,  0,  -1, -1, -1, 2,  1,  -1,
        -1, -1, -1, 0,  -1, -1, -1, -1, -1, 1,  0,  1,  -1, -1, -1, 1,  2,  0,  1, -1, -1, 1,  0,  -1, -1, -1, -1},
       {-2.1583337783813477, -2.1769652366638184, -2.490161895751953, -1.9870314598083496, -2.201002597808838,
        -2.361130952835083, -1.1299159526824951, -1.3560069799423218, -1.8799159526824951}},
  };
}

TEST(CtcDecode, HasTheLabelsAndScoresOfKeras) {
  const Tensor x = counted_logits(), lengths = constant({6, 5, 2});
  for (const Decoding& each : decodings_of_keras()) {
    SCOPED_TRACE(text("beams ", each.options.beam_width, ", blank ", each.options.mask_index));
    const CtcDecoded found = ctc_decode(x, lengths, each.options);
    EXPECT_EQ(found.decoded.to_vector<std::int32_t>(), each.labels);
    expect_near(found.scores, each.scores, 4e-6);
    auto compiled = function([&](Tensor logits, Tensor n) {
      const CtcDecoded decoded = ctc_decode(logits, n, each.options);
      return std::tuple{decoded.decoded, decoded.scores};
    });
    for (int call = 0; call < 2; ++call) {
      const auto [labels, scores] = compiled(x, lengths);
      EXPECT_TRUE(bitwise_equal(labels, found.decoded));
      EXPECT_TRUE(bitwise_equal(scores, found.scores));
    }
  }
}

/// The log probability of each labeling of a row, by all alignments.
std::map<Labels, double> all_labelings(const std::vector<double>& p, std::int64_t time, std::int64_t classes) {
  std::map<Labels, double> found;
  for (std::int64_t path = 0; path < static_cast<std::int64_t>(std::pow(classes, time)); ++path) {
    Labels labels;
    double probability = 1;
    std::int64_t rest = path, before = 0;
    for (std::int64_t t = 0; t < time; ++t, rest /= classes) {
      const std::int64_t now = rest % classes;
      probability *= p[static_cast<std::size_t>(t * classes + now)];
      if (now != 0 && now != before) labels.push_back(static_cast<std::int32_t>(now));
      before = now;
    }
    found[labels] += probability;
  }
  return found;
}

TEST(CtcDecode, FindsEveryLabelingOnceIfBeamsSuffice) {
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    const Tensor x = random::normal({1, 5, 3}, {.stddev = 2, .dtype = f64, .seed = seed});
    const auto known = all_labelings(softmax(x).to_vector<double>(), 5, 3);
    const auto count = static_cast<std::int64_t>(known.size()) + 4;
    const CtcDecoded found =
        ctc_decode(x, constant({5}), {.strategy = CtcStrategy::beam_search, .beam_width = count, .top_paths = count});
    const std::vector<double> scores = found.scores.to_vector<double>();
    std::map<Labels, double> seen;
    for (std::int64_t k = 0; k < count; ++k) {
      Labels labels = found.decoded(k, 0).to_vector<std::int32_t>();
      std::erase(labels, -1);
      const double score = scores[static_cast<std::size_t>(k)];
      if (k > 0) { EXPECT_LE(score, scores[static_cast<std::size_t>(k - 1)]); }
      if (std::isinf(score)) continue;
      EXPECT_TRUE(seen.emplace(labels, score).second) << "found twice";
      ASSERT_TRUE(known.contains(labels));
      EXPECT_NEAR(score, std::log(known.at(labels)), 1e-12);
    }
    EXPECT_EQ(seen.size(), known.size());
  }
}

TEST(CtcDecode, ScoresHaveGradientsAndRowsAreTheirOwn) {
  const CtcDecodeOptions options{.strategy = CtcStrategy::beam_search, .beam_width = 60, .top_paths = 1};
  const Tensor x = counted_logits(f64), lengths = constant({6, 5, 2});
  const CtcDecoded found = ctc_decode(x, lengths, options);
  const Tensor best = where(found.decoded[0] < 0, 0, found.decoded[0]);
  const Tensor count = reduce_sum(cast(found.decoded[0] >= 0, i32), {.axis = {1}});
  EXPECT_LT(reduce_max(abs(found.scores(all, 0) + ctc_loss(best, x, count, lengths))).item(), 1e-12);
  const Tensor slope = gradient([&](const Tensor& a) { return reduce_sum(ctc_decode(a, lengths, options).scores); }, x);
  const Tensor wanted = gradient([&](const Tensor& a) { return -reduce_sum(ctc_loss(best, a, count, lengths)); }, x);
  EXPECT_LT(reduce_max(abs(slope - wanted)).item(), 1e-10);
  const Tensor each = vectorized_map(
      [&](const Tensor& row) { return ctc_decode(expand_dims(row, 0), constant({5}), options).decoded(0, 0); }, x);
  EXPECT_TRUE(bitwise_equal(each, ctc_decode(x, constant({5, 5, 5}), options).decoded[0]));
}

TEST(CtcDecode, SaysWhatIsWrong) {
  const Tensor x = counted_logits(), n = constant({6, 5, 2});
  expect_error<InvalidArgument>([&] { ctc_decode(x[0], n); }, {"ctc_decode", "f32[6,4]", "[batch, time, classes]"});
  expect_error<InvalidArgument>([&] { ctc_decode(x, constant({6, 5})); }, {"sequence_lengths is i32[2]", "f32[3,6,4]"});
  expect_error<InvalidArgument>([&] { ctc_decode(x, n, {.mask_index = 4}); }, {"mask_index 4", "no class"});
  expect_error<InvalidArgument>([&] { ctc_decode(x, n, {.top_paths = 2}); }, {"top_paths is 2", "greedy"});
  expect_error<InvalidArgument>(
      [&] { ctc_decode(x, n, {.strategy = CtcStrategy::beam_search, .beam_width = 2, .top_paths = 3}); },
      {"top_paths is 3", "at most 2", "beam_width"});
  expect_error<InvalidArgument>([&] { ctc_loss(zeros({3, 2}), x, n, n); }, {"ctc_loss", "integer labels"});
  expect_error<InvalidArgument>([&] { ctc_loss(ones({3, 2}, i32), x, constant({1.0}), n); }, {"target_length"});
}

}  // namespace
}  // namespace gradus::ctc_test
