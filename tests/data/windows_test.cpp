/// Windows, groups and time series, beside plain loops written from TensorFlow's documentation.
#include <gtest/gtest.h>
#include <algorithm>
#include "gradus/data/timeseries.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "tests/data/readings.h"
#include "tests/errors.h"

namespace gradus::windows_test {
namespace {

/// The numbers 0 to n - 1, whose number is not known.
Dataset<1> uncounted_range(std::int64_t n) {
  return data::range(n).filter([](Tensor x) { return x >= 0; });
}

/// Windows begin at 0, shift, 2 * shift ... as long as there is an element. Each takes every stride-th element from
/// there, `size` of them, or fewer at the end; with drop_remainder those that have fewer are left out.
Elements windows_by_loops(std::int32_t n, std::int64_t size, const WindowingOptions& options) {
  Elements windows;
  for (std::int64_t begin = 0; begin < n; begin += options.shift.value_or(size)) {
    Numbers window;
    for (std::int64_t k = 0; k < size && begin + k * options.stride < n; ++k)
      window.push_back(static_cast<std::int32_t>(begin + k * options.stride));
    if (std::ssize(window) == size || !options.drop_remainder) windows.push_back(window);
  }
  return windows;
}

Elements windows_of(const WindowedDataset<1>& dataset) {
  Elements windows;
  for (auto window : dataset) windows.push_back(values(window));
  return windows;
}

Elements batches_of(const Dataset<1>& dataset) {
  Elements batches;
  for (auto batch : dataset) batches.push_back(batch.to_vector<std::int32_t>());
  return batches;
}

TEST(Window, HoldsWhatTensorFlowsDocumentationSays) {
  const auto seven = data::range(7);
  EXPECT_EQ(windows_of(seven.window(3)), (Elements{{0, 1, 2}, {3, 4, 5}, {6}}));
  EXPECT_EQ(windows_of(seven.window(3, {.drop_remainder = true})), (Elements{{0, 1, 2}, {3, 4, 5}}));
  EXPECT_EQ(windows_of(seven.window(3, {.shift = 1, .drop_remainder = true})),
            (Elements{{0, 1, 2}, {1, 2, 3}, {2, 3, 4}, {3, 4, 5}, {4, 5, 6}}));
  EXPECT_EQ(windows_of(seven.window(3, {.shift = 1, .stride = 2, .drop_remainder = true})),
            (Elements{{0, 2, 4}, {1, 3, 5}, {2, 4, 6}}));
}

TEST(Window, OfEveryShapeIsThatOfPlainLoops) {
  for (const std::int32_t n : {0, 1, 5, 12})
    for (const std::int64_t size : {1, 2, 4})
      for (const std::int64_t shift : {1, 2, 5})
        for (const std::int64_t stride : {1, 3})
          for (const bool drop : {false, true}) {
            const WindowingOptions options{.shift = shift, .stride = stride, .drop_remainder = drop};
            const Elements expected = windows_by_loops(n, size, options);
            const auto what = text(n, " elements, size ", size, ", shift ", shift, ", stride ", stride, ' ', drop);
            const auto windows = data::range(n).window(size, options);
            EXPECT_EQ(windows.cardinality(), std::ssize(expected)) << what;
            EXPECT_EQ(windows_of(windows), expected) << what;
            EXPECT_EQ(batches_of(windows.batch()), expected) << what;
            EXPECT_EQ(windows.batch().cardinality(), std::ssize(expected)) << what;
            const auto unknown = uncounted_range(n).window(size, options);
            EXPECT_EQ(unknown.cardinality(), std::nullopt);
            EXPECT_EQ(windows_of(unknown), expected) << what;
            EXPECT_EQ(batches_of(unknown.batch()), expected) << what;
            if (expected.empty()) continue;
            const auto flat = [&](const WindowedDataset<1>& of) {
              return of.flat_map([size](Dataset<1> window) { return window.batch(size); });
            };
            EXPECT_EQ(batches_of(flat(windows)), expected) << what;
            EXPECT_EQ(batches_of(flat(unknown)), expected) << what;
          }
}

TEST(Window, OfSeveralFieldsAndOfElementsOfAnySize) {
  const auto pairs = data::zip(data::range(5), data::from_tensor_slices(numbered_rows(5, 2)));
  const auto [numbers, rows] = pairs.window(3, {.shift = 2}).batch().skip(1).first();
  EXPECT_EQ(numbers.to_vector<std::int32_t>(), (Numbers{2, 3, 4}));
  EXPECT_EQ(rows.to_vector<std::int32_t>(), (Numbers{2, 1000002, 3, 1000003, 4, 1000004}));
  const auto growing = data::range(4).map([](Tensor n) { return n; }).batch(3).concatenate(data::range(1).batch(3));
  EXPECT_EQ(read_all(growing.window(3).flat_map([](Dataset<1> window) { return window.padded_batch(3); })),
            (Elements{{2, 3, 3, 0, 1, 2, 3, 0, 0, 0, 0, 0}}));
  EXPECT_EQ(error_of<InvalidArgument>([&] { growing.window(3).batch().first(); }),
            "batch: elements differ in size: field 0 of element 1 is i32[1], that of element 0 is i32[3]; batch with "
            ".drop_remainder, or bring them to one size in a map");
}

TEST(Window, IsReachedByIndexAndResumed) {
  const auto windows = data::range(40).shuffle({.seed = 3}).window(5, {.shift = 2, .drop_remainder = true}).batch();
  for (const std::int64_t epoch : {0, 1}) {
    const Elements all = batches_of(windows.epoch(epoch));
    ASSERT_EQ(all.size(), 18u);
    for (std::int64_t n = 0; n <= 18; ++n)
      EXPECT_EQ(batches_of(windows.from({epoch, n}).take(100)), tail(all, static_cast<std::size_t>(n)));
    Elements shards;
    for (const int shard : {0, 1, 2})
      for (const Numbers& each : batches_of(windows.epoch(epoch).shard(3, shard))) shards.push_back(each);
    EXPECT_EQ(shards.size(), 18u);
    std::ranges::sort(shards);
    Elements sorted = all;
    std::ranges::sort(sorted);
    EXPECT_EQ(shards, sorted) << "each window in one shard";
  }
}

TEST(Window, CountsItsPassesAsEpochs) {
  const auto windows = data::range(12).shuffle({.seed = 3}).window(4);
  const Elements first = windows_of(windows), second = windows_of(windows);
  EXPECT_NE(first, second);
  EXPECT_EQ(second, batches_of(data::range(12).shuffle({.seed = 3}).batch(4).epoch(1)));
}

TEST(Window, IsNoBatchOfAnotherSize) {
  EXPECT_EQ(data::range(12).window(4).batch().batch(2).cardinality(), 2);
  EXPECT_EQ(values(data::range(10).window(4).batch().unbatch()), counted(10));
  EXPECT_EQ(values(data::range(5).window(3, {.shift = 1}).batch().unbatch()),
            (Numbers{0, 1, 2, 1, 2, 3, 2, 3, 4, 3, 4, 4}));
}

TEST(Window, Mistakes) {
  const auto numbers = data::range(10);
  expect_error<InvalidArgument>([&] { numbers.window(0); }, {"window: size must be positive, got 0"});
  expect_error<InvalidArgument>([&] { numbers.window(2, {.shift = 0}); }, {"window: ", "shift", "got 0"});
  expect_error<InvalidArgument>([&] { numbers.window(2, {.stride = -1}); }, {"window: ", "stride", "got -1"});
  expect_error<InvalidArgument>([&] { numbers.window(std::int64_t{1} << 62, {.stride = 4}); }, {"2^63"});
  expect_error<InvalidArgument>(
      [&] { data::range(0).window(2).flat_map([](Dataset<1> window) { return window.batch(2); }); },
      {"window: this dataset is empty"});
}

TEST(GroupByWindow, GivesFullGroupsFirstAndTheRestByKey) {
  const auto key = [](Tensor n) { return mod(n, 2); };
  const auto batch = [](std::int64_t, Dataset<1> window) { return window.batch(100); };
  // tf.data.Dataset.range(10).group_by_window(lambda i: i % 2, lambda key, ds: ds.batch(5), window_size=5)
  EXPECT_EQ(batches_of(data::range(10).group_by_window(key, batch, 5)), (Elements{{0, 2, 4, 6, 8}, {1, 3, 5, 7, 9}}));
  EXPECT_EQ(batches_of(data::range(10).group_by_window([](Tensor n) { return 2 - mod(n, 3); }, batch, 2)),
            (Elements{{0, 3}, {1, 4}, {2, 5}, {6, 9}, {8}, {7}}))
      << "keys 0 and 1 have elements left, in the order of keys";
  const auto sizes = [](std::int64_t k) { return k + 1; };
  EXPECT_EQ(batches_of(data::range(6).group_by_window(key, batch, sizes)), (Elements{{0}, {2}, {1, 3}, {4}, {5}}));
  const auto keyed = [](std::int64_t k, Dataset<1> window) {
    return window.map([k](Tensor n) { return n + static_cast<int>(100 * k); });
  };
  EXPECT_EQ(values(data::range(5).group_by_window(key, keyed, 2)), (Numbers{0, 2, 101, 103, 4}));
}

TEST(GroupByWindow, TakesElementsOfAnySizeAndGoesOn) {
  const auto lines = [] {
    return data::from_generator({i32, {any_size}}, [i = 0]() mutable -> std::optional<Tensor> {
      if (i == 9) return std::nullopt;
      const int n = i++;
      return full({n % 3 + 1}, n, i32);
    });
  };
  const auto make = [&] {
    return lines().group_by_window([](Tensor x) { return reduce_sum(ones_like(x)); },
                                   [](std::int64_t, Dataset<1> window) { return window.padded_batch(2); }, 2);
  };
  const Elements all = read_all(make());
  EXPECT_EQ(all, (Elements{{2, 2, 1, 0, 3},
                           {2, 2, 2, 1, 1, 4, 4},
                           {2, 2, 3, 2, 2, 2, 5, 5, 5},
                           {2, 1, 1, 6},
                           {2, 1, 2, 7, 7},
                           {2, 1, 3, 8, 8, 8}}));
  EXPECT_EQ(read_all(make().prefetch()), all);
  for (std::int64_t n = 0; n <= 6; ++n)
    EXPECT_EQ(read_all(make().from({.epoch = 0, .index = n})), tail(all, static_cast<std::size_t>(n)));
}

TEST(GroupByWindow, Mistakes) {
  const auto batch = [](std::int64_t, Dataset<1> window) { return window.batch(2); };
  expect_error<InvalidArgument>(
      [&] { data::range(4).group_by_window([](Tensor n) { return cast(n, f32); }, batch, 2); },
      {"group_by_window: the key of an element is f32[]", "scalar integer"});
  expect_error<InvalidArgument>([&] { data::range(4).group_by_window([](Tensor n) { return n; }, batch, 0).first(); },
                                {"the window of key 0 has the size 0"});
}

/// Keras's: sequence i begins at row start + i * stride and takes every rate-th row, as long as all of them lie before
/// the end; its target is the row of targets where it begins.
std::pair<Elements, Numbers> sequences_by_loops(std::int64_t begin, std::int64_t end, std::int64_t targets,
                                                std::int64_t length, const data::TimeseriesOptions& options) {
  std::pair<Elements, Numbers> made;
  for (std::int64_t first = begin; first + (length - 1) * options.sampling_rate < end && first < targets;
       first += options.sequence_stride) {
    Numbers sequence;
    for (std::int64_t k = 0; k < length; ++k)
      sequence.push_back(static_cast<std::int32_t>(first + k * options.sampling_rate));
    made.first.push_back(sequence);
    made.second.push_back(static_cast<std::int32_t>(1000 + first));
  }
  return made;
}

TEST(Timeseries, IsThatOfPlainLoops) {
  constexpr std::int64_t rows = 30;
  Numbers series = counted(rows), wanted;
  for (std::int32_t i = 0; i < 27; ++i) wanted.push_back(1000 + i);
  const Tensor x = tensor_of_numbers(series, {rows}), y = tensor_of_numbers(wanted, {27});
  for (const std::int64_t length : {1, 4, 31})
    for (const std::int64_t stride : {1, 3})
      for (const std::int64_t rate : {1, 2})
        for (const auto& [begin, end] : {std::pair<std::int64_t, std::int64_t>{0, rows}, {5, 20}}) {
          const data::TimeseriesOptions options{.sequence_stride = stride,
                                                .sampling_rate = rate,
                                                .batch_size = std::nullopt,
                                                .start_index = begin,
                                                .end_index = end};
          const auto [sequences, targets] = sequences_by_loops(begin, end, 27, length, options);
          const auto dataset = data::timeseries_dataset_from_array(x, y, length, options);
          Elements seen;
          Numbers labels;
          for (auto [sequence, target] : dataset) {
            seen.push_back(sequence.to_vector<std::int32_t>());
            labels.push_back(static_cast<std::int32_t>(target.item()));
          }
          EXPECT_EQ(seen, sequences) << length << ' ' << stride << ' ' << rate;
          EXPECT_EQ(labels, targets) << length << ' ' << stride << ' ' << rate;
          EXPECT_EQ(dataset.cardinality(), std::ssize(sequences));
          EXPECT_EQ(batches_of(data::timeseries_dataset_from_array(x, length, options)),
                    sequences_by_loops(begin, end, end, length, options).first);
        }
}

TEST(Timeseries, ComesInBatchesShuffledByIndex) {
  const Tensor series = numbered_rows(200, 2);
  const auto batches = data::timeseries_dataset_from_array(series, series, 5);
  EXPECT_EQ(batches.cardinality(), 2) << "128 and 68";
  EXPECT_EQ(batches.first()[0].shape(), (Shape{128, 5, 2}));
  EXPECT_EQ(batches.first()[1].shape(), (Shape{128, 2}));
  const auto shuffled = data::timeseries_dataset_from_array(series, 5, {.batch_size = 7, .shuffle = true, .seed = 4});
  const Elements first = read_all(shuffled), second = read_all(shuffled);
  EXPECT_NE(first, second);
  EXPECT_EQ(read_all(shuffled.from({.epoch = 1, .index = 11})), tail(second, 11));
  Numbers begins;
  for (auto batch : shuffled.unbatch()) begins.push_back(batch.to_vector<std::int32_t>()[0]);
  std::ranges::sort(begins);
  EXPECT_EQ(begins, counted(196)) << "each sequence once";
}

TEST(Timeseries, Mistakes) {
  const Tensor series = numbered_rows(10, 1);
  const auto make = [&](std::int64_t length, data::TimeseriesOptions options) {
    return [=] { data::timeseries_dataset_from_array(series, length, options); };
  };
  expect_error<InvalidArgument>(make(0, {}),
                                {"timeseries_dataset_from_array: sequence_length must be positive, got 0"});
  expect_error<InvalidArgument>(make(2, {.sampling_rate = 10}), {"sampling_rate must be less than the 10 rows", "10"});
  expect_error<InvalidArgument>(make(2, {.sequence_stride = 10}), {"sequence_stride must be less than the 10 rows"});
  expect_error<InvalidArgument>(make(2, {.sequence_stride = 0}), {"sequence_stride", "got 0"});
  expect_error<InvalidArgument>(make(2, {.batch_size = 0}), {"batch_size", "got 0"});
  expect_error<InvalidArgument>(make(2, {.start_index = 10}), {"start_index must be less than the 10 rows"});
  expect_error<InvalidArgument>(make(2, {.end_index = 11}), {"end_index must be at most the 10 rows"});
  expect_error<InvalidArgument>(make(2, {.start_index = 5, .end_index = 5}),
                                {"end_index must be more than start_index"});
}

}  // namespace
}  // namespace gradus::windows_test
