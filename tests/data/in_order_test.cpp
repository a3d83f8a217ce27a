/// Properties of every pipeline that is read in order, whose number of elements is found by reading: rows of a table,
/// each checked for every property.
#include <gtest/gtest.h>
#include <algorithm>
#include <cstring>
#include "gradus/ops/constant.h"
#include "gradus/data/element_source.h"
#include "gradus/data/pipeline_changes.h"
#include "gradus/data/stage.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/random.h"
#include "tests/data/readings.h"

namespace gradus::in_order_test {
namespace {

struct InOrder {
  std::string name;
  std::function<Dataset<1>()> make;
  std::int64_t elements;  // of epoch 0 and of epoch 1
};

Dataset<1> shuffled_range(std::int64_t n) { return data::range(n).shuffle({.seed = 7}); }
Dataset<1> kept_all(std::int64_t n) {
  return shuffled_range(n).filter([](Tensor x) { return x >= 0; });
}
Tensor third(Tensor n) { return mod(n, 3); }
Dataset<1> pairs_of(std::int64_t key, Dataset<1> window) {
  return window.map([key](Tensor n) { return n * 10 + static_cast<int>(key); }).batch(2);
}

/// The numbers from 0 to n - 1, one by one or several at once; fails at number `bad`.
class NumberSource : public detail::ElementSource {
 public:
  NumberSource(std::int32_t n, bool several, std::int32_t bad) : n_(n), several_(several), bad_(bad) {}
  std::optional<Tensors> next() override {
    if (next_ == n_) return std::nullopt;
    check();
    return Tensors{constant(next_++)};
  }
  void write(detail::ElementRows& rows) override {
    if (!several_) return ElementSource::write(rows);
    for (; next_ < n_ && !rows.is_full(); ++next_) {
      check();
      std::memcpy(rows.place(0), &next_, sizeof next_);
      rows.end_element();
    }
  }

 private:
  void check() const { require<DataError>(next_ != bad_, "no more of them"); }
  const std::int32_t n_;
  const bool several_;
  const std::int32_t bad_;
  std::int32_t next_ = 0;
};
Dataset<1> from_source(std::int32_t n, bool several, std::int32_t bad = -1) {
  return Dataset<1>(Pipeline::generate({{i32, {}}}, [=]() -> std::unique_ptr<detail::ElementSource> {
    return std::make_unique<NumberSource>(n, several, bad);
  }));
}

const std::vector<InOrder> pipelines_in_order{
    {"take_while", [] { return data::range(30).take_while([](Tensor n) { return n < 17; }); }, 17},
    {"unique", [] { return shuffled_range(30).map(third).unique(); }, 3},
    {"scan",
     [] { return shuffled_range(13).scan(constant(0), [](Tensor s, Tensor n) { return std::pair{s + n, s + n}; }); },
     13},
    {"group_by_window", [] { return shuffled_range(20).group_by_window(third, pairs_of, 4); }, 11},
    {"window", [] { return kept_all(12).window(3, {.shift = 2}).batch().padded_batch(1); }, 6},
    {"window_flat_map",
     [] { return shuffled_range(12).window(4).flat_map([](Dataset<1> w) { return w.shuffle({.seed = 1}); }); }, 12},
    {"concatenate", [] { return kept_all(8).concatenate(shuffled_range(5)); }, 13},
    {"rebatch", [] { return kept_all(13).batch(4).rebatch(3); }, 5},
    {"sample", [] { return data::sample_from_datasets({kept_all(9), kept_all(6)}, {}, {.seed = 1}); }, 15},
    {"choose", [] { return data::choose_from_datasets({kept_all(4), shuffled_range(4)}, data::range(2).repeat(4)); },
     8},
    {"source", [] { return from_source(9, true); }, 9},
    {"source_in_batches", [] { return from_source(13, true).batch(4); }, 4},
    {"source_in_whole_batches", [] { return from_source(12, true).batch(4); }, 3},
    {"source_one_by_one_in_batches", [] { return from_source(13, false).batch(4); }, 4},
    {"source_skipped_and_batched", [] { return from_source(13, true).skip(3).batch(4).skip(1); }, 2},
    {"ignore_errors", [] { return shuffled_range(9).ignore_errors(); }, 9},
    {"enumerate", [] { return kept_all(9).enumerate().map([](Tensor i, Tensor) { return cast(i, i32); }); }, 9},
};

class PipelinesInOrder : public testing::TestWithParam<InOrder> {};

TEST_P(PipelinesInOrder, GoOnFromAnyPositionInTheSameOrder) {
  const InOrder& row = GetParam();
  const auto plain = row.make();
  EXPECT_EQ(plain.cardinality(), std::nullopt);
  const Elements first = read_all(plain), second = read_all(plain);
  EXPECT_EQ(std::ssize(first), row.elements);
  EXPECT_EQ(std::ssize(second), row.elements);
  for (std::int64_t n = 0; n <= row.elements; ++n) {
    EXPECT_EQ(read_all(row.make().from({.epoch = 1, .index = n})), tail(second, static_cast<std::size_t>(n))) << n;
    EXPECT_EQ(read_all(row.make().skip(n)), tail(first, static_cast<std::size_t>(n))) << n;
  }
}

TEST_P(PipelinesInOrder, ReadTheSameInTheBackgroundAndFromACache) {
  const InOrder& row = GetParam();
  const auto plain = row.make();
  const Elements first = read_all(plain), second = read_all(plain);
  for (const int buffers : {autotune, 1, 3}) {
    const auto ahead = row.make().prefetch(buffers);
    EXPECT_EQ(read_all(ahead), first);
    EXPECT_EQ(read_all(ahead), second);
  }
  const auto cached = row.make().cache();
  EXPECT_EQ(read_all(cached), first);
  EXPECT_EQ(read_all(cached), first);
}

TEST_P(PipelinesInOrder, BeginAgainForAnEarlierElement) {
  const auto dataset = GetParam().make();
  const Elements all = read_all(dataset);
  const auto pass = dataset.pipeline().stage().open(0);
  for (const std::int64_t index : {std::ssize(all) - 1, std::int64_t{0}, std::ssize(all) / 2, std::int64_t{0}})
    EXPECT_EQ(described(pass->at(index)[0]), all[static_cast<std::size_t>(index)]) << index;
  EXPECT_TRUE(pass->at(std::ssize(all)).empty());
}

TEST_P(PipelinesInOrder, HoldEachElementInOneShard) {
  const InOrder& row = GetParam();
  Elements expected = read_all(row.make()), shards;
  for (const int shard : {0, 1, 2})
    for (const Numbers& each : read_all(row.make().shard(3, shard))) shards.push_back(each);
  std::ranges::sort(expected);
  std::ranges::sort(shards);
  EXPECT_EQ(shards, expected);
}

TEST_P(PipelinesInOrder, RepeatAsEpochs) {
  const InOrder& row = GetParam();
  const auto plain = row.make();
  Elements both = read_all(plain);
  for (const Numbers& each : read_all(plain)) both.push_back(each);
  EXPECT_EQ(read_all(row.make().repeat(2)), both);
}

TEST_P(PipelinesInOrder, HaveCopiesThatReadTheSame) {
  const auto dataset = GetParam().make();
  const Dataset<1> copy(dataset.pipeline().changed({}));
  for (int epoch = 0; epoch < 2; ++epoch) EXPECT_EQ(read_all(copy), read_all(dataset));
}

INSTANTIATE_TEST_SUITE_P(Rows, PipelinesInOrder, testing::ValuesIn(pipelines_in_order),
                         [](const auto& info) { return info.param.name; });

TEST(Sources, BatchesHoldTheElementsAndErrorsNameThem) {
  for (const bool several : {false, true}) {
    EXPECT_EQ(values(from_source(13, several).batch(4)), counted(13));
    EXPECT_EQ(values(from_source(13, several).batch(4, {.drop_remainder = true})), counted(12));
    EXPECT_EQ(values(from_source(13, several).batch(4).repeat(2)).size(), 26);
    EXPECT_EQ(values(from_source(0, several).batch(4)), Numbers());
    EXPECT_NE(message_of<DataError>([&] {
                values(from_source(13, several, 6).batch(4));
              }).find("from_generator, element 6: no more of them"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace gradus::in_order_test
