/// A strategy of one's own: what its reducer receives, and the compression of docs/distribution.md.
#include <gtest/gtest.h>
#include <map>
#include <set>
#include "gradus/gradus.h"
#include "tests/errors.h"

namespace gradus::own_strategy_test {
namespace {

/// Gradients travel as signs and one scale; the rest is added to the next step's.
class SignsWithFeedback {
 public:
  std::vector<Tensor> operator()(const ReplicaSum& sum, const std::vector<Tensor>& parts) {
    Tensor total;
    for (std::size_t replica = 0; replica < parts.size(); ++replica) {
      const Tensor sent =
          sum.name.starts_with("gradient of ") ? compressed(sum, replica, parts[replica]) : parts[replica];
      total = replica == 0 ? sent : total + sent;
    }
    return std::vector<Tensor>(parts.size(), total);
  }

 private:
  struct Feedback {
    std::int64_t step = -1;
    Tensor before, after;  // the rest of earlier steps; that after this one
  };
  Tensor compressed(const ReplicaSum& sum, std::size_t replica, const Tensor& part) {
    Feedback& rest = feedback_[{sum.name, replica}];
    if (rest.step != sum.step) rest = {sum.step, rest.after, {}};  // else the step asks again
    const Tensor wanted = rest.before.defined() ? part + rest.before : part;
    const Tensor sent = sign(wanted) * reduce_mean(abs(wanted));
    rest.after = wanted - sent;
    return sent;
  }
  std::map<std::pair<std::string, std::size_t>, Feedback> feedback_;
};

std::vector<Device> two_devices() { return {cpu(0), cpu(1)}; }

std::vector<Tensor> plain_sum(const std::vector<Tensor>& parts) {
  return std::vector<Tensor>(parts.size(), parts[0] + parts[1]);
}

TEST(OwnStrategy, ReceivesTheNameShapeTypeAndStepOfEachSum) {
  std::vector<std::string> seen;
  const Strategy strategy(two_devices(), [&](const ReplicaSum& sum, const std::vector<Tensor>& parts) {
    EXPECT_EQ(parts[0].spec(), (Spec{sum.dtype, sum.shape}));
    seen.push_back(text(sum.step, ' ', sum.name, ' ', Spec{sum.dtype, sum.shape}));
    return plain_sum(parts);
  });
  Variable kernel(ones({3, 2}), "dense/kernel");
  Variable bias(zeros({2}), "dense/bias");
  const auto step = function([&](Tensor x) {
    GradientTape tape;
    const Loss loss = Loss::mean(reduce_sum(square(matmul(x, kernel) + bias), {.axis = {1}}));
    const Gradients gradients = tape.gradient(loss, Variables{kernel, bias});
    kernel.assign_sub(0.01 * gradients[kernel]);
    bias.assign_sub(0.01 * gradients[bias]);
    return std::pair{all_reduce_sum(reduce_max(x)), all_reduce_sum(reduce_min(x))};
  });
  for (const std::int64_t rows : {8, 8, 7}) {  // the last one: shards of two lengths
    seen.clear();
    strategy.run(step, random::normal({rows, 3}, {.seed = 1}));
    const std::string number = text(rows == 7 ? 2 : seen[0].starts_with('0') ? 0 : 1);
    std::ranges::sort(seen);
    for (const char* expected : {" gradient of dense/bias f32[2]", " gradient of dense/kernel f32[3,2]", " sum f32[]"})
      EXPECT_EQ(std::ranges::count(seen, number + expected), 1) << expected;
    EXPECT_EQ(std::ranges::adjacent_find(seen), seen.end()) << "a name stands for one sum of a step";
  }
}

/// A branch of C++ cuts the step into programs, and its condition is a program by itself.
TEST(OwnStrategy, ANameStandsForOneSumInAllProgramsOfAStep) {
  std::map<std::pair<std::int64_t, std::string>, std::set<double>> values;
  const Strategy strategy(two_devices(), [&](const ReplicaSum& sum, const std::vector<Tensor>& parts) {
    const std::vector<Tensor> all = plain_sum(parts);
    values[{sum.step, sum.name}].insert(all[0].item());
    return all;
  });
  const auto step = function([](Tensor x) {
    const Tensor most = all_reduce_sum(reduce_max(x));
    Tensor result = all_reduce_sum(reduce_mean(x));
    if (greater(most, 10)) result = result + all_reduce_sum(reduce_min(x));
    if (greater(all_reduce_sum(reduce_sum(x)), 0)) result = result * 2;
    return result + all_reduce_sum(reduce_mean(square(x)));
  });
  for (const float scale : {1.0f, 2.0f, 1.0f, 3.0f})
    for (const std::int64_t rows : {4, 6})
      strategy.run(step, constant(std::vector{1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}).rows(0, rows) * scale);
  EXPECT_GE(values.size(), 8 * 4);
  for (const auto& [key, seen] : values) EXPECT_EQ(seen.size(), 1) << key.first << ' ' << key.second;
}

TEST(OwnStrategy, AddsASumThatTheStepBranchesOn) {
  const Strategy strategy(two_devices(),
                          [](const ReplicaSum&, const std::vector<Tensor>& parts) { return plain_sum(parts); });
  const auto step = function([](Tensor x) {
    if (greater(all_reduce_sum(reduce_sum(x)), 6)) return x * 2;
    return x;
  });
  EXPECT_EQ(strategy.run(step, ones({4})).concat()[0].item(), 1);
  EXPECT_EQ(strategy.run(step, ones({4}) * 2).concat()[0].item(), 4);
  EXPECT_EQ(strategy.run(step, ones({4})).concat()[0].item(), 1);
}

TEST(OwnStrategy, CompressionWithErrorFeedbackOfThePageReachesTheMinimum) {
  const Tensor x = random::normal({64, 5}, {.seed = 3}), truth = random::normal({5, 1}, {.seed = 4});
  const Tensor y = matmul(x, truth);
  const auto loss_after = [&](const Strategy& strategy) {
    Variable w(zeros({5, 1}), "w");
    const auto step = function([&](Tensor xs, Tensor ys) {
      GradientTape tape;
      const Loss loss = Loss::mean(square(matmul(xs, w) - ys));
      w.assign_sub(0.02 * tape.gradient(loss, Variables{w})[w]);
      return loss;
    });
    double loss = 0;
    for (int i = 0; i < 400; ++i) loss = strategy.run(step, x, y).item();
    return loss;
  };
  const Strategy strategy({cpu(0), cpu(1)}, SignsWithFeedback());
  EXPECT_LT(loss_after(strategy), 1e-3);
}

}  // namespace
}  // namespace gradus::own_strategy_test
