/// What each stage does.
#include <gtest/gtest.h>
#include <algorithm>
#include <cstring>
#include <set>
#include "gradus/data/order.h"
#include "gradus/ops/random_key.h"
#include "tests/data/readings.h"

namespace gradus::stages_test {
namespace {

Numbers sorted(Numbers numbers) {
  std::ranges::sort(numbers);
  return numbers;
}

TEST(Slices, HoldOneRowOfEveryTensor) {
  const Tensor x = numbered_rows(4, 2), y = tensor_of_numbers({5, 6, 7, 8}, {4});
  const auto dataset = data::from_tensor_slices(x, y);
  EXPECT_EQ(dataset.element_spec(), (std::array<Spec, 2>{Spec{i32, {2}}, Spec{i32, {}}}));
  std::int32_t i = 0;
  for (auto [row, number] : dataset) {
    EXPECT_EQ(row.to_vector<std::int32_t>(), (Numbers{i, i + 1000000}));
    EXPECT_EQ(number.item(), 5 + i++);
  }
  EXPECT_EQ(i, 4);
}

TEST(Slices, OfEveryType) {
  for (const DType dtype : all_dtypes) {
    for (const std::int64_t width : {0, 1, 3, 50}) {
      const Spec spec{dtype, {5, width}};
      Ref<Buffer> buffer = Buffer::allocate(bytes_of(spec));
      for (std::int64_t i = 0; i < bytes_of(spec); ++i)
        buffer->data<std::uint8_t>()[i] = static_cast<std::uint8_t>(dtype == boolean ? i % 2 : i);
      const auto batch = data::from_tensor_slices(Tensor::of_buffer(spec, buffer)).skip(1).batch(3).first();
      ASSERT_EQ(batch.spec(), (Spec{dtype, {3, width}}));
      const std::int64_t row = width * size_of(dtype);
      EXPECT_EQ(std::memcmp(batch.host(), buffer->data<std::byte>() + row, static_cast<std::size_t>(3 * row)), 0);
    }
  }
}

TEST(Slices, KeepTheirTensors) {
  std::optional<Dataset<1>> dataset;
  {
    const Tensor x = numbered_rows(3, 1);
    dataset = data::from_tensor_slices(x);
  }
  EXPECT_EQ(values(*dataset), counted(3));
}

TEST(Shuffle, HoldsEachElementOnceInEveryEpoch) {
  for (const std::int32_t n : {1, 2, 3, 10, 1000}) {
    const auto dataset = data::range(n).shuffle({.seed = 1});
    std::set<Numbers> orders;
    for (int epoch = 0; epoch < 4; ++epoch) {
      const Numbers order = values(dataset);
      EXPECT_EQ(sorted(order), counted(n));
      orders.insert(order);
    }
    EXPECT_TRUE(n < 10 || orders.size() == 4) << "every epoch has an order of its own";
  }
}

TEST(Shuffle, OrderIsAFunctionOfTheSeed) {
  const auto order = [](std::uint64_t seed) { return values(data::range(50).shuffle({.seed = seed})); };
  EXPECT_EQ(order(3), order(3));
  EXPECT_NE(order(3), order(4));
  EXPECT_EQ(values(data::range(8).shuffle({.seed = 0})), (Numbers{2, 5, 6, 7, 0, 4, 1, 3}))
      << "the same in every version: part of the contract";
}

TEST(Shuffle, TakesItsSeedFromTheGlobalOne) {
  const auto two = [](std::uint64_t seed) {
    set_seed(seed);
    const auto a = data::range(50).shuffle(), b = data::range(50).shuffle();
    set_seed(99);  // read when they were made
    return std::pair{values(a), values(b)};
  };
  EXPECT_EQ(two(1), two(1));
  EXPECT_NE(two(1), two(2));
  EXPECT_NE(two(1).first, two(1).second);
}

TEST(Shuffle, EveryPlaceIsAsLikely) {
  constexpr int n = 5, trials = 4000;
  int counts[n][n] = {};
  for (int seed = 0; seed < trials; ++seed) {
    const auto order = permutation(n, Counter(static_cast<std::uint64_t>(seed), 0));
    for (int place = 0; place < n; ++place) ++counts[place][order[static_cast<std::size_t>(place)]];
  }
  for (const auto& place : counts)
    for (const int count : place) EXPECT_NEAR(count, trials / n, 150);  // six standard deviations
}

TEST(BufferedShuffle, DrawsFromABufferOnly) {
  constexpr std::int32_t n = 200, buffer = 10;
  const Numbers order = values(data::range(n).shuffle(buffer, {.seed = 3}));
  EXPECT_EQ(sorted(order), counted(n));
  EXPECT_NE(order, counted(n));
  for (std::int32_t i = 0; i < n; ++i) EXPECT_LT(order[static_cast<std::size_t>(i)], i + buffer);
  EXPECT_EQ(values(data::range(n).shuffle(1)), counted(n));
}

TEST(BufferedShuffle, OfWhatHasNoEndCanGoBack) {
  const auto dataset = data::range(10).repeat().shuffle(4, {.seed = 1});
  const Numbers all = values(dataset.take(40));
  EXPECT_EQ(sorted({all.begin(), all.begin() + 30})[0], 0);
  EXPECT_EQ(values(dataset.skip(25).take(15)), Numbers(all.begin() + 25, all.end()));
}

TEST(Batch, JoinsAlongANewAxis) {
  const auto dataset = data::from_tensor_slices(numbered_rows(5, 2)).batch(2);
  EXPECT_EQ(dataset.element_spec()[0], (Spec{i32, {any_size, 2}}));
  EXPECT_EQ(read_all(dataset),
            (Elements{{2, 2, 2, 0, 1000000, 1, 1000001}, {2, 2, 2, 2, 1000002, 3, 1000003}, {2, 1, 2, 4, 1000004}}));
}

TEST(Batch, MayDropTheRemainder) {
  const auto dataset = data::range(5).batch(2, {.drop_remainder = true});
  EXPECT_EQ(dataset.element_spec()[0], (Spec{i32, {2}}));
  EXPECT_EQ(read_all(dataset), (Elements{{1, 2, 0, 1}, {1, 2, 2, 3}}));
  EXPECT_EQ(data::range(5).batch(6, {.drop_remainder = true}).cardinality(), 0);
}

TEST(Batch, RefusesElementsOfDifferentSizes) {
  const auto uneven = data::range(5).batch(2).batch(3);
  EXPECT_EQ(message_of<InvalidArgument>([&] { uneven.first(); }),
            "batch: elements differ in size: field 0 of element 2 is i32[1], that of element 0 is i32[2]; batch with "
            ".drop_remainder, or bring them to one size in a map");
}

TEST(Repeat, RoundsAreEpochs) {
  const auto shuffled = data::range(10).shuffle({.seed = 8});
  Numbers rounds;
  for (const std::int64_t epoch : {0, 1, 2}) {
    const Numbers round = values(shuffled.epoch(epoch));
    rounds.insert(rounds.end(), round.begin(), round.end());
  }
  EXPECT_EQ(values(shuffled.repeat(3)), rounds);
  EXPECT_EQ(values(shuffled.repeat().take(30)), rounds);
  EXPECT_EQ(values(shuffled.repeat(3).batch(7)), rounds) << "batches go over the ends of rounds";
  const auto repeated = shuffled.repeat(3);
  EXPECT_EQ(values(repeated.epoch(1).take(10)), values(shuffled.epoch(3))) << "the second pass goes on where it ended";
}

TEST(Repeat, WithoutEndHasNoCardinality) {
  EXPECT_EQ(data::range(3).repeat().cardinality(), std::nullopt);
  EXPECT_EQ(data::range(3).repeat().batch(2).skip(5).cardinality(), std::nullopt);
  EXPECT_EQ(data::range(3).repeat().take(8).cardinality(), 8);
  EXPECT_EQ(data::range(3).repeat().repeat(2).cardinality(), std::nullopt);
  EXPECT_EQ(values(data::range(3).repeat().skip(1000000000000).take(4)), (Numbers{1, 2, 0, 1}));
}

TEST(Cache, FreezesAShuffleBeforeIt) {
  const auto frozen = data::range(20).shuffle({.seed = 1}).cache();
  const Numbers order = values(frozen.epoch(2));
  EXPECT_EQ(order, values(data::range(20).shuffle({.seed = 1}))) << "whichever epoch is read first";
  EXPECT_EQ(values(frozen), order);
}

TEST(Cache, HandsOutLargeElementsUncopied) {
  const auto dataset = data::from_tensor_slices(numbered_rows(64, 1000)).batch(16).cache();
  EXPECT_EQ(dataset.first().node(), dataset.first().node());
}

TEST(From, AnEpochWithinAChain) {
  const auto shuffled = data::range(10).shuffle({.seed = 8});
  const Numbers third = values(shuffled.epoch(3)), fourth = values(shuffled.epoch(4));
  const auto batches = shuffled.from({.epoch = 3, .index = 4}).batch(4);
  EXPECT_EQ(values(batches), Numbers(third.begin() + 4, third.end()));
  EXPECT_EQ(values(batches), fourth);
  Numbers both(third.begin() + 4, third.end());
  both.insert(both.end(), fourth.begin(), fourth.end());
  EXPECT_EQ(values(shuffled.from({.epoch = 3, .index = 4}).repeat(2)), both);
}

TEST(Passes, AreCountedByEachValue) {
  const auto dataset = data::range(20).shuffle({.seed = 2});
  const Numbers epoch0 = values(dataset), epoch1 = values(dataset);
  const auto copy = dataset;
  EXPECT_EQ(values(copy), epoch0);
  EXPECT_EQ(values(dataset.take(20)), epoch0);
  EXPECT_EQ(dataset.first().item(), epoch0[0]) << "first() neither counts nor moves";
  EXPECT_EQ(values(dataset), values(dataset.epoch(2)));
  auto assigned = data::range(20);
  EXPECT_EQ(values(assigned), counted(20));
  assigned = dataset;
  EXPECT_EQ(values(assigned), epoch0);
  EXPECT_EQ(values(assigned), epoch1);
}

TEST(Passes, MayBeReadAtOnce) {
  const auto dataset = data::range(5).shuffle({.seed = 2});
  auto a = dataset.begin(), b = dataset.begin();
  Numbers first, second;
  for (; a != dataset.end(); ++a, ++b) {
    first.push_back(static_cast<std::int32_t>((*a).item()));
    second.push_back(static_cast<std::int32_t>((*b).item()));
  }
  EXPECT_EQ(first, values(dataset.epoch(0)));
  EXPECT_EQ(second, values(dataset.epoch(1)));
}

TEST(Passes, GiveTheSameElementAsOftenAsAsked) {
  const auto dataset = data::range(3).prefetch();
  auto next = dataset.begin();
  EXPECT_EQ((*next).item(), 0);
  EXPECT_EQ((*next).item(), 0);
  next++;
  ++next;
  EXPECT_EQ((*next).item(), 2);
}

TEST(AnyDataset, KnowsItsFields) {
  EXPECT_EQ(AnyDataset(data::range(3)).fields(), 1u);
  EXPECT_EQ(AnyDataset(data::from_tensor_slices(numbered_rows(2, 1), numbered_rows(2, 2))).fields(), 2u);
}

}  // namespace
}  // namespace gradus::stages_test
