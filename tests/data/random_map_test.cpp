/// Random maps before a batch: all rows at once, in the bits of one by one.
#include <gtest/gtest.h>
#include "gradus/base/thread_pool.h"
#include "gradus/gradients/functional.h"
#include "gradus/nn/layers.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/control.h"
#include "gradus/ops/crossentropy.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "tests/data/readings.h"
#include "tests/threads.h"

namespace gradus::random_map_test {
namespace {

using Augmentation = Tensor (*)(Tensor);

/// Of rows of 12 numbers, each with something random of another kind.
const std::vector<std::pair<const char*, Augmentation>> augmentations{
    {"uniform", [](Tensor x) { return x + random::uniform({12}, {.low = -1, .high = 2}); }},
    {"normal in f64", [](Tensor x) { return cast(x, f64) * random::normal({12}, {.dtype = f64}); }},
    {"narrow", [](Tensor x) { return cast(x, bf16) + random::truncated_normal({12}, {.dtype = bf16}); }},
    {"one number for all", [](Tensor x) { return x * random::uniform({}); }},
    {"two draws", [](Tensor x) { return x * random::uniform({12}) + random::uniform({12}); }},
    {"flip", [](Tensor x) { return where(random::uniform({}) < 0.5, reverse(x, {0}), x); }},
    {"crop", [](Tensor x) { return gather(x, range(8) + random::integers({}, {.high = 5})); }},
    {"what depends on nothing else", [](Tensor) { return random::integers({3}, {.high = 1000}); }},
    {"with a seed", [](Tensor x) { return x + random::uniform({12}, {.seed = 4}) * random::uniform({12}); }},
    {"sums and products",
     [](Tensor x) { return reduce_sum(matmul(reshape(x, {3, 4}), random::normal({4, 2})), {.axis = {0}}); }},
    {"dropout", [](Tensor x) { return dropout(x, 0.5); }},
    {"a branch",
     [](Tensor x) {
       return cond(
           random::uniform({}) < 0.5, [&] { return x + random::uniform({12}); },
           [&] { return x - random::normal({12}); });
     }},
    {"a loop",
     [](Tensor x) {
       return scan([](Tensor sum, Tensor e) { return std::pair{sum + e * random::uniform({}), sum}; }, constant(0.0), x)
           .second;
     }},
    {"rows within", [](Tensor x) {
       return vectorized_map([](Tensor row) { return row + random::uniform({4}); }, reshape(x, {3, 4})) *
              random::uniform({});
     }}};

std::vector<Tensor> all_of(const Dataset<1>& dataset) {
  std::vector<Tensor> elements;
  for (auto x : dataset) elements.push_back(x);
  return elements;
}

/// Batches of these elements, some of which may be smaller, hold their bits.
void expect_rows(const std::vector<Tensor>& batches, const std::vector<Tensor>& elements, const char* what) {
  std::size_t at = 0;
  for (const Tensor& batch : batches)
    for (std::int64_t row = 0; row < batch.shape()[0] && at < elements.size(); ++row, ++at)
      EXPECT_TRUE(bitwise_equal(batch[row], elements[at])) << what << ", element " << at;
  EXPECT_EQ(at, elements.size()) << what;
}

TEST(RandomMap, HasTheBitsOfOneByOne) {
  const auto rows = data::from_tensor_slices(random::normal({23, 12}, {.seed = 1})).shuffle({.seed = 2});
  for (const auto& [what, f] : augmentations) {
    set_seed(7);
    const auto mapped = rows.map([f = f](Tensor x) { return f(x); });
    const auto first = all_of(mapped.epoch(0)), second = all_of(mapped.epoch(1));
    EXPECT_FALSE(bitwise_equal(first[0], first[1])) << what;
    for (const std::int64_t size : {2, 5, 23}) {
      const auto batches = mapped.batch(size);
      expect_rows(all_of(batches), first, what);
      expect_rows(all_of(batches), second, what);  // another epoch, another order and other numbers
    }
  }
}

TEST(RandomMap, IsOneProgramForAllRows) {
  for (const auto& [what, f] : augmentations) {
    int calls = 0;
    const auto mapped = data::from_tensor_slices(random::normal({8, 12}, {.seed = 1})).map([&, f = f](Tensor x) {
      ++calls;
      return f(x);
    });
    mapped.batch(8).first();
    EXPECT_EQ(calls, 2) << what << ": traced for its spec, and for all rows";
  }
}

TEST(RandomMap, BelongsToTheElementWhereverItIsRead) {
  set_seed(3);
  const auto noisy = data::range(60).map([](Tensor n) { return n * 1000 + random::integers({}, {.high = 1000}); });
  const Numbers all = values(noisy.epoch(0));
  const auto some = [&](auto wanted) {
    Numbers out;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (wanted(i)) out.push_back(all[i]);
    return out;
  };
  for (const int threads : {1, 2, 3}) {
    const Threads scope(threads);
    EXPECT_EQ(values(noisy.batch(16).prefetch()), all);
    EXPECT_EQ(values(noisy.skip(7).batch(16)), some([](std::size_t i) { return i >= 7; }));
    EXPECT_EQ(values(noisy.shard(3, 1).batch(4)), some([](std::size_t i) { return i % 3 == 1; }));
    EXPECT_EQ(values(noisy.batch(10).from({.index = 4})), some([](std::size_t i) { return i >= 40; }));
    EXPECT_EQ(values(noisy.batch(16).batch(2, {.drop_remainder = true}).take(1)),
              some([](std::size_t i) { return i < 32; }));
  }
  const auto again = noisy.map([](Tensor n) { return n + random::integers({}, {.high = 1000}); });
  EXPECT_EQ(values(again.batch(7).epoch(0)), values(again.epoch(0))) << "a random map of a random map";
}

TEST(RandomMap, BeforeABatchOfUnknownNumber) {
  const auto rows = data::from_tensor_slices(random::normal({23, 12}, {.seed = 1}));
  const auto some = rows.filter([](Tensor x) { return reduce_sum(x) > -2; });
  for (const auto& [what, f] : augmentations) {
    int calls = 0;
    set_seed(7);
    const auto mapped = some.map([&, f = f](Tensor x) {
      ++calls;
      return f(x);
    });
    const Dataset<1> skipping = mapped.skip(1);
    skipping.batch(4).first();
    EXPECT_EQ(calls, 2) << what << ": traced for its spec, and for all rows";
    const auto elements = all_of(mapped.epoch(0));
    ASSERT_GT(elements.size(), 8u);
    for (const std::int64_t size : {1, 4, 100}) expect_rows(all_of(mapped.batch(size)), elements, what);
    const auto whole = all_of(mapped.batch(4, {.drop_remainder = true}));
    EXPECT_EQ(whole.size(), elements.size() / 4);
    EXPECT_TRUE(bitwise_equal(whole[1][3], elements[7])) << what;
  }
  const auto large = some.batch(std::int64_t{1} << 60);
  EXPECT_EQ(all_of(large).size(), 1u) << "memory is not set aside for all that might come";
}

/// Sizes of elements differ, those of what becomes of them do not.
TEST(RandomMap, OfElementsOfUnknownSize) {
  const auto uneven = data::range(10).batch(4).map([](Tensor n) { return reduce_sum(n); });
  EXPECT_EQ(values(uneven.batch(2)), (Numbers{0 + 1 + 2 + 3, 4 + 5 + 6 + 7, 8 + 9}));
  const auto noisy =
      data::range(10).batch(4).map([](Tensor n) { return reduce_sum(n) * 100 + random::integers({}, {.high = 100}); });
  EXPECT_EQ(values(noisy.batch(2).epoch(0)), values(noisy.epoch(0)));
}

TEST(RandomMap, LeavesTheGlobalSeedAlone) {
  set_seed(5);
  const auto noisy = data::range(8).map([](Tensor n) { return n + random::integers({}, {.high = 9}); });
  const Tensor expected = random::uniform({4});
  set_seed(5);
  const auto same = data::range(8).map([](Tensor n) { return n + random::integers({}, {.high = 9}); });
  same.batch(4).first();
  EXPECT_TRUE(bitwise_equal(random::uniform({4}), expected));
}

TEST(RandomMap, FailuresNameTheElement) {
  const Tensor table = numbered_rows(10, 2);
  const auto rows = data::range(64).map([&](Tensor n) { return gather(table, n) + random::integers({}, {.high = 5}); });
  EXPECT_EQ(message_of<Error>([&] { rows.batch(32).first(); }).substr(0, 27), "map, element 10 of epoch 0:");
  EXPECT_EQ(rows.batch(10).first().shape(), (Shape{10, 2}));
  const auto odd = rows.filter([](Tensor row) { return reduce_sum(row) >= 0; });
  const auto later = data::range(64).filter([](Tensor n) { return n >= 3; }).map([&](Tensor n) {
    return gather(table, n) + random::integers({}, {.high = 5});
  });
  EXPECT_EQ(message_of<Error>([&] { odd.batch(32).first(); }).substr(0, 27), "map, element 10 of epoch 0:");
  EXPECT_EQ(message_of<Error>([&] { later.batch(32).first(); }).substr(0, 26), "map, element 7 of epoch 0:");
}

}  // namespace
}  // namespace gradus::random_map_test
