/// Stages that carry something from element to element, and functions that branch on what they see.
#include <gtest/gtest.h>
#include <algorithm>
#include <atomic>
#include "gradus/function/variable.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "tests/data/readings.h"
#include "tests/errors.h"
#include "tests/threads.h"

namespace gradus::state_test {
namespace {

TEST(TakeWhile, EndsBeforeTheFirstThatIsNotWanted) {
  const auto below = data::range(10).take_while([](Tensor n) { return n < 5; });
  EXPECT_EQ(values(below), (Numbers{0, 1, 2, 3, 4}));
  EXPECT_EQ(below.cardinality(), std::nullopt);
  EXPECT_EQ(values(data::range(10).take_while([](Tensor n) { return not_equal(mod(n, 4), 3); })), (Numbers{0, 1, 2}))
      << "what comes later is not taken";
  EXPECT_EQ(values(data::range(10).repeat().take_while([](Tensor n) { return n < 7; })), counted(7)) << "it has an end";
  EXPECT_EQ(values(below.repeat(2).batch(3)), (Numbers{0, 1, 2, 3, 4, 0, 1, 2, 3, 4}));
  EXPECT_EQ(values(data::range(3).take_while([](Tensor n) { return n < 5; })), counted(3));
  expect_error<InvalidArgument>([] { data::range(3).take_while([](Tensor n) { return n; }); },
                                {"take_while: the predicate gives i32[]"});
}

TEST(Unique, KeepsTheFirstOfEach) {
  // The documentation of tf.data.Dataset.unique.
  EXPECT_EQ(values(data::from_tensor_slices(tensor_of_numbers({1, 37, 2, 37, 2, 1}, {6})).unique()),
            (Numbers{1, 37, 2}));
  const auto rows = data::from_tensor_slices(tensor_of_numbers({1, 2, 2, 1, 1, 2, 1, 2}, {4, 2})).unique();
  EXPECT_EQ(read_all(rows), (Elements{{1, 2, 1, 2}, {1, 2, 2, 1}}));
  EXPECT_EQ(read_all(rows.from({.epoch = 0, .index = 1})), (Elements{{1, 2, 2, 1}}));
  const auto sizes = data::range(4).batch(3).map([](Tensor x) { return zeros_like(x); }).unique();
  EXPECT_EQ(read_all(sizes), (Elements{{1, 3, 0, 0, 0}, {1, 1, 0}}));
  expect_error<InvalidArgument>([] { data::range(3).map([](Tensor n) { return cast(n, f32); }).unique(); },
                                {"unique: a field is f32[]", "cast"});
}

TEST(Scan, CarriesAState) {
  // The documentation of tf.data.Dataset.scan: 0 1 3 6 10 ...
  const auto sums =
      data::range(10).scan(constant(0), [](Tensor state, Tensor n) { return std::pair{state + n, state + n}; });
  EXPECT_EQ(values(sums), (Numbers{0, 1, 3, 6, 10, 15, 21, 28, 36, 45}));
  EXPECT_EQ(values(sums.prefetch()), values(sums.epoch(0)));
  EXPECT_EQ(values(sums.from({.epoch = 0, .index = 7}).batch(2)), (Numbers{28, 36, 45}));
  const auto fibonacci = data::range(8).scan(std::pair{constant(0), constant(1)}, [](auto state, Tensor) {
    const auto [a, b] = state;
    return std::pair{std::pair{b, a + b}, a};
  });
  EXPECT_EQ(values(fibonacci), (Numbers{0, 1, 1, 2, 3, 5, 8, 13}));
  const auto pairs = data::zip(data::range(3), data::range(3));
  const auto two = pairs.scan(std::array{constant(0), constant(1)}, [](auto state, Tensor a, Tensor b) {
    return std::pair{std::array{state[0] + a, state[1] * 2}, std::array{state[0], state[1] + b}};
  });
  Numbers seen;
  for (auto [a, b] : two) seen.insert(seen.end(), {static_cast<int>(a.item()), static_cast<int>(b.item())});
  EXPECT_EQ(seen, (Numbers{0, 1, 0, 3, 1, 6}));
}

TEST(Scan, OfAStateThatGrows) {
  const auto all_so_far = data::range(4).scan(zeros({0}, i32), [](Tensor seen, Tensor n) {
    const Tensor now = concat({seen, reshape(n, {1})}, 0);
    return std::pair{now, reduce_sum(now)};
  });
  EXPECT_EQ(values(all_so_far), (Numbers{0, 1, 3, 6}));
}

TEST(Scan, DrawsNumbersThatBelongToTheElement) {
  const auto make = [] {
    set_seed(3);
    return data::range(20).scan(constant(0), [](Tensor state, Tensor n) {
      const Tensor next = mod(state * 7 + n + random::integers({}, {.high = 1000}), 1000);
      return std::pair{next, next};
    });
  };
  const auto plain = make();
  const Numbers first = values(plain), second = values(plain);
  EXPECT_NE(first, second);
  EXPECT_EQ(values(make().prefetch()), first);
  EXPECT_EQ(values(make().from({.epoch = 1, .index = 13})), Numbers(second.begin() + 13, second.end()));
}

TEST(Scan, Mistakes) {
  expect_error<InvalidArgument>(
      [] { data::range(3).scan(constant(0), [](Tensor state, Tensor n) { return std::pair{cast(state, f32), n}; }); },
      {"scan: state 0 is i32[] at first, and f32[] after an element"});
  Variable count(constant(0), "count");
  expect_error<InvalidArgument>(
      [&] {
        data::range(3).scan(constant(0), [&](Tensor state, Tensor n) {
          count.assign(count + 1);
          return std::pair{state, n};
        });
      },
      {"scan: its function assigns variable count"});
}

TEST(Reduce, GivesTheLastState) {
  const auto numbers = data::range(5);
  EXPECT_EQ(numbers.reduce(constant(0), [](Tensor sum, Tensor n) { return sum + n; }).item(), 10);
  EXPECT_EQ(numbers.reduce(constant(0), [](Tensor count, Tensor) { return count + 1; }).item(), 5);
  EXPECT_EQ(data::range(0).reduce(constant(7), [](Tensor sum, Tensor n) { return sum + n; }).item(), 7);
  const auto pairs = data::zip(numbers, data::range(9));
  const auto [sum, most] = pairs.reduce(std::pair{constant(0), constant(-1)}, [](auto state, Tensor a, Tensor b) {
    return std::pair{state.first + a * b, maximum(state.second, b)};
  });
  EXPECT_EQ(sum.item(), 0 + 1 + 4 + 9 + 16);
  EXPECT_EQ(most.item(), 4);
  const auto last = [](Tensor, Tensor n) { return n; };
  const auto shuffled = data::range(50).shuffle({.seed = 1});
  const double first = shuffled.reduce(constant(0), last).item();
  EXPECT_EQ(first, values(shuffled.epoch(0)).back());
  EXPECT_EQ(shuffled.reduce(constant(0), last).item(), values(shuffled.epoch(1)).back()) << "it reads the next pass";
  expect_error<InvalidArgument>(
      [&] { numbers.reduce(constant(0), [](Tensor sum, Tensor n) { return cast(sum + n, f32); }); },
      {"reduce, element 0: state 0 was i32[], now f32[]"});
}

TEST(RejectionResample, ReachesTheDistribution) {
  const auto classes = [](Tensor n) { return cast(n >= 1800, i32); };  // 9 of 10 are of class 0
  for (const std::vector<double>& initial : {std::vector<double>{0.9, 0.1}, {}}) {
    const auto even = data::range(2000)
                          .shuffle({.seed = 1})
                          .rejection_resample(classes, {0.5, 0.5}, {.initial_dist = initial, .seed = 2});
    int counts[2] = {};
    Numbers kept;
    for (auto [label, n] : even) {
      ++counts[static_cast<int>(label.item())];
      kept.push_back(static_cast<std::int32_t>(n.item()));
      EXPECT_EQ(label.item(), n.item() >= 1800);
    }
    EXPECT_NEAR(counts[0], 200, 90) << "six standard deviations of what is kept of 1800";
    EXPECT_GT(counts[1], 180) << "all of the rarer class, but where the estimate is still wrong";
    std::ranges::sort(kept);
    EXPECT_EQ(std::ranges::adjacent_find(kept), kept.end()) << "each element at most once";
    const auto first = [&](const Dataset<2>& of) { return values(of.map([](Tensor, Tensor n) { return n; })); };
    EXPECT_EQ(first(even.epoch(0)), first(even.epoch(0).prefetch()));
    const Numbers again = first(even.epoch(1));
    EXPECT_NE(first(even.epoch(0)), again);
    EXPECT_EQ(first(even.from({.epoch = 1, .index = 50})), Numbers(again.begin() + 50, again.end()));
  }
}

TEST(RejectionResample, Mistakes) {
  const auto numbers = data::range(10);
  const auto label = [](Tensor n) { return n; };
  expect_error<InvalidArgument>([&] { numbers.rejection_resample(label, {}); }, {"target_dist is empty"});
  expect_error<InvalidArgument>([&] { numbers.rejection_resample(label, {1, -1}); }, {"target_dist[1]", "got -1"});
  expect_error<InvalidArgument>([&] { numbers.rejection_resample(label, {0, 0}); }, {"all of target_dist are 0"});
  expect_error<InvalidArgument>([&] { numbers.rejection_resample(label, {1, 1}, {.initial_dist = {1}}); },
                                {"initial_dist has 1 classes, target_dist has 2"});
  expect_error<InvalidArgument>([&] { numbers.rejection_resample(label, {1, 1}, {.initial_dist = {1, 0}}); },
                                {"no elements of class 1"});
  expect_error<OutOfRange>([&] { numbers.rejection_resample(label, {1, 1}).first(); },
                           {"element 2 of epoch 0: its class is 2, but target_dist has 2 classes"});
  expect_error<InvalidArgument>([&] { numbers.rejection_resample([](Tensor n) { return cast(n, f32); }, {1, 1}); },
                                {"scalar integer"});
}

TEST(IgnoreErrors, LeavesOutWhatCannotBeMade) {
  const Tensor table = numbered_rows(10, 1);
  const auto looked_up = [&](const Dataset<1>& of) {
    return of.map([table](Tensor n) { return reshape(gather(table, n), {}); });
  };
  const auto indices = data::from_tensor_slices(tensor_of_numbers({3, 12, 4, 11, 13, 9, 10}, {7}));
  EXPECT_EQ(values(looked_up(indices).ignore_errors()), (Numbers{3, 4, 9}));
  EXPECT_EQ(values(looked_up(indices).ignore_errors().batch(2).prefetch()), (Numbers{3, 4, 9}));
  EXPECT_EQ(values(looked_up(indices).ignore_errors().from({.epoch = 0, .index = 2})), (Numbers{9}));
  const auto in_order = indices.filter([](Tensor n) { return not_equal(n, 9); });
  EXPECT_EQ(values(looked_up(in_order).ignore_errors()), (Numbers{3, 4})) << "a map of what comes in order";
  EXPECT_EQ(values(looked_up(indices).batch(2).ignore_errors()), Numbers()) << "whole batches are left out";
  testing::internal::CaptureStderr();
  values(looked_up(indices.take(2)).ignore_errors({.log_warning = true}));
  const std::string written = testing::internal::GetCapturedStderr();
  expect_says(written, "gradus: ignore_errors: an element is left out: map, element 1 of epoch 0: ");
}

TEST(IgnoreErrors, TellsWhatItCannotPass) {
  const auto broken = data::from_generator({i32, {}}, [i = 0]() mutable -> std::optional<Tensor> {
    if (i == 3) throw std::runtime_error("the source is gone");
    return full({}, i++, i32);
  });
  expect_error<std::runtime_error>([&] { values(broken.ignore_errors()); }, {"the source is gone"});
  EXPECT_EQ(values(broken.ignore_errors().take(3)), counted(3));
}

/// Its results in plain C++.
std::int32_t collatz(std::int32_t n) { return n % 2 == 0 ? n / 2 : 3 * n + 1; }
Tensor collatz_of(const Tensor& n) {
  if (bool(equal(mod(n, 2), 0))) return floor_divide(n, 2);
  return 3 * n + 1;
}

TEST(Branches, OnValuesOfAnElement) {
  Numbers expected;
  for (std::int32_t n = 0; n < 40; ++n) expected.push_back(collatz(n));
  const auto mapped = data::range(40).map(collatz_of);
  EXPECT_EQ(mapped.element_spec()[0], (Spec{i32, {}}));
  EXPECT_EQ(values(mapped), expected);
  for (const int threads : {1, 2, 3}) {
    const Threads scope(threads);
    EXPECT_EQ(values(data::range(40).map(collatz_of).batch(7).prefetch()), expected);
  }
  EXPECT_EQ(values(mapped.from({.epoch = 0, .index = 31})), Numbers(expected.begin() + 31, expected.end()));
  EXPECT_EQ(values(data::range(10).filter([](Tensor n) { return bool(n > 4) ? n < 8 : equal(n, 2); })),
            (Numbers{2, 5, 6, 7}));
  const auto scanned = data::range(6).scan(constant(0), [](Tensor state, Tensor n) {
    const Tensor next = bool(state > 4) ? state - 4 : state + n;
    return std::pair{next, next};
  });
  EXPECT_EQ(values(scanned), (Numbers{0, 1, 3, 6, 2, 7}));
}

TEST(Branches, OnBatchesAndElementsOfAnySize) {
  const auto halves = data::range(10).batch(4).map([](Tensor x) { return bool(reduce_any(x > 5)) ? x * 2 : x; });
  EXPECT_EQ(halves.element_spec()[0], (Spec{i32, {any_size}}));
  EXPECT_EQ(values(halves), (Numbers{0, 1, 2, 3, 8, 10, 12, 14, 16, 18}));
}

TEST(Branches, DrawNumbersThatBelongToTheElement) {
  const auto make = [] {
    set_seed(5);
    return data::range(30).map([](Tensor n) {
      if (bool(equal(mod(n, 3), 0))) return n;
      return n * 1000 + random::integers({}, {.high = 1000});
    });
  };
  const auto plain = make();
  const Numbers first = values(plain), second = values(plain);
  EXPECT_NE(first, second);
  EXPECT_EQ(values(make().batch(4).prefetch()), first);
  EXPECT_EQ(values(make().from({.epoch = 1, .index = 17})), Numbers(second.begin() + 17, second.end()));
}

TEST(Branches, Mistakes) {
  expect_error<InvalidArgument>([] { data::range(0).map(collatz_of); },
                                {"map: its function branches in C++", "no element to try", "cond("});
  const auto uneven = data::range(3).map([](Tensor n) { return bool(n > 1) ? reshape(n, {1}) : n; });
  expect_error<InvalidArgument>([&] { values(uneven); }, {"map, element 2 of epoch 0", "i32[1]", "one size and type"});
  Variable count(constant(0), "count");
  expect_error<InvalidArgument>(
      [&] {
        data::range(3).map([&](Tensor n) {
          count.assign(count + 1);
          return bool(n > 1) ? n : -n;
        });
      },
      {"map: its function assigns variable count"});
}

}  // namespace
}  // namespace gradus::state_test
