/// Stages that read several datasets, number elements, or go from batches to batches.
#include <gtest/gtest.h>
#include <algorithm>
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "tests/data/readings.h"
#include "tests/errors.h"

namespace gradus::joining_test {
namespace {

Dataset<1> numbers_from(std::int32_t begin, std::int64_t n) {
  return data::range(n).map([begin](Tensor x) { return x + begin; });
}
Dataset<1> of_unknown_length(const Dataset<1>& dataset) {
  return dataset.filter([](Tensor x) { return x >= 0; });
}

TEST(Concatenate, PutsOneBehindTheOther) {
  const auto both = data::range(3).concatenate(numbers_from(10, 2));
  EXPECT_EQ(values(both), (Numbers{0, 1, 2, 10, 11}));
  EXPECT_EQ(both.cardinality(), 5);
  EXPECT_EQ(values(both.batch(2)), (Numbers{0, 1, 2, 10, 11})) << "batches go over the end of the first";
  EXPECT_EQ(values(both.skip(2).take(2)), (Numbers{2, 10}));
  EXPECT_EQ(values(data::range(0).concatenate(both).concatenate(data::range(1))), (Numbers{0, 1, 2, 10, 11, 0}));
  EXPECT_EQ(values(data::range(2).repeat().concatenate(both).take(5)), (Numbers{0, 1, 0, 1, 0}));
  EXPECT_EQ(data::range(2).repeat().concatenate(both).cardinality(), std::nullopt);
  EXPECT_EQ(values(both.concatenate(data::range(2).repeat()).take(8)), (Numbers{0, 1, 2, 10, 11, 0, 1, 0}));
}

TEST(Concatenate, OfWhatIsCountedByReading) {
  const auto known = data::range(3), other = numbers_from(10, 2);
  for (const auto& both : {of_unknown_length(known).concatenate(other), known.concatenate(of_unknown_length(other)),
                           of_unknown_length(known).concatenate(of_unknown_length(other))}) {
    EXPECT_EQ(values(both), (Numbers{0, 1, 2, 10, 11}));
    EXPECT_EQ(values(both.prefetch()), (Numbers{0, 1, 2, 10, 11}));
    EXPECT_EQ(values(both.batch(2)), (Numbers{0, 1, 2, 10, 11}));
    EXPECT_EQ(both.cardinality(), std::nullopt);
    for (std::int64_t n = 0; n <= 5; ++n)
      EXPECT_EQ(read_all(both.from({.epoch = 0, .index = n})), tail(read_all(both), static_cast<std::size_t>(n)));
  }
}

TEST(Concatenate, EpochsAreThoseOfBoth) {
  const auto a = data::range(6).shuffle({.seed = 1}), b = numbers_from(10, 5).shuffle({.seed = 2});
  const auto both = a.concatenate(b);
  for (const std::int64_t epoch : {0, 1, 2}) {
    Numbers expected = values(a.epoch(epoch));
    for (const std::int32_t each : values(b.epoch(epoch))) expected.push_back(each);
    EXPECT_EQ(values(both), expected);
  }
}

TEST(Concatenate, OfOtherSizes) {
  const auto sizes =
      data::from_tensor_slices(numbered_rows(2, 1)).concatenate(data::from_tensor_slices(numbered_rows(1, 2)));
  EXPECT_EQ(sizes.element_spec()[0], (Spec{i32, {any_size}}));
  EXPECT_EQ(read_all(sizes), (Elements{{1, 1, 0}, {1, 1, 1}, {1, 2, 0, 1000000}}));
  const auto whole = data::range(4).batch(2).concatenate(data::range(3).batch(2));
  EXPECT_EQ(whole.unbatch().cardinality(), 7) << "the first ends with a whole batch";
  EXPECT_EQ(values(whole.unbatch()), (Numbers{0, 1, 2, 3, 0, 1, 2}));
  const auto uneven = data::range(3).batch(2).concatenate(data::range(3).batch(2)).unbatch();
  EXPECT_EQ(uneven.cardinality(), std::nullopt);
  EXPECT_EQ(values(uneven), (Numbers{0, 1, 2, 0, 1, 2}));
  expect_error<InvalidArgument>(
      [] { data::range(2).concatenate(data::range(2).map([](Tensor n) { return cast(n, f32); })); },
      {"concatenate: field 0 of dataset 1 is f32[], that of dataset 0 is i32[]"});
  expect_error<InvalidArgument>([] { data::range(2).concatenate(data::range(2).batch(2)); }, {"i32[?]", "i32[]"});
}

TEST(Enumerate, PutsTheNumberFirst) {
  const auto numbered = numbers_from(10, 3).enumerate(5);
  EXPECT_EQ(numbered.element_spec(), (std::array<Spec, 2>{Spec{i64, {}}, Spec{i32, {}}}));
  EXPECT_EQ(numbered.cardinality(), 3);
  std::vector<double> seen;
  for (auto [number, x] : numbered) seen.insert(seen.end(), {number.item(), x.item()});
  EXPECT_EQ(seen, (std::vector<double>{5, 10, 6, 11, 7, 12}));
  const auto [numbers, xs] = numbers_from(10, 4).shuffle({.seed = 1}).enumerate().skip(1).batch(3).first();
  EXPECT_EQ(numbers.to_vector<std::int64_t>(), (std::vector<std::int64_t>{1, 2, 3}));
  const Numbers order = values(numbers_from(10, 4).shuffle({.seed = 1}));
  EXPECT_EQ(xs.to_vector<std::int32_t>(), Numbers(order.begin() + 1, order.end()));
  std::int64_t next = 0;
  for (auto [number, x] : of_unknown_length(data::range(4)).enumerate()) EXPECT_EQ(number.item(), next++);
  EXPECT_EQ(next, 4);
  const auto [number, first] = data::range(5).batch(2).enumerate(-1).first();
  EXPECT_EQ(number.item(), -1);
  EXPECT_EQ(first.shape(), (Shape{2}));
}

TEST(Rebatch, MakesBatchesOfAnotherSize) {
  // tf.data.Dataset.range(7).batch(4).rebatch(3): [0 1 2] [3 4 5] [6]
  const auto again = data::range(7).batch(4).rebatch(3);
  EXPECT_EQ(read_all(again), (Elements{{1, 3, 0, 1, 2}, {1, 3, 3, 4, 5}, {1, 1, 6}}));
  EXPECT_EQ(again.cardinality(), 3);
  EXPECT_EQ(read_all(data::range(7).batch(4).rebatch(3, {.drop_remainder = true})).size(), 2u);
  EXPECT_EQ(read_all(of_unknown_length(data::range(7)).batch(4).rebatch(3)), read_all(again));
  EXPECT_EQ(read_all(again.from({.epoch = 0, .index = 2})), (Elements{{1, 1, 6}}));
  // The documentation of rebatch: range(8).batch(4).rebatch([2, 1, 1]) gives [0 1] [2] [3] [4 5] [6] [7].
  const auto turns = data::range(8).batch(3).rebatch({2, 1, 1});
  EXPECT_EQ(read_all(turns), (Elements{{1, 2, 0, 1}, {1, 1, 2}, {1, 1, 3}, {1, 2, 4, 5}, {1, 1, 6}, {1, 1, 7}}));
  EXPECT_EQ(turns.cardinality(), 6);
  for (const std::int64_t n : {0, 1, 2, 3, 5, 6, 7, 11, 12, 13})
    for (const bool drop : {false, true}) {
      // Sizes 2, 4, 2, 4 ... as long as there are elements.
      Elements expected;
      for (std::int32_t begin = 0; begin < n; begin += expected.size() % 2 ? 2 : 4) {
        Numbers batch;
        const std::int32_t size = expected.size() % 2 ? 4 : 2;
        for (std::int32_t i = begin; i < std::min<std::int64_t>(n, begin + size); ++i) batch.push_back(i);
        if (drop && std::ssize(batch) < size) break;
        batch.insert(batch.begin(), {1, static_cast<std::int32_t>(batch.size())});
        expected.push_back(batch);
      }
      const BatchOptions options{.drop_remainder = drop};
      const auto known = data::range(n).batch(3).rebatch({2, 4}, options);
      EXPECT_EQ(read_all(known), expected) << n;
      EXPECT_EQ(known.cardinality(), std::ssize(expected)) << n;
      EXPECT_EQ(read_all(of_unknown_length(data::range(n)).batch(3).rebatch({2, 4}, options)), expected) << n;
      EXPECT_EQ(read_all(known.skip(1)), tail(expected, 1)) << n;
    }
  expect_error<InvalidArgument>([] { data::range(7).batch(2).rebatch(std::vector<std::int64_t>{}); }, {"no size"});
  expect_error<InvalidArgument>([] { data::range(7).rebatch(3); }, {"rebatch: a field is a scalar i32[]"});
  expect_error<InvalidArgument>([] { data::range(7).batch(2).rebatch(0); }, {"rebatch: size must be positive, got 0"});
}

TEST(ChooseFrom, TakesTheNextOfWhatIsChosen) {
  // The documentation of tf.data.Dataset.choose_from_datasets: foo bar baz foo bar baz foo bar baz
  const std::vector<Dataset<1>> three{numbers_from(100, 1).repeat(), numbers_from(200, 1).repeat(),
                                      numbers_from(300, 1).repeat()};
  EXPECT_EQ(values(data::choose_from_datasets(three, data::range(3).repeat(3))),
            (Numbers{100, 200, 300, 100, 200, 300, 100, 200, 300}));
  const std::vector<Dataset<1>> two{data::range(2), numbers_from(10, 5)};
  const auto choices = data::from_tensor_slices(tensor_of_numbers({1, 0, 0, 1, 0, 1, 1}, {7}));
  EXPECT_EQ(values(data::choose_from_datasets(two, choices)), (Numbers{10, 0, 1, 11}))
      << "ends where a dataset that has ended is chosen";
  const auto on = data::choose_from_datasets(two, choices, {.stop_on_empty_dataset = false});
  EXPECT_EQ(values(on), (Numbers{10, 0, 1, 11, 12, 13}));
  EXPECT_EQ(values(on.from({.epoch = 0, .index = 3})), (Numbers{11, 12, 13}));
  EXPECT_EQ(values(on.prefetch()), values(on));
  const std::vector<Dataset<1>> unknown{of_unknown_length(data::range(2)), of_unknown_length(numbers_from(10, 5))};
  EXPECT_EQ(values(data::choose_from_datasets(unknown, choices, {.stop_on_empty_dataset = false})), values(on));
}

TEST(ChooseFrom, Mistakes) {
  const std::vector<Dataset<1>> two{data::range(2), numbers_from(10, 5)};
  expect_error<OutOfRange>([&] { values(data::choose_from_datasets(two, data::range(3))); },
                           {"element 2 of the choices is 2, expected 0 to 1"});
  expect_error<InvalidArgument>([&] { data::choose_from_datasets(two, data::range(4).batch(2)); },
                                {"a choice is i32[?], expected a scalar integer"});
  expect_error<InvalidArgument>([&] { data::choose_from_datasets(std::vector<Dataset<1>>{}, data::range(3)); },
                                {"there is no dataset to choose from"});
}

TEST(SampleFrom, HoldsEachElementOnceInItsOrder) {
  const std::vector<Dataset<1>> parts{data::range(300), numbers_from(1000, 500), numbers_from(2000, 7)};
  const auto mixed =
      data::sample_from_datasets(parts, {0.5, 0.4, 0.1}, {.seed = 3, .rerandomize_each_iteration = true});
  EXPECT_EQ(mixed.cardinality(), 807);
  const Numbers first = values(mixed), second = values(mixed);
  EXPECT_NE(first, second) << "drawn again in each epoch";
  for (const Numbers& all : {first, second}) {
    Numbers of[3];
    for (const std::int32_t each : all) of[each / 1000].push_back(each);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(of[i], values(parts[i]));
    const auto begin = std::count_if(all.begin(), all.begin() + 200, [](std::int32_t each) { return each < 1000; });
    EXPECT_NEAR(begin, 100, 45) << "six standard deviations";
  }
  for (const std::int64_t n : {0, 1, 500, 806, 807})
    EXPECT_EQ(values(mixed.from({.epoch = 1, .index = n})), Numbers(second.begin() + n, second.end()));
  EXPECT_EQ(values(mixed.epoch(0).shuffle({.seed = 1}).batch(8)).size(), 807u);
  EXPECT_EQ(values(data::sample_from_datasets(parts, {0, 0, 1})), values(parts[2])) << "what has no weight is left out";
}

TEST(SampleFrom, DrawsTheSameOfWhatIsCountedByReading) {
  const std::vector<Dataset<1>> known{data::range(30), numbers_from(1000, 50)};
  const std::vector<Dataset<1>> unknown{of_unknown_length(known[0]), of_unknown_length(known[1])};
  const auto mixed = data::sample_from_datasets(known, {}, {.seed = 3});
  EXPECT_EQ(values(data::sample_from_datasets(unknown, {}, {.seed = 3})), values(mixed));
  const Numbers stopped = values(data::sample_from_datasets(known, {}, {.seed = 3, .stop_on_empty_dataset = true}));
  const Numbers all = values(mixed.epoch(0));
  ASSERT_LT(stopped.size(), all.size());
  EXPECT_EQ(stopped, Numbers(all.begin(), all.begin() + std::ssize(stopped)));
  EXPECT_EQ(values(mixed), values(mixed)) << "the same in each epoch, as in TensorFlow";
  const std::vector<Dataset<1>> endless{known[0].repeat(), known[1]};
  EXPECT_EQ(data::sample_from_datasets(endless).cardinality(), std::nullopt);
  const auto lasting = data::sample_from_datasets(endless, {}, {.seed = 1});
  const Numbers beginning = values(lasting.take(5000));
  EXPECT_EQ(values(lasting.skip(4000).take(1000)), Numbers(beginning.begin() + 4000, beginning.end()));
}

TEST(SampleFrom, Mistakes) {
  const std::vector<Dataset<1>> two{data::range(2), numbers_from(10, 5)};
  expect_error<InvalidArgument>([&] { data::sample_from_datasets(two, {1.0}); }, {"1 weights for 2 datasets"});
  expect_error<InvalidArgument>([&] { data::sample_from_datasets(two, {1, -1}); }, {"weights[1]", "got -1"});
  expect_error<InvalidArgument>([&] { data::sample_from_datasets(two, {0, 0}); }, {"all weights are 0"});
  const std::vector<Dataset<1>> unlike{data::range(2), data::range(2).batch(2)};
  expect_error<InvalidArgument>([&] { data::sample_from_datasets(unlike); }, {"sample_from_datasets: field 0"});
}

}  // namespace
}  // namespace gradus::joining_test
