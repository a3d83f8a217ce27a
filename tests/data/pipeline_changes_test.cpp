/// Copies of chains with something changed: every stage gives what it gave, and what is kept is kept apart.
#include "gradus/base/rooms.h"
#include "gradus/data/pipeline_changes.h"
#include <gtest/gtest.h>
#include <filesystem>
#include <functional>
#include "gradus/data/dataset.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/random.h"
#include "gradus/ops/shape.h"
#include "tests/errors.h"
#include "tests/test_directory.h"

namespace gradus::pipeline_changes_test {
namespace {

Dataset<2> rows(std::int64_t n = 24) {
  const Tensor x = random::normal({n, 3}, {.seed = 5});
  return data::from_tensor_slices(x, reshape(x.rows(0, n), {n, 3}) * 2);
}
Dataset<1> of_any_length() {
  return data::range(12).map([](Tensor i) { return fill({3}, 1, f32) * cast(i, f32); }).filter([](Tensor x) {
    return not_equal(x[0], 5);
  });
}

std::vector<Tensors> elements_of(const Pipeline& dataset, std::int64_t epochs = 3) {
  std::vector<Tensors> all;
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch)
    for (auto reading = dataset.epoch(epoch).begin(); !reading->at_end(); reading->advance())
      all.push_back(reading->element());
  return all;
}
void expect_same(const std::vector<Tensors>& a, const std::vector<Tensors>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].size(), b[i].size());
    for (std::size_t field = 0; field < a[i].size(); ++field) {
      ASSERT_EQ(a[i][field].spec(), b[i][field].spec());
      EXPECT_TRUE(bitwise_equal(a[i][field], b[i][field])) << "element " << i << ", field " << field;
    }
  }
}

/// Every stage that reads another one; a new one has to be added here.
std::vector<Pipeline> chains() {
  const auto noisy = [](Tensor x, Tensor y) { return std::pair{x + random::normal({3}), y}; };
  const Dataset<1> lengths = data::range(9).interleave(
      [](Tensor i) { return data::range(3).map([i](Tensor j) { return i + j; }); }, {.cycle_length = 2});
  std::vector<Pipeline> all;
  const auto add = [&](const auto& dataset) { all.push_back(dataset.pipeline()); };
  add(rows());
  add(rows().shuffle({.seed = 3}).batch(5));
  add(rows().shuffle({.seed = 3, .reshuffle_each_iteration = false}).batch(5, {.drop_remainder = true}));
  add(rows().shuffle(4, {.seed = 3}).batch(5));
  add(rows().map(noisy).batch(4));
  add(rows().batch(4).map([](Tensor x, Tensor y) { return std::pair{x * 2, y}; }));
  add(rows().batch(4, {.drop_remainder = true}).map([](Tensor x, Tensor y) { return std::pair{x * 2, y}; }));
  add(rows().cache().shuffle({.seed = 3}).batch(4));
  add(rows().take(20).skip(3).shard(2, 1).repeat(2).batch(3));
  add(rows().batch(6).unbatch().batch(4));
  add(rows().from({1, 7}).batch(4));
  add(rows().epoch(2).batch(4));
  add(data::zip(rows(), rows().map(noisy)).batch(5));
  add(of_any_length().batch(4));
  add(of_any_length().shuffle(3, {.seed = 2}).batch(4));
  add(lengths.batch(4));
  add(data::range(9).map([](Tensor i) { return cast(i, f32); }).padded_batch(4));
  add(data::range(8)
          .map([](Tensor i) { return reshape(cast(i, f32), {1}); })
          .bucket_by_sequence_length([](Tensor x) { return cast(x[0], i32); },
                                     {.bucket_boundaries = {4}, .bucket_batch_sizes = {2, 3}}));
  return all;
}

TEST(PipelineChanges, ACopyWithoutChangesGivesTheSameBits) {
  const std::vector<Pipeline> all = chains();
  for (std::size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(i);
    const Pipeline copy = all[i].changed({});
    EXPECT_EQ(copy.specs(), all[i].specs());
    EXPECT_EQ(copy.cardinality(), all[i].cardinality());
    expect_same(elements_of(copy), elements_of(all[i]));
  }
}

TEST(PipelineChanges, OtherBatchesHaveTheSameRows) {
  for (const Dataset<2>&examples : {rows().shuffle({.seed = 3}), rows().map([](Tensor x, Tensor y) {
                                      return std::pair{x + random::normal({3}), y};
                                    })}) {
    const auto doubled = [](Tensor x, Tensor y) { return std::pair{x * 2, y}; };
    const Pipeline changed = examples.batch(4).map(doubled).prefetch().pipeline().changed({.batch_size = 8});
    expect_same(elements_of(changed), elements_of(examples.batch(8).map(doubled).pipeline()));
    EXPECT_EQ(changed.ahead().buffers, autotune);
    // Of two batches the last one.
    const Pipeline nested = examples.batch(2).batch(3).pipeline().changed({.batch_size = 6});
    expect_same(elements_of(nested), elements_of(examples.batch(2).batch(6).pipeline()));
    const Pipeline whole =
        examples.batch(4, {.drop_remainder = true}).map(doubled).pipeline().changed({.batch_size = 8});
    expect_same(elements_of(whole), elements_of(examples.batch(8, {.drop_remainder = true}).map(doubled).pipeline()));
  }
}

TEST(PipelineChanges, MapsTakeOtherThreads) {
  const Pipeline dataset =
      rows().map([](Tensor x, Tensor y) { return std::pair{x, y}; }, {.num_parallel_calls = 7}).batch(2).pipeline();
  EXPECT_EQ(dataset.stage().parallel_calls(), 7);
  EXPECT_EQ(dataset.changed({.parallel_calls = autotune}).stage().parallel_calls(), autotune);
  EXPECT_EQ(dataset.changed({}).stage().parallel_calls(), 7);
}

/// How often a source was asked.
struct Counted {
  std::shared_ptr<int> made = std::make_shared<int>(0);
  Dataset<1> dataset() const {
    return data::from_generator({f32, {2}}, [made = made, next = 0]() mutable -> std::optional<Tensor> {
      if (next == 12) return std::nullopt;
      ++*made;
      return fill({2}, next++, f32);
    });
  }
};

TEST(PipelineChanges, ACacheOfACopyIsItsOwn) {
  const Counted counted;
  const Dataset<1> cached = counted.dataset().cache().batch(3);
  const Pipeline copy = cached.pipeline().changed({});
  elements_of(copy, 2);
  EXPECT_EQ(*counted.made, 12);  // once by the copy
  elements_of(cached.pipeline(), 2);
  EXPECT_EQ(*counted.made, 24);  // and once for itself: nothing was there
  const TestDirectory directory("pipeline_changes");
  std::filesystem::create_directories(directory.path());
  const std::filesystem::path file = directory.path() / "cache";
  const Pipeline of_disk = counted.dataset().cache(file).batch(3).pipeline().changed({});
  elements_of(of_disk, 2);
  EXPECT_EQ(*counted.made, 36);
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(PipelineChanges, ACacheStandsBehindWhatIsTheSameInEveryEpoch) {
  const Counted counted;
  const Pipeline shuffled =
      counted.dataset().map([](Tensor x) { return x * 2; }).shuffle(4, {.seed = 1}).batch(3).pipeline();
  ASSERT_NE(worth_caching(shuffled.stage()), nullptr);
  EXPECT_EQ(worth_caching(shuffled.stage())->name(), "map");
  const Pipeline cached = shuffled.changed({.cache = true});
  expect_same(elements_of(cached), elements_of(shuffled));
  *counted.made = 0;
  elements_of(cached);
  EXPECT_EQ(*counted.made, 0);
  // Of a part, for trials.
  const Pipeline part = shuffled.changed({.cache = true, .cached_batches = 2, .rows = 3});
  EXPECT_EQ(elements_of(part, 1).size(), 2u);
}

TEST(PipelineChanges, WhatACacheWouldNotSpare) {
  EXPECT_EQ(worth_caching(rows().shuffle().batch(4).pipeline().stage()), nullptr);
  EXPECT_EQ(
      worth_caching(
          rows().map([](Tensor x, Tensor y) { return std::pair{x, y}; }).cache().shuffle().batch(4).pipeline().stage()),
      nullptr);
  const auto noisy = rows().map([](Tensor x, Tensor y) { return std::pair{x + random::normal({3}), y}; }).batch(4);
  EXPECT_EQ(worth_caching(noisy.pipeline().stage()), nullptr);
  EXPECT_EQ(worth_caching(
                rows().shuffle().map([](Tensor x, Tensor y) { return std::pair{x, y}; }).batch(4).pipeline().stage()),
            nullptr);
}

TEST(PipelineChanges, AnyDatasetKnowsItsFieldsAgain) {
  const AnyDataset any = rows().batch(4);
  EXPECT_EQ(any.as<2>().cardinality(), 6);
  expect_error<InvalidArgument>([&] { (void)any.as<3>(); }, {"it has 2 fields, asked for as one of 3"});
}

}  // namespace
}  // namespace gradus::pipeline_changes_test
