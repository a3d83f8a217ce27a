/// Rows of one rank: joined over all ranks they are the batches, in the bits that one process reads, and each rank has
/// made no others where a data set can be read by its rows.
#include <gtest/gtest.h>
#include <functional>
#include "gradus/data/batch_readers.h"
#include "gradus/data/dataset.h"
#include "gradus/gradus.h"
#include "tests/errors.h"

namespace gradus::rank_rows_test {
namespace {

/// One of several ranks, which ask each other through `said`.
class Readers final : public BatchReaders {
 public:
  Readers(int rank, int ranks, int shards, std::function<std::vector<std::int64_t>(std::int64_t)> said = {})
      : rank_(rank), ranks_(ranks), shards_(shards), said_(std::move(said)) {}
  int rank() const override { return rank_; }
  BatchShare share_of(int rank) const override {
    return {(rank * shards_ + ranks_ - 1) / ranks_, ((rank + 1) * shards_ + ranks_ - 1) / ranks_, shards_};
  }
  std::string name_of(int rank) const override { return text("rank ", rank); }
  std::vector<std::int64_t> all_gather(std::int64_t own) const override { return said_(own); }

 private:
  const int rank_, ranks_, shards_;
  const std::function<std::vector<std::int64_t>(std::int64_t)> said_;
};

constexpr int ranks = 3, shards = 4;

Pipeline of_rank(const Pipeline& pipeline, int rank) {
  return pipeline.read_by(std::make_shared<Readers>(rank, ranks, shards));
}

/// Elements that the stages of this name have made so far.
std::int64_t made_by(const Pipeline& pipeline, std::string_view stage) {
  std::int64_t elements = 0;
  for (const auto& each : pipeline.explain().stages)
    if (each.stage == stage) elements += each.elements;
  return elements;
}

struct Case {
  const char* name;
  std::function<Pipeline()> make;
  bool is_by_rows = true;
  std::string source = "from_tensor_slices";
};

Dataset<2> examples() {
  return data::from_tensor_slices(random::normal({70, 2, 3}, {.seed = 1}),
                                  random::integers({70}, {.high = 5, .seed = 2}));
}
/// 20, 20, 20 and 10 rows.
Dataset<2> batches() { return examples().shuffle({.seed = 3}).batch(20); }
Pipeline mapped(auto f) { return batches().map(f).pipeline(); }

void PrintTo(const Case& each, std::ostream* out) { *out << each.name; }

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"Batches", [] { return batches().pipeline(); }},
      {"WholeBatches", [] { return examples().batch(20, {.drop_remainder = true}).pipeline(); }},
      {"FewRows", [] { return examples().batch(2).pipeline(); }},
      {"Random",
       [] {
         return examples()
             .map([](Tensor x, Tensor y) { return std::pair{x + random::normal({2, 3}), y}; })
             .shuffle({.seed = 3})
             .batch(20)
             .pipeline();
       }},
      {"Scaled", [] { return mapped([](Tensor x, Tensor y) { return std::pair{x / 255 + 1, cast(y, f32)}; }); }},
      {"Reshaped",
       [] { return mapped([](Tensor x, Tensor y) { return std::pair{reshape(x, {-1, 6}), expand_dims(y, -1)}; }); }},
      {"Flattened",
       [] {
         return mapped([](Tensor x, Tensor y) { return std::pair{reshape(tanh(reshape(x, {-1})), {-1, 6}), y}; });
       }},
      {"RowSums",
       [] { return mapped([](Tensor x, Tensor y) { return std::pair{reduce_sum(x, {.axis = {1, 2}}), y * 2}; }); }},
      {"Products",
       [] { return mapped([](Tensor x, Tensor y) { return std::pair{matmul(x, ones({3, 4})), one_hot(y, 5)}; }); }},
      {"Weighted",
       [] {
         const Tensor table = random::normal({5}, {.seed = 9});
         return mapped([table](Tensor x, Tensor y) { return std::tuple{x, y, gather(table, y) * 2}; });
       }},
      {"Flipped", [] { return mapped([](Tensor x, Tensor y) { return std::pair{reverse(x, {1}), y}; }); }},
      {"ShuffledBatches", [] { return batches().shuffle({.seed = 5}).pipeline(); }},
      {"Repeated", [] { return batches().repeat(2).skip(1).take(5).pipeline(); }},
      {"Ahead",
       [] { return batches().map([](Tensor x, Tensor y) { return std::pair{-x, y}; }).prefetch(2).pipeline(); }},
      {"CachedBatches", [] { return batches().cache().pipeline(); }},
      {"PaddedToASize", [] { return examples().padded_batch(20, {.padded_shapes = {{3, 4}, {}}}).pipeline(); }},
      {"ByHand",
       [] { return data::from_tensor_slices(random::normal({3, 14, 2}, {.seed = 1}), ones({3, 14})).pipeline(); }},
      {"Zipped",
       [] { return data::zip(data::range(70).batch(20), data::range(90).skip(3).batch(20)).take(3).pipeline(); }, true,
       "range(70)"},
      {"Concatenated", [] { return batches().concatenate(batches()).pipeline(); }},
      {"ConcatenatedExamples", [] { return examples().concatenate(examples().take(9)).batch(20).pipeline(); }},
      {"Windows", [] { return examples().window(20, {.shift = 11, .stride = 2}).batch().pipeline(); }},
      {"Sampled", [] { return data::sample_from_datasets({examples(), examples()}).batch(20).pipeline(); }},

      {"Centred",
       [] { return mapped([](Tensor x, Tensor y) { return std::pair{x - reduce_mean(x, {.axis = {0}}), y}; }); },
       false},
      {"BySize", [] { return mapped([](Tensor x, Tensor y) { return std::pair{x / double(x.shape()[0]), y}; }); },
       false},
      {"ByCount", [] { return mapped([](Tensor x, Tensor y) { return std::pair{x * element_count(y, f32), y}; }); },
       false},
      {"Numbered", [] { return mapped([](Tensor x, Tensor y) { return std::pair{x, y + range(y.shape()[0])}; }); },
       false},
      {"Reversed", [] { return mapped([](Tensor x, Tensor y) { return std::pair{reverse(x, {0}), y}; }); }, false},
      {"Rolled", [] { return mapped([](Tensor x, Tensor y) { return std::pair{x, cumsum(y)}; }); }, false},
      {"Counted",
       [] {
         return mapped([](Tensor x, Tensor y) {
           return std::pair{x * reduce_sum(broadcast_to(constant(1.0f), {y.shape()[0]})), y};
         });
       },
       false},
      {"Sorted", [] { return mapped([](Tensor x, Tensor y) { return std::pair{x, sort(y)}; }); }, false},
      {"RandomBatches",
       [] { return mapped([](Tensor x, Tensor y) { return std::pair{x + random::normal({2, 3}), y}; }); }, false},
      {"Captured",
       [] {
         const Tensor noise = random::normal({20, 2, 3}, {.seed = 4});
         return examples()
             .batch(20, {.drop_remainder = true})
             .map([noise](Tensor x, Tensor y) { return std::pair{x + noise, y}; })
             .pipeline();
       },
       false},
      {"Padded", [] { return examples().padded_batch(20).pipeline(); }},
      {"Filtered", [] { return examples().filter([](Tensor, Tensor y) { return y > 1; }).batch(10).pipeline(); },
       false},
  };
  return all;
}

class RankRows : public testing::TestWithParam<Case> {};

TEST_P(RankRows, AreTheBatches) {
  const Case& each = GetParam();
  set_seed(1);
  const Pipeline whole = each.make();
  std::vector<Tensors> expected;
  for (const auto reading = whole.epoch(1).begin(); !reading->at_end(); reading->advance())
    expected.push_back(reading->element());
  ASSERT_GT(expected.size(), 2u);
  std::int64_t all_rows = 0;
  for (const Tensors& element : expected) all_rows += element[0].shape()[0];

  std::vector<std::vector<Tensors>> parts(expected.size(), std::vector<Tensors>(expected[0].size()));
  for (int rank = 0; rank < ranks; ++rank) {
    set_seed(1);
    const Pipeline own = each.make();
    const Readers alone(rank, ranks, shards);
    std::int64_t own_rows = 0;
    // Nobody else is asked here, as of a data set whose length is known.
    const auto readers = std::make_shared<Readers>(
        rank, ranks, shards, [](std::int64_t said) { return std::vector<std::int64_t>(ranks, said); });
    const auto reading = own.epoch(1).read_by(readers).begin();
    for (std::size_t i = 0; i < expected.size(); ++i, reading->advance()) {
      ASSERT_FALSE(reading->at_end());
      const Tensors& element = reading->element();
      for (std::size_t field = 0; field < element.size(); ++field) {
        const auto batch = batch_of_part(element[field]);
        ASSERT_NE(batch, nullptr);
        EXPECT_EQ(batch->rows, expected[i][field].shape()[0]);
        EXPECT_EQ(element[field].shape()[0], alone.share_of(rank).rows(batch->rows).count());
        parts[i][field].push_back(element[field]);
      }
      own_rows += element[0].shape()[0];
    }
    EXPECT_TRUE(reading->at_end());
    if (std::string_view(each.name) == "ByHand") {
      EXPECT_EQ(made_by(own, each.source), std::ssize(expected));  // parts of them
    } else if (each.is_by_rows) {
      EXPECT_EQ(made_by(own, each.source), own_rows) << "of " << all_rows;
    } else {
      EXPECT_GE(made_by(own, each.source), all_rows);
    }
  }
  for (std::size_t i = 0; i < expected.size(); ++i)
    for (std::size_t field = 0; field < expected[i].size(); ++field)
      EXPECT_TRUE(bitwise_equal(concat(parts[i][field]), expected[i][field])) << "element " << i << " field " << field;
}

INSTANTIATE_TEST_SUITE_P(Data, RankRows, testing::ValuesIn(cases()),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(RankRowsOfScalars, AreElementsAsTheyAre) {
  const Tensors element = of_rank(data::range(3).pipeline(), 1).first();
  EXPECT_EQ(element[0].shape().rank(), 0);
  EXPECT_EQ(batch_of_part(element[0]), nullptr);
}

TEST(RankRowsOfNone, KnowTheirSizes) {
  const Tensors element = of_rank(examples().batch(2).pipeline(), 1).first();  // rows 1 and 2 of shards 0 and 2
  EXPECT_EQ(element[0].shape(), (Shape{1, 2, 3}));
  const Tensors of_last = of_rank(examples().batch(1).pipeline(), 2).first();
  EXPECT_EQ(of_last[0].shape(), (Shape{0, 2, 3}));
  EXPECT_EQ(batch_of_part(of_last[0])->rows, 1);
}

/// A part is known as long as it lives, and what is made of it is none.
TEST(BatchParts, AreKnownWhileTheyLive) {
  std::optional<Tensor> part = of_rank(examples().batch(20).pipeline(), 0).first()[0];
  const Tensor copy = *part, other = *part + 1;
  part.reset();
  EXPECT_EQ(batch_of_part(copy)->rows, 20);
  EXPECT_EQ(batch_of_part(other), nullptr);
}

Dataset<1> generated(int batches_of, std::int64_t rows = 8) {
  return data::from_generator({f32, {any_size, 2}}, [batches_of, rows, next = 0]() mutable -> std::optional<Tensor> {
    if (next == batches_of) return std::nullopt;
    return full({rows, 2}, next++);
  });
}

/// Rank 1 of 3 reads what a rank with so many batches does.
std::unique_ptr<Reading> read_beside(const Dataset<1>& own, std::vector<std::vector<std::int64_t>> others) {
  const auto said = [others = std::move(others), next = std::size_t{0}](std::int64_t mine) mutable {
    std::vector<std::int64_t> all = others.at(next++);
    all[1] = mine;
    return all;
  };
  return own.pipeline().read_by(std::make_shared<Readers>(1, 3, 4, said)).begin();
}

TEST(SharedReading, GoesOnWithoutRowsUntilAllHaveEnded) {
  const auto reading = read_beside(generated(2), {{8, 0, 8}, {8, 0, -1}, {8, 0, -1}, {1, 0, -1}, {-1, 0, -1}});
  for (int i = 0; i < 4; ++i, reading->advance()) {
    ASSERT_FALSE(reading->at_end());
    ASSERT_FALSE(reading->at_end());  // asks nobody again
    const Tensor own = reading->element()[0];
    EXPECT_EQ(own.shape(), (Shape{i < 2 ? 2 : 0, 2}));
    const std::vector<bool> ended = batch_of_part(own)->has_ended;
    if (i == 0) { EXPECT_TRUE(ended.empty()); }
    if (i == 1) { EXPECT_EQ(ended, (std::vector<bool>{false, false, true})); }
    if (i == 2) { EXPECT_EQ(ended, (std::vector<bool>{false, true, true})); }
    EXPECT_EQ(reading->position().index, i);
  }
  EXPECT_TRUE(reading->at_end());
  EXPECT_THROW(reading->element(), OutOfRange);
}

TEST(SharedReading, LeavesOutWhatNobodyHasRowsOf) {
  // One row is that of shard 0, of rank 0, which has ended.
  const auto reading = read_beside(generated(3, 1), {{-1, 0, 1}, {-1, 0, 1}, {-1, 0, 1}, {-1, 0, -1}});
  EXPECT_TRUE(reading->at_end());
}

TEST(SharedReading, RefusesBatchesOfOtherSizes) {
  const auto reading = read_beside(generated(3), {{8, 0, 8}, {8, 0, 7}});
  reading->advance();
  expect_says(error_of<InvalidArgument>([&] { reading->at_end(); }),
              "batch 1 of the data set has 7 rows on rank 2 and 8 on rank 0");
}

}  // namespace
}  // namespace gradus::rank_rows_test
