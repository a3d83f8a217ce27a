/// What holds for every pipeline: rows of a table, each checked for every property.
#include <gtest/gtest.h>
#include "gradus/base/thread_pool.h"
#include "gradus/data/timeseries.h"
#include "gradus/data/pipeline_changes.h"
#include "gradus/ops/elementwise.h"
#include "tests/data/readings.h"
#include "tests/threads.h"

namespace gradus::properties_test {
namespace {

struct Row {
  std::string name;
  std::function<Dataset<1>()> make;
  std::int64_t elements;
};

Dataset<1> rows(std::int64_t n) { return data::from_tensor_slices(numbered_rows(n, 3)); }

Dataset<1> sampled() {
  const std::vector<Dataset<1>> parts{rows(23).shuffle({.seed = 2}), rows(17)};
  return data::sample_from_datasets(parts, {0.3, 0.7}, {.seed = 5});
}

const std::vector<Row> pipelines{
    {"range", [] { return data::range(10); }, 10},
    {"nothing", [] { return data::range(0); }, 0},
    {"slices", [] { return rows(11); }, 11},
    {"shuffle", [] { return rows(23).shuffle({.seed = 5}); }, 23},
    {"shuffle once", [] { return rows(23).shuffle({.seed = 5, .reshuffle_each_iteration = false}); }, 23},
    {"buffered shuffle", [] { return rows(40).shuffle(7, {.seed = 5}); }, 40},
    {"batch", [] { return rows(23).batch(4); }, 6},
    {"whole batches", [] { return rows(23).batch(4, {.drop_remainder = true}); }, 5},
    {"shuffle, batch", [] { return rows(50).shuffle({.seed = 1}).batch(8); }, 7},
    {"batch, shuffle", [] { return rows(50).batch(8).shuffle({.seed = 1}); }, 7},
    {"batch of batches", [] { return rows(48).batch(4, {.drop_remainder = true}).batch(5); }, 3},
    {"batch of even batches", [] { return rows(48).batch(4).batch(5); }, 3},
    {"take", [] { return rows(30).shuffle({.seed = 2}).take(7); }, 7},
    {"take too many", [] { return rows(5).take(70); }, 5},
    {"skip", [] { return rows(30).shuffle({.seed = 2}).skip(7); }, 23},
    {"skip too many", [] { return rows(5).skip(70); }, 0},
    {"window", [] { return rows(30).skip(3).take(20).skip(2).batch(3); }, 6},
    {"repeat", [] { return rows(7).shuffle({.seed = 3}).repeat(3); }, 21},
    {"repeat, batch", [] { return rows(7).shuffle({.seed = 3}).repeat(3).batch(4); }, 6},
    {"repeat never", [] { return rows(7).repeat(0); }, 0},
    {"repeat nothing", [] { return rows(0).repeat(); }, 0},
    {"endless", [] { return rows(7).shuffle({.seed = 3}).repeat().batch(4).take(9); }, 9},
    {"endless, buffered", [] { return rows(7).repeat().shuffle(5, {.seed = 3}).batch(4).take(9); }, 9},
    {"cache", [] { return rows(20).shuffle({.seed = 4}).cache(); }, 20},
    {"cache, shuffle, batch", [] { return rows(20).cache().shuffle({.seed = 4}).batch(3); }, 7},
    {"batch, cache", [] { return rows(20).batch(3).cache().shuffle({.seed = 4}); }, 7},
    {"batch, cache, batch", [] { return rows(20).batch(3, {.drop_remainder = true}).cache().batch(2); }, 3},
    {"epoch, batch", [] { return rows(20).shuffle({.seed = 4}).epoch(3).batch(6); }, 4},
    {"unbatch", [] { return rows(20).batch(3).unbatch().batch(4); }, 5},
    {"unbatch, shuffle", [] { return rows(20).batch(3).unbatch().shuffle({.seed = 4}); }, 20},
    {"shard", [] { return rows(20).shuffle({.seed = 4}).shard(3, 1).batch(2); }, 4},
    {"padded batch", [] { return rows(20).padded_batch(3, {.padded_shapes = {{5}}}); }, 7},
    {"zip", [] { return data::zip(rows(20)).skip(1).batch(3); }, 7},
    {"concatenate", [] { return rows(11).shuffle({.seed = 4}).concatenate(rows(6)).batch(4); }, 5},
    {"rebatch", [] { return rows(23).batch(4).rebatch(5); }, 5},
    {"windows", [] { return rows(20).shuffle({.seed = 4}).window(4, {.shift = 3, .stride = 2}).batch(); }, 7},
    {"whole windows, batch",
     [] { return rows(20).window(4, {.shift = 1, .drop_remainder = true}).batch().shuffle({.seed = 4}).batch(5); }, 4},
    {"sample", [] { return sampled().batch(3); }, 14},
    {"time series",
     [] {
       return data::timeseries_dataset_from_array(numbered_rows(30, 2), 5,
                                                  {.sequence_stride = 2, .batch_size = 4, .shuffle = true, .seed = 1});
     },
     4},
    {"enumerate",
     [] { return rows(9).shuffle({.seed = 4}).enumerate().map([](Tensor i, Tensor x) { return x + cast(i, i32); }); },
     9},
    {"twice shuffled", [] { return rows(20).shuffle({.seed = 4}).batch(2).shuffle({.seed = 6}).repeat(2); }, 20},
};

class Pipelines : public testing::TestWithParam<Row> {};

TEST_P(Pipelines, HaveTheirCardinality) {
  const auto dataset = GetParam().make();
  EXPECT_EQ(dataset.cardinality(), GetParam().elements);
  EXPECT_EQ(read_all(dataset).size(), static_cast<std::size_t>(GetParam().elements));
}

TEST_P(Pipelines, KeepTheirSpecs) {
  const auto dataset = GetParam().make();
  const Spec promised = dataset.element_spec()[0];
  for (auto x : dataset) {
    ASSERT_EQ(x.dtype(), promised.dtype);
    ASSERT_EQ(x.shape().rank(), promised.shape.rank());
    for (int axis = 0; axis < x.shape().rank(); ++axis)
      EXPECT_TRUE(promised.shape[axis] == any_size || x.shape()[axis] == promised.shape[axis]) << x.spec();
  }
}

TEST_P(Pipelines, ReadTheSameWhenMadeAgain) {
  const auto dataset = GetParam().make(), again = GetParam().make();
  for (int epoch = 0; epoch < 3; ++epoch) EXPECT_EQ(read_all(dataset), read_all(again));
}

TEST_P(Pipelines, CountPassesAsEpochs) {
  const auto dataset = GetParam().make();
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    const Elements pass = read_all(dataset);
    EXPECT_EQ(pass, read_all(GetParam().make().epoch(epoch)));
    const auto fixed = dataset.epoch(epoch);
    EXPECT_EQ(pass, read_all(fixed));
    EXPECT_EQ(pass, read_all(fixed)) << "epoch(e) is always the same";
  }
}

TEST_P(Pipelines, SkipToTheTail) {
  const auto dataset = GetParam().make();
  const Elements all = read_all(dataset);
  for (std::size_t n = 0; n <= all.size() + 1; ++n)
    EXPECT_EQ(read_all(dataset.skip(static_cast<std::int64_t>(n))), tail(all, n)) << n;
}

TEST_P(Pipelines, GoOnFromAnyPosition) {
  const auto dataset = GetParam().make();
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    const Elements all = read_all(dataset.epoch(epoch)), next = read_all(dataset.epoch(epoch + 1));
    for (std::int64_t n = 0; n <= GetParam().elements; ++n) {
      const auto rest = dataset.from({.epoch = epoch, .index = n});
      EXPECT_EQ(rest.begin().position(), (Position{epoch, n}));
      EXPECT_EQ(read_all(rest.take(1000)), tail(all, static_cast<std::size_t>(n))) << n;
      const auto passes = dataset.from({.epoch = epoch, .index = n});
      EXPECT_EQ(read_all(passes), tail(all, static_cast<std::size_t>(n))) << n;
      EXPECT_EQ(read_all(passes), next) << "the pass after it is the epoch after";
    }
  }
}

TEST_P(Pipelines, TellThePositionOfWhatComesNext) {
  for (const auto& dataset : {GetParam().make(), GetParam().make().prefetch(3)}) {
    const auto second = dataset.epoch(1);
    std::int64_t index = 0;
    for (auto next = second.begin(); next != second.end(); ++next, ++index) {
      EXPECT_EQ(next.position(), (Position{1, index}));
      EXPECT_EQ(described(*next), described(*GetParam().make().from(next.position()).begin()));
      EXPECT_EQ(next.position(), (Position{1, index})) << "reading does not move it";
    }
    EXPECT_EQ(index, GetParam().elements);
  }
}

TEST_P(Pipelines, ReadTheSameInTheBackground) {
  const auto plain = GetParam().make();
  const Elements first = read_all(plain), second = read_all(plain);
  for (const int buffers : {autotune, 1, 2, 100}) {
    const auto ahead = GetParam().make().prefetch(buffers);
    EXPECT_EQ(read_all(ahead), first) << buffers;
    EXPECT_EQ(read_all(ahead), second) << buffers;
    EXPECT_EQ(ahead.cardinality(), plain.cardinality());
    EXPECT_EQ(ahead.element_spec(), plain.element_spec());
  }
}

TEST_P(Pipelines, ReadTheSameOnAnyNumberOfThreads) {
  const auto add = [](const Dataset<1>& dataset) { return dataset.map([](Tensor x) { return x; }); };
  const Elements expected = read_all(GetParam().make());
  for (const int threads : {1, 2, 3}) {
    const Threads scope(threads);
    EXPECT_EQ(read_all(add(GetParam().make())), expected) << threads;
  }
}

TEST_P(Pipelines, HaveCopiesThatReadTheSame) {
  const auto dataset = GetParam().make();
  const Dataset<1> copy(dataset.pipeline().changed({}));
  for (int epoch = 0; epoch < 2; ++epoch) EXPECT_EQ(read_all(copy), read_all(dataset));
}

INSTANTIATE_TEST_SUITE_P(Rows, Pipelines, testing::ValuesIn(pipelines), [](const auto& info) {
  std::string name;
  for (const char c : info.param.name)
    if (c != ',') name += c == ' ' ? '_' : c;
  return name;
});

}  // namespace
}  // namespace gradus::properties_test
