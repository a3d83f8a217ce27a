/// Maps of rows: whatever moves elements about between a map and its batch, or before, the elements are those of one
/// by one, and the function's result is the batch.
#include <gtest/gtest.h>
#include "gradus/function/variable.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/tensor/memory.h"
#include "tests/data/readings.h"
#include "tests/threads.h"

namespace gradus::mapped_rows_test {
namespace {

using Change = std::function<Dataset<1>(Dataset<1>)>;

/// What moves elements about.
const std::pair<const char*, Change> changes[] = {
    {"nothing", [](Dataset<1> d) { return d; }},
    {"shuffle", [](Dataset<1> d) { return d.shuffle({.seed = 5}); }},
    {"buffered shuffle", [](Dataset<1> d) { return d.shuffle(7, {.seed = 5}); }},
    {"window", [](Dataset<1> d) { return d.skip(3).take(29); }},
    {"shard", [](Dataset<1> d) { return d.shard(2, 1); }},
    {"rounds", [](Dataset<1> d) { return d.shuffle({.seed = 6}).repeat(2); }},
    {"endless", [](Dataset<1> d) { return d.repeat().shuffle(9, {.seed = 6}).take(80); }},
    {"start", [](Dataset<1> d) { return d.shuffle({.seed = 6}).from({.epoch = 1, .index = 4}); }},
    {"cache", [](Dataset<1> d) { return d.cache(); }},
    {"filter", [](Dataset<1> d) { return d.filter([](Tensor x) { return reduce_min(x) > 8; }); }},
    {"zip",
     [](Dataset<1> d) {
       return data::zip(d, d.shuffle({.seed = 8})).map([](Tensor a, Tensor b) { return a * 2 - b; });
     }},
};

Tensor one_function(Tensor x) { return reverse(x, {0}) * 3 - 1; }

TEST(MappedRows, AreTheElementsInAnyChain) {
  for (const std::int64_t width : {2, 20}) {
    const auto rows = data::from_tensor_slices(numbered_rows(37, width));
    for (const auto& [before_name, before] : changes)
      for (const auto& [after_name, after] : changes) {
        const std::string_view last = after_name;
        if (before_name != std::string_view("nothing") && last != "nothing" && last != "window") continue;
        const auto mapped = after(before(rows).map(one_function));
        const Elements expected = read_all(mapped);
        for (const bool ahead : {false, true})
          for (const bool drop : {false, true}) {
            auto batches = mapped.batch(8, {.drop_remainder = drop});
            if (ahead) batches = batches.prefetch();
            EXPECT_EQ(read_all(batches.unbatch()),
                      Elements(expected.begin(), expected.end() - (drop ? std::ssize(expected) % 8 : 0)))
                << width << " " << before_name << " " << after_name << (ahead ? " ahead" : "") << (drop ? " drop" : "");
          }
      }
  }
}

TEST(MappedRows, BatchesThatAreMapped) {
  const auto rows = data::from_tensor_slices(numbered_rows(37, 20));
  const auto triple = [](Tensor x) { return x * 3 - 1; };
  for (const auto& [name, change] : changes) {
    const auto apart = change(rows).map(triple).batch(8);
    const Elements expected = read_all(apart), moved = read_all(apart.epoch(0).shuffle(3, {.seed = 3}).skip(1));
    for (const int threads : {1, 3}) {
      const Threads scope(threads);
      EXPECT_EQ(read_all(change(rows).batch(8).map(triple)), expected) << name;
      EXPECT_EQ(read_all(change(rows).batch(8).shuffle(3, {.seed = 3}).skip(1).map(triple)), moved) << name;
    }
  }
}

TEST(MappedRows, TwoMapsAndSeveralFields) {
  const auto pairs =
      data::from_tensor_slices(numbered_rows(30, 24), tensor_of_numbers(counted(30), {30})).shuffle({.seed = 2});
  const auto twice = [](Tensor x, Tensor y) { return std::pair{cast(x, f32) * 0.5, y}; };
  const auto more = [](Tensor x, Tensor y) { return std::tuple{y, x + 1, x * cast(y, f32)}; };
  const auto one_by_one = pairs.map(twice).map(more);
  auto next = one_by_one.begin();
  for (auto [y, x, product] : pairs.map(twice).map(more).batch(7))
    for (std::int64_t i = 0; i < y.shape()[0]; ++i, ++next) {
      const auto [y_i, x_i, product_i] = *next;
      EXPECT_TRUE(bitwise_equal(y.rows(i, i + 1), expand_dims(y_i, 0)));
      EXPECT_TRUE(bitwise_equal(x.rows(i, i + 1), expand_dims(x_i, 0)));
      EXPECT_TRUE(bitwise_equal(product.rows(i, i + 1), expand_dims(product_i, 0)));
    }
  EXPECT_TRUE(next == one_by_one.end());
}

TEST(MappedRows, ReadTheVariablesOfThisMoment) {
  Variable offset(constant(10));
  const auto rows = data::from_tensor_slices(numbered_rows(4, 16));
  const auto add = [&](Tensor x) { return x + offset; };
  for (const auto& dataset : {rows.map(add).batch(2), rows.batch(2).map(add)}) {
    offset.assign(constant(10));
    EXPECT_EQ(dataset.first().to_vector<std::int32_t>()[16], 11);
    offset.assign(constant(20));
    EXPECT_EQ(dataset.first().to_vector<std::int32_t>()[16], 21);
  }
}

TEST(MappedRows, OfSeveralSources) {
  const auto a = data::from_tensor_slices(numbered_rows(37, 20)), b = data::from_tensor_slices(numbered_rows(41, 20));
  const auto join = [](Tensor x, Tensor y) { return x * 2 + reverse(y, {-1}); };
  const Dataset<2> together[] = {data::zip(a, b), data::zip(a, b).shuffle({.seed = 1}),
                                 data::zip(a, b.skip(3)).shuffle({.seed = 1}).repeat(2)};
  for (const Dataset<2>& pairs : together) {
    const Elements expected = read_all(pairs.map(join));
    EXPECT_EQ(read_all(pairs.map(join).batch(8).unbatch()), expected);
    EXPECT_EQ(read_all(pairs.batch(8).map(join).unbatch()), expected);
  }
  EXPECT_EQ(read_all(data::zip(a.batch(8), b.batch(8)).take(4).map(join)),
            read_all(data::zip(a, b).take(32).map(join).batch(8)));
}

TEST(MappedRows, AllInOneBatch) {
  const auto rows = data::from_tensor_slices(numbered_rows(37, 20)).shuffle({.seed = 4});
  const auto as_it_is = [](Tensor x) { return x; };
  const Elements expected = read_all(rows.batch(37));
  EXPECT_NE(expected, read_all(data::from_tensor_slices(numbered_rows(37, 20)).batch(37)));
  EXPECT_EQ(read_all(rows.map(as_it_is).batch(37)), expected);
  EXPECT_EQ(read_all(rows.batch(37).map(as_it_is)), expected);
  EXPECT_EQ(read_all(rows.batch(37).map([](Tensor x) { return x * 3 - 1; })),
            read_all(rows.map([](Tensor x) { return x * 3 - 1; }).batch(37)));
}

/// One element fails, and is named, however they are made.
TEST(MappedRows, FailuresNameTheElement) {
  const Tensor table = tensor_of_numbers(counted(16 * 9), {9, 16});
  const auto numbers = data::from_tensor_slices(numbered_rows(20, 16));
  const auto look_up = [=](Tensor x) { return gather(table, slice(x, {0}, {1})); };
  for (const auto& dataset : {numbers.map(look_up).batch(20), numbers.shuffle({.seed = 1}).map(look_up).batch(20)}) {
    const std::string message = message_of<OutOfRange>([&] { dataset.first(); });
    EXPECT_NE(message.find("map, element "), std::string::npos) << message;
    EXPECT_NE(message.find("gather: index "), std::string::npos) << message;
  }
  EXPECT_EQ(numbers.take(9).map(look_up).batch(9).first().shape(), (Shape{9, 1, 16}));
}

/// Nothing of its size is alive besides the batch while it is made, not even the rows of the source, a quarter of it.
TEST(MappedRows, AreNotCopiedIntoTheBatch) {
  constexpr std::int64_t n = 512, width = 4096, bytes = n * width * 4;
  const auto rows = data::from_tensor_slices(cast(zeros({n, width}), u8));
  const auto normalise = [](Tensor x) { return cast(x, f32) * 0.5 + 1; };
  for (const auto& dataset : {rows.map(normalise).batch(n), rows.shuffle().batch(n).map(normalise)}) {
    for (int i = 0; i < 3; ++i) dataset.first();  // compiled
    reset_peak_memory();
    const std::size_t before = memory_use().live_bytes;
    const Tensor batch = dataset.first();
    EXPECT_LT(memory_use().peak_bytes - before, static_cast<std::size_t>(bytes + bytes / 8));
    EXPECT_EQ(batch.shape(), (Shape{n, width}));
  }
}

}  // namespace
}  // namespace gradus::mapped_rows_test
