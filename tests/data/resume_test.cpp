/// Going on in the middle of an epoch, what explain() tells, and maps over all rows at once.
#include <gtest/gtest.h>
#include <chrono>
#include <sstream>
#include <thread>
#include "gradus/base/thread_pool.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/softmax.h"
#include "gradus/tensor/memory.h"
#include "tests/data/readings.h"
#include "tests/threads.h"

namespace gradus::resume_test {
namespace {

Dataset<1> augmented() {
  set_seed(11);
  return data::range(50)
      .shuffle()
      .map([](Tensor n) { return n * 10000 + random::integers({}, {.high = 10000}); })
      .filter([](Tensor n) { return not_equal(mod(n, 3), 0); })
      .shuffle(8)
      .batch(4)
      .prefetch();
}

TEST(Resume, NoElementIsLostOrDoubledAndTheBitsAreTheSame) {
  const auto plain = augmented();
  std::vector<Elements> epochs;
  for (int epoch = 0; epoch < 3; ++epoch) epochs.push_back(read_all(plain));
  EXPECT_NE(epochs[0], epochs[1]);
  // Interrupted again and again: each time a new process would make the same pipeline and go on from the position.
  std::vector<Elements> seen(3);
  Position position;
  for (int run = 0; position.epoch < 3; ++run) {
    const auto dataset = augmented().from(position);
    for (int left = run % 5 + 1; left > 0 && position.epoch < 3;) {
      auto next = dataset.begin();
      for (; next != dataset.end() && left > 0; ++next, --left) {
        seen[static_cast<std::size_t>(next.position().epoch)].push_back(described(*next));
        position = {next.position().epoch, next.position().index + 1};
      }
      if (next == dataset.end()) position = {position.epoch + 1, 0};
    }
  }
  for (std::size_t epoch = 0; epoch < 3; ++epoch) EXPECT_EQ(seen[epoch], epochs[epoch]) << epoch;
}

TEST(Resume, ThreadsDoNotMatter) {
  const Elements expected = read_all(augmented());
  for (const int threads : {1, 2, 3}) {
    const Threads scope(threads);
    EXPECT_EQ(read_all(augmented()), expected) << threads;
  }
}

/// Datasets of interleave that draw seeds for themselves: an order, noise, and a number of their own.
Dataset<1> drawn_by_turns() {
  set_seed(11);
  const auto numbers = [](Tensor n) {
    const Tensor own = n * 100 + random::integers({}, {.high = 100});
    return data::range(5).shuffle().map(
        [own](Tensor i) { return own * 100 + i + random::integers({}, {.high = 20}) * 5; });
  };
  return data::range(4).shuffle().interleave(numbers, {.cycle_length = 3, .block_length = 2}).batch(3);
}

Dataset<1> drawn_by_a_generator() {
  set_seed(11);
  return data::from_generator({i32, {2}},
                              [left = 13]() mutable -> std::optional<Tensor> {
                                if (left-- == 0) return std::nullopt;
                                return random::integers({2}, {.high = 100000});
                              })
      .batch(3);
}

TEST(Resume, WhatIsDrawnWithoutASeedBelongsToTheEpochAndTheElement) {
  for (const auto make : {drawn_by_turns, drawn_by_a_generator}) {
    const auto plain = make();
    const Tensor expected = random::uniform({4});
    const Elements first = read_all(plain), second = read_all(plain);
    EXPECT_NE(first, second);
    for (const auto& dataset : {make(), make().prefetch(), make().prefetch(1)}) {
      EXPECT_EQ(read_all(dataset), first);
      EXPECT_EQ(read_all(dataset), second);
    }
    for (std::int64_t n = 0; n < std::ssize(second); ++n)
      EXPECT_EQ(read_all(make().from({.epoch = 1, .index = n})), tail(second, static_cast<std::size_t>(n))) << n;
    set_seed(11);
    const auto again = make();
    read_all(again.prefetch());
    EXPECT_TRUE(bitwise_equal(random::uniform({4}), expected)) << "what others draw does not depend on who reads";
  }
}

TEST(Explain, CountsElementsAndTime) {
  const auto dataset = data::range(40).map([](Tensor n) { return n + 1; }).batch(8).prefetch();
  EXPECT_EQ(values(dataset).size(), 40u);
  const PipelineExplanation explanation = dataset.explain();
  ASSERT_EQ(explanation.stages.size(), 3u);
  EXPECT_EQ(explanation.stages[0].stage, "batch(8)");
  EXPECT_EQ(explanation.stages[0].elements, 5);
  EXPECT_EQ(explanation.stages[1].stage, "map");
  EXPECT_EQ(explanation.stages[1].elements, 40);
  EXPECT_EQ(explanation.stages[2].stage, "range(40)");
  EXPECT_EQ(explanation.stages[2].depth, 2);
  EXPECT_EQ(explanation.reads, 5);
  EXPECT_GT(explanation.stages[1].seconds, 0);
  std::ostringstream shown;
  shown << explanation;
  EXPECT_NE(shown.str().find("batch(8)"), std::string::npos);
}

std::string shown(const PipelineExplanation& explanation) {
  std::ostringstream out;
  out << explanation;
  return out.str();
}

TEST(Explain, TheReaderWaitsForSlowStages) {
  constexpr int count = 20;
  const auto slow = data::from_generator({i32, {}}, [i = 0]() mutable -> std::optional<Tensor> {
    if (i == count) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    return constant(i++);
  });
  const auto dataset = slow.map([](Tensor n) { return n + 1; }).prefetch(2 * count);
  EXPECT_EQ(values(dataset).size(), static_cast<std::size_t>(count));
  const PipelineExplanation explanation = dataset.explain();
  EXPECT_GT(explanation.readers_waited, 0);
  EXPECT_EQ(explanation.threads_waited, 0) << "there was always room";
  EXPECT_NE(shown(explanation).find("slower than the reader, most of all from_generator"), std::string::npos)
      << shown(explanation);
}

TEST(Explain, StagesWaitForASlowReader) {
  const auto dataset = data::range(20).batch(1).prefetch(1);
  for ([[maybe_unused]] auto x : dataset) std::this_thread::sleep_for(std::chrono::milliseconds(3));
  const PipelineExplanation explanation = dataset.explain();
  EXPECT_GT(explanation.threads_waited, explanation.readers_waited);
  EXPECT_NE(shown(explanation).find("the reader is slower than the stages"), std::string::npos) << shown(explanation);
}

TEST(Explain, NothingIsMadeAheadWithoutPrefetch) {
  const auto dataset = data::range(20);
  EXPECT_EQ(values(dataset).size(), 20u);
  EXPECT_NE(shown(dataset.explain()).find("prefetch() would"), std::string::npos);
}

/// Read one by one, maps are applied one by one; before a batch, to all of its elements at once.
TEST(VectorisedMap, HasTheBitsOfOneByOne) {
  set_seed(5);
  const Tensor rows = random::normal({37, 24}), weights = random::normal({24, 9}), table = random::normal({50, 3});
  const std::vector<std::function<Tensor(Tensor)>> functions{
      [](Tensor x) { return x * 2 + 1; },
      [](Tensor x) { return exp(x) / reduce_sum(exp(x)); },
      [](Tensor x) { return softmax(x) - reduce_mean(x); },
      [&](Tensor x) { return reshape(matmul(reshape(x, {1, 24}), weights), {9}); },
      [&](Tensor x) { return gather(table, cast(abs(x) * 5, i32)); },
      [](Tensor x) { return reduce_max(reshape(x, {4, 6}), {.axis = {0}}); },
      [](Tensor) { return full({3}, 2); },
      [](Tensor x) { return bool(reduce_any(x > 1)) ? x : -x; },
  };
  for (std::size_t i = 0; i < functions.size(); ++i) {
    Dataset<1> mapped = data::from_tensor_slices(rows);
    try {
      mapped = mapped.map([f = functions[i]](Tensor x) { return f(x); });
    } catch (const Error&) { continue; }  // a C++ branch cannot be traced without a value
    std::vector<Tensor> one_by_one;
    for (auto x : mapped) one_by_one.push_back(x);
    for (const std::int64_t size : {2, 5, 37}) {
      std::size_t at = 0;
      for (auto batch : mapped.batch(size))
        for (std::int64_t row = 0; row < batch.shape()[0]; ++row, ++at)
          EXPECT_TRUE(bitwise_equal(batch[row], one_by_one[at])) << "function " << i << ", element " << at;
      EXPECT_EQ(at, one_by_one.size());
    }
  }
}

TEST(VectorisedMap, FailuresStillNameTheElement) {
  const Tensor table = numbered_rows(10, 2);
  const auto rows = data::range(64).map([&](Tensor n) { return gather(table, n); });
  EXPECT_EQ(message_of<Error>([&] { rows.batch(32).first(); }).substr(0, 27), "map, element 10 of epoch 0:");
  EXPECT_EQ(rows.batch(10).first().shape(), (Shape{10, 2}));
}

TEST(Prefetch, StaysWithinItsBytes) {
  const auto sizes = data::from_tensor_slices(numbered_rows(64, 1000)).batch(4);
  EXPECT_EQ(read_all(sizes.prefetch({.max_bytes = 1})), read_all(sizes));
  constexpr std::int64_t one = 1 << 20;
  const auto large = data::range(40).map([](Tensor n) { return full({one / 4}, 1.0) * cast(n, f32); });
  const std::size_t before = memory_use().live_bytes;
  std::size_t most = 0;
  for ([[maybe_unused]] auto x : large.prefetch({.max_bytes = 4 * one})) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    most = std::max(most, memory_use().live_bytes - before);
  }
  EXPECT_LE(most, static_cast<std::size_t>(6 * one)) << "what is ready, what the reader has, and a little";
  EXPECT_THROW(sizes.prefetch({.max_bytes = 0}), InvalidArgument);
  EXPECT_THROW(sizes.prefetch({.buffers = 0}), InvalidArgument);
}

}  // namespace
}  // namespace gradus::resume_test
