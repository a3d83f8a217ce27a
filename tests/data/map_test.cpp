/// Maps: compiled, in order, the same wherever they run.
#include <gtest/gtest.h>
#include "gradus/base/thread_pool.h"
#include "gradus/graph/context.h"
#include "gradus/function/variable.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "tests/data/readings.h"
#include "tests/threads.h"

namespace gradus::map_test {
namespace {

Tensor square(Tensor n) { return n * n; }

TEST(Map, GivesTensorsPairsTuplesAndArrays) {
  const auto numbers = data::range(6);
  EXPECT_EQ(values(numbers.map(square)), (Numbers{0, 1, 4, 9, 16, 25}));
  const Dataset<2> pairs = numbers.map([](Tensor n) { return std::pair{n, n + 1}; });
  const Dataset<3> triples = pairs.map([](Tensor a, Tensor b) { return std::tuple{a, b, a * b}; });
  const Dataset<2> two = triples.map([](Tensor a, Tensor, Tensor c) { return std::array{c, a}; });
  std::int32_t i = 0;
  for (auto [product, n] : two) {
    EXPECT_EQ(product.item(), i * (i + 1));
    EXPECT_EQ(n.item(), i++);
  }
  EXPECT_EQ(i, 6);
}

TEST(Map, KnowsItsSpecsWithoutReading) {
  int calls = 0;
  const auto mapped = data::from_tensor_slices(numbered_rows(10, 3)).batch(4).map([&](Tensor x) {
    ++calls;
    return std::pair{cast(x, f32) / 2, reduce_sum(x, {.axis = {1}})};
  });
  EXPECT_EQ(mapped.element_spec(), (std::array<Spec, 2>{Spec{f32, {any_size, 3}}, Spec{i32, {any_size}}}));
  EXPECT_EQ(calls, 1);
  for (int epoch = 0; epoch < 3; ++epoch)
    for (auto [x, sums] : mapped) EXPECT_EQ(x.shape()[0], sums.shape()[0]);
  EXPECT_LE(calls, 6)
      << "traced for the spec, and for each of the signatures 4 and 2, the second with open sizes and to "
         "compare, not once an element";
}

TEST(Map, BeforeAndAfterABatchIsTheSame) {
  const auto normalise = [](Tensor x) { return x * 3 - 1; };
  const auto rows = data::from_tensor_slices(numbered_rows(30, 5)).shuffle({.seed = 1});
  const Elements expected = read_all(rows.batch(8).map(normalise));
  EXPECT_EQ(read_all(rows.map(normalise).batch(8)), expected);
  EXPECT_EQ(read_all(rows.map(normalise).batch(8).prefetch()), expected);
  EXPECT_EQ(read_all(rows.batch(8).map(normalise).prefetch()), expected);
  const auto mapped_first = data::from_tensor_slices(numbered_rows(30, 5)).map(normalise).shuffle({.seed = 1});
  EXPECT_EQ(read_all(mapped_first.batch(8)), expected);
}

TEST(Map, DoesNotDependOnThreads) {
  const auto mapped = [](MapOptions options) {
    return data::range(100).map([](Tensor n) { return n * n + 1; }, options).shuffle({.seed = 2}).batch(32);
  };
  const Elements expected = read_all(mapped({.num_parallel_calls = 1}));
  for (const int threads : {1, 2, 3}) {
    const Threads scope(threads);
    for (const int calls : {1, 2, 8, autotune}) {
      EXPECT_EQ(read_all(mapped({.num_parallel_calls = calls})), expected);
      EXPECT_EQ(read_all(mapped({.num_parallel_calls = calls}).prefetch()), expected);
    }
  }
}

TEST(Map, ThatMustKnowTheSizes) {
  const auto mapped = data::from_tensor_slices(numbered_rows(8, 3)).batch(4).map([](Tensor x) {
    return reshape(x, {3 * x.shape()[0] / 2, 2});
  });
  EXPECT_EQ(mapped.first().shape(), (Shape{6, 2}));
}

TEST(Map, SizesComputedOfABatchsVaryWithThem) {
  const auto batches = data::from_tensor_slices(numbered_rows(10, 3)).batch(4);
  const auto sizes_of = [](const auto& mapped) {
    std::vector<std::int64_t> sizes;
    for (const Tensor& x : mapped) sizes.push_back(x.shape()[0]);
    return sizes;
  };
  const auto rows = [](const Tensor& x) {
    const std::int64_t count = x.shape()[0];
    if (count < 0) throw InvalidArgument("a number of rows is needed");
    return count;
  };
  const auto others = batches.map([&](Tensor x) { return range(rows(x) - 1); });
  EXPECT_EQ(others.element_spec()[0].shape, (Shape{any_size}));
  EXPECT_EQ(sizes_of(others), (std::vector<std::int64_t>{3, 3, 1}));
  EXPECT_EQ(sizes_of(batches.map([&](Tensor x) { return zeros({rows(x) / 2 + 1, 2}); })),
            (std::vector<std::int64_t>{3, 3, 2}));
  EXPECT_EQ(sizes_of(batches.map([&](Tensor x) { return zeros({rows(x) % 4}); })),
            (std::vector<std::int64_t>{0, 0, 2}));
  const auto fixed = batches.map([&](Tensor x) { return zeros({rows(x) * 0 + 5, 2}); });
  EXPECT_EQ(fixed.element_spec()[0].shape, (Shape{5, 2}));
}

TEST(Map, ThatMustKnowTheSizesTakesASmallerLastBatch) {
  const auto batches = data::from_tensor_slices(numbered_rows(10, 3)).batch(4);
  const auto counted = batches.map([](Tensor x) {
    if (x.shape()[0] < 0) throw InvalidArgument("a number of rows is needed");
    return std::pair{x + x.shape()[0], reduce_sum(x, {.axis = {0}})};
  });
  EXPECT_EQ(counted.element_spec(), (std::array<Spec, 2>{Spec{i32, {any_size, 3}}, Spec{i32, {3}}}));
  for (const auto& dataset : {counted, counted.prefetch()}) {
    std::vector<std::int64_t> rows;
    auto given = batches.begin();
    for (auto [x, sums] : dataset) {
      rows.push_back(x.shape()[0]);
      EXPECT_TRUE(bitwise_equal(x, *given + rows.back()));
      EXPECT_TRUE(bitwise_equal(sums, reduce_sum(*given, {.axis = {0}})));
      ++given;
    }
    EXPECT_EQ(rows, (std::vector<std::int64_t>{4, 4, 2}));
  }
}

TEST(Map, ReadsTheVariablesOfThisMoment) {
  Variable offset(constant(10));
  const auto mapped = data::range(3).map([&](Tensor n) { return n + offset; });
  EXPECT_EQ(values(mapped), (Numbers{10, 11, 12}));
  offset.assign(constant(20));
  EXPECT_EQ(values(mapped.prefetch()), (Numbers{20, 21, 22}));
}

TEST(Map, MayNotAssign) {
  Variable seen(constant(0));
  EXPECT_EQ(message_of<InvalidArgument>([&] {
              data::range(3).map([&](Tensor n) {
                seen.assign_add(constant(1));
                return n;
              });
            }),
            text("map: its function assigns variable ", seen.name(),
                 "; a map may read variables, but elements are made in any order and more than once"));
}

TEST(Map, RandomNumbersBelongToTheElement) {
  set_seed(3);
  const auto noisy = data::range(40).map([](Tensor n) { return n * 1000 + random::integers({}, {.high = 1000}); });
  const Numbers first = values(noisy), second = values(noisy);
  EXPECT_NE(first, second) << "every epoch has its own";
  EXPECT_NE(first[1] - 1000, first[2] - 2000);
  EXPECT_EQ(values(noisy.epoch(0)), first);
  EXPECT_EQ(values(noisy.epoch(0).prefetch()), first);
  EXPECT_EQ(values(noisy.skip(30)), Numbers(first.begin() + 30, first.end()));
  EXPECT_EQ(values(noisy.batch(16)), first);
  const RecordingScope tape;
  EXPECT_EQ(values(noisy.epoch(0)), first);
}

TEST(Map, ElementsAreComputed) {
  for (const auto& dataset : {data::range(4).map(square), data::range(4).map(square).prefetch()})
    for (auto x : dataset) {
      EXPECT_TRUE(x.node()->is_leaf());
      EXPECT_TRUE(x.node()->value);
    }
}

TEST(Map, MayBeReadInsideATrace) {
  const auto squares = data::range(4).map(square);
  const auto add_second = function([&](Tensor x) { return x + squares.skip(2).first(); });
  EXPECT_EQ(add_second(constant(5)).item(), 9);
}

TEST(Map, FailuresNameTheElement) {
  const auto uneven = data::range(5).batch(2).map([](Tensor x) { return reshape(x, {2, 1}); });
  for (const auto& dataset : {uneven, uneven.prefetch()}) {
    auto next = dataset.begin();
    ++next;
    EXPECT_EQ((*next).shape(), (Shape{2, 1}));
    ++next;
    const std::string message = message_of<InvalidArgument>([&] { *next; });
    EXPECT_EQ(message.substr(0, 28), "map, element 2 of epoch 0: r") << message;
    EXPECT_TRUE(next == dataset.end());
  }
}

TEST(Map, TheFirstFailureIsToldWhateverTheThreads) {
  const Tensor table = numbered_rows(10, 2);
  const auto rows = data::range(64).map([&](Tensor n) { return gather(table, n); }).batch(64);
  for (const int threads : {1, 2, 3}) {
    const Threads scope(threads);
    EXPECT_EQ(message_of<Error>([&] { rows.first(); }).substr(0, 27), "map, element 10 of epoch 0:") << threads;
    EXPECT_EQ(message_of<Error>([&] { *rows.prefetch().begin(); }).substr(0, 27), "map, element 10 of epoch 0:");
  }
}

}  // namespace
}  // namespace gradus::map_test
