/// Collectives: the bits of sums for any number of ranks and shards, uneven parts, several calls under way.
#include "gradus/distribute/collectives/collectives.h"
#include <gtest/gtest.h>
#include <cstring>
#include <numeric>
#include "tests/distribute/summands.h"
#include "tests/distribute/threads_as_ranks.h"
#include "tests/errors.h"

namespace gradus::collectives_test {
namespace {

using namespace std::chrono_literals;

TEST(ShardRanges, AreContiguousAndOfNearlyTheSameSize) {
  for (int shards = 1; shards <= 20; ++shards)
    for (int ranks = 1; ranks <= shards; ++ranks) {
      int next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const ShardRange range = shards_of(rank, ranks, shards);
        EXPECT_EQ(range.begin, next);
        EXPECT_GE(range.count(), shards / ranks);
        EXPECT_LE(range.count(), (shards + ranks - 1) / ranks);
        next = range.end;
      }
      EXPECT_EQ(next, shards);
    }
}

TEST(ShardRanges, ConsistOfTheLargestNodes) {
  using Nodes = std::vector<ShardRange>;
  EXPECT_EQ(nodes_of({0, 5}, 5), (Nodes{{0, 5}}));
  EXPECT_EQ(nodes_of({0, 3}, 5), (Nodes{{0, 2}, {2, 3}}));
  EXPECT_EQ(nodes_of({3, 5}, 5), (Nodes{{3, 4}, {4, 5}}));
  EXPECT_EQ(nodes_of({4, 7}, 7), (Nodes{{4, 7}}));
  EXPECT_EQ(nodes_of({1, 8}, 16), (Nodes{{1, 2}, {2, 4}, {4, 8}}));
  EXPECT_EQ(nodes_of({2, 2}, 4), (Nodes{}));
}

TEST(EvenCuts, CoverAllAtMultiplesOfTheGrain) {
  EXPECT_EQ(even_cuts(100, 3), (Cuts{0, 48, 80, 100}));
  EXPECT_EQ(even_cuts(10, 3), (Cuts{0, 10, 10, 10}));
  EXPECT_EQ(even_cuts(0, 2), (Cuts{0, 0, 0}));
  EXPECT_EQ(even_cuts(70'000, 2, 32'768), (Cuts{0, 65'536, 70'000}));
}

constexpr DType summable[] = {f64, f32, f16, bf16, i64, i32, i16, i8, u8, u16, u32, u64};

TEST(BlockCuts, GiveWhatIsLeftToRanksFromTheFirstOneOn) {
  EXPECT_EQ(block_cuts(100, 3, 10, 0), (Cuts{0, 40, 70, 100}));
  EXPECT_EQ(block_cuts(95, 3, 10, 2), (Cuts{0, 30, 60, 95}));
  EXPECT_EQ(block_cuts(105, 4, 10, 3), (Cuts{0, 30, 60, 80, 105}));
  EXPECT_EQ(block_cuts(7, 3, 10, 1), (Cuts{0, 0, 7, 7}));
  EXPECT_EQ(block_cuts(0, 2, 10, 1), (Cuts{0, 0, 0}));
  for (int ranks = 1; ranks <= 5; ++ranks)
    for (int first = 0; first < ranks; ++first)
      for (const std::int64_t count : {1, 9, 10, 11, 49, 50, 51, 1000}) {
        const Cuts cuts = block_cuts(count, ranks, 10, first);
        EXPECT_EQ(cuts.back(), count);
        for (int rank = 0; rank < ranks; ++rank) {
          const std::int64_t blocks = (count + 9) / 10,
                             own = cuts[static_cast<std::size_t>(rank) + 1] - cuts[static_cast<std::size_t>(rank)];
          EXPECT_EQ(cuts[static_cast<std::size_t>(rank)] % 10 == 0 || cuts[static_cast<std::size_t>(rank)] == count,
                    true);
          EXPECT_LE(own, (blocks + ranks - 1) / ranks * 10);
        }
      }
}

/// Sums that are rounded at each node have the same bits whoever holds the nodes, and half the bytes on their way.
TEST(AllReduce, OfNarrowSumsTakesHalfTheBytesForAnyNumberOfRanks) {
  for (const int shards : {4, 5, 8}) {
    constexpr std::int64_t count = 20'000;
    Bytes expected;
    for (int ranks = 1; ranks <= shards; ++ranks) {
      std::vector<Bytes> found(static_cast<std::size_t>(ranks));
      expect_all_well(run_as_threads(ranks, [&](Transport& transport) {
        Collectives collectives(transport, shards, 20s, 8192);
        const ShardRange own = collectives.own_shards();
        const auto sum = [&](DType type, bool narrow) {
          std::vector<Bytes> values;
          std::vector<const std::byte*> pointers;
          for (int shard = own.begin; shard < own.end; ++shard) values.push_back(summands(type, shard, count));
          for (const Bytes& each : values) pointers.push_back(each.data());
          Bytes out(static_cast<std::size_t>(count * size_of(type)));
          collectives.finish(collectives.start_all_reduce(type, pointers, out, narrow));
          return out;
        };
        const std::int64_t before = collectives.sent_bytes();
        found[static_cast<std::size_t>(transport.rank())] = sum(bf16, true);
        const std::int64_t narrow = collectives.sent_bytes() - before;
        sum(f32, false);
        EXPECT_EQ(2 * narrow, collectives.sent_bytes() - before - narrow);
      }));
      if (ranks == 1) expected = found[0];
      for (const Bytes& each : found) EXPECT_EQ(each, expected) << shards << " shards, " << ranks << " ranks";
    }
  }
}

TEST(AllReduce, HasTheBitsOfTheTreeForAnyNumberOfRanks) {
  for (const DType type : summable)
    for (const int shards : {1, 2, 3, 5, 8}) {
      const std::int64_t count = 5000;
      const Bytes expected = plain_sums(type, shards, count);
      for (int ranks = 1; ranks <= shards; ++ranks)
        expect_all_well(run_as_threads(ranks, [&](Transport& transport) {
          Collectives collectives(transport, shards, 20s, 8192);
          EXPECT_EQ(all_reduced(collectives, type, count), expected) << type << " " << shards << " " << ranks;
          EXPECT_EQ(all_reduced(collectives, type, 100),
                    Bytes(expected.begin(), expected.begin() + 100 * size_of(type)));
        }));
    }
}

TEST(AllReduce, OrderMattersForTheseValues) {  // so that the test above can fail
  const Bytes four = plain_sums(f32, 4, 1000);
  std::int64_t others = 0;
  for (std::int64_t i = 0; i < 1000; ++i) {
    float chain = 0, tree = 0;
    for (int shard = 0; shard < 4; ++shard) chain += summand<float>(shard, i);
    std::memcpy(&tree, four.data() + i * 4, 4);
    others += chain != tree;
  }
  EXPECT_GT(others, 100);
}

TEST(AllReduce, OfAnySize) {
  for (const std::int64_t count : {0, 1, 15, 16, 17, 4096, 4097, 20'001})
    expect_all_well(run_as_threads(3, [&](Transport& transport) {
      Collectives collectives(transport, 4, 20s, 4096);
      EXPECT_EQ(all_reduced(collectives, f32, count), plain_sums(f32, 4, count)) << count;
    }));
}

TEST(AllReduce, InPlace) {
  expect_all_well(run_as_threads(2, [](Transport& transport) {
    Collectives collectives(transport, 2, 20s, 4096);
    for (const std::int64_t count : {100, 30'000}) {
      Bytes own = summands(f32, transport.rank(), count);
      const std::byte* const pointer = own.data();
      collectives.all_reduce(f32, {&pointer, 1}, own);
      EXPECT_EQ(own, plain_sums(f32, 2, count));
    }
  }));
}

TEST(AllReduce, SeveralUnderWayEndInAnyOrder) {
  expect_all_well(run_as_threads(3, [](Transport& transport) {
    Collectives collectives(transport, 3, 20s, 4096);
    for (int step = 0; step < 5; ++step) {
      collectives.begin_step(static_cast<std::uint64_t>(step) + Tag::steps - 2);
      std::vector<Bytes> own, out;
      std::vector<Collective*> started;
      for (int bucket = 0; bucket < 4; ++bucket) {
        own.push_back(summands(f32, transport.rank(), 3000 * bucket + 10));
        out.emplace_back(own.back().size());
      }
      for (std::size_t bucket = 0; bucket < 4; ++bucket) {
        const std::byte* const pointer = own[bucket].data();
        started.push_back(collectives.start_all_reduce(f32, {&pointer, 1}, out[bucket]));
        collectives.advance();
      }
      for (const std::size_t bucket : {2u, 0u, 3u, 1u}) collectives.finish(started[bucket]);
      for (int bucket = 0; bucket < 4; ++bucket)
        EXPECT_EQ(out[static_cast<std::size_t>(bucket)], plain_sums(f32, 3, 3000 * bucket + 10));
    }
  }));
}

TEST(ReduceScatter, GivesEachRankItsPart) {
  const Cuts cuts = {0, 32'768, 32'768, 40'000};
  const Bytes sums = plain_sums(f16, 5, 40'000);
  expect_all_well(run_as_threads(3, [&](Transport& transport) {
    Collectives collectives(transport, 5, 20s, 8192);
    std::vector<Bytes> values;
    std::vector<const std::byte*> pointers;
    for (int shard = collectives.own_shards().begin; shard < collectives.own_shards().end; ++shard)
      values.push_back(summands(f16, shard, 40'000));
    for (const Bytes& each : values) pointers.push_back(each.data());
    const auto rank = static_cast<std::size_t>(transport.rank());
    Bytes out(static_cast<std::size_t>(cuts[rank + 1] - cuts[rank]) * 2);
    collectives.reduce_scatter(f16, pointers, cuts, out);
    EXPECT_EQ(out, Bytes(sums.begin() + cuts[rank] * 2, sums.begin() + cuts[rank + 1] * 2));
  }));
}

TEST(AllGather, JoinsUnevenParts) {
  const Cuts cuts = {0, 3, 3, 10'000, 10'001};
  Bytes whole = summands(f64, 0, 10'001);
  expect_all_well(run_as_threads(4, [&](Transport& transport) {
    Collectives collectives(transport, 4, 20s, 4096);
    Bytes all(whole.size());
    const auto rank = static_cast<std::size_t>(transport.rank());
    std::copy(whole.begin() + cuts[rank] * 8, whole.begin() + cuts[rank + 1] * 8, all.begin() + cuts[rank] * 8);
    collectives.all_gather(f64, cuts, all);
    EXPECT_EQ(all, whole);
  }));
}

TEST(Broadcast, FromAnyRank) {
  expect_all_well(run_as_threads(4, [](Transport& transport) {
    Collectives collectives(transport, 4, 20s, 4096);
    for (int root = 0; root < 4; ++root) {
      Bytes bytes = summands(u8, transport.rank(), 9999);
      collectives.broadcast(root, bytes);
      EXPECT_EQ(bytes, summands(u8, root, 9999));
    }
  }));
}

TEST(Barrier, NobodyIsThroughBeforeAllAreThere) {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    std::atomic<int> here = 0;
    expect_all_well(run_as_threads(ranks, [&](Transport& transport) {
      Collectives collectives(transport, ranks, 20s);
      for (int round = 1; round <= 3; ++round) {
        ++here;
        collectives.barrier();
        EXPECT_GE(here.load(), round * ranks);
        collectives.barrier();
      }
    }));
  }
}

TEST(Collectives, SayWhoIsMissing) {
  const auto problems = run_as_threads(3, [](Transport& transport) {
    Collectives collectives(transport, 3, 200ms);
    collectives.begin_step(7);
    if (transport.rank() == 1) return;
    collectives.barrier();
  });
  EXPECT_EQ(problems[1], "");
  for (const std::size_t rank : {0u, 2u}) expect_says(problems[rank], "barrier 1 of step 7: rank ");
  expect_says(problems[0] + problems[2], "rank 1 (here) sent nothing for 0.2 s");
}

TEST(Collectives, RefuseWhatHasNoSum) {
  expect_all_well(run_as_threads(1, [](Transport& transport) {
    Collectives collectives(transport, 1, 1s);
    Bytes one(8);
    const std::byte* const pointer = one.data();
    expect_says(error_of<InvalidArgument>([&] { collectives.all_reduce(boolean, {&pointer, 1}, one); }), "booleans");
  }));
  const auto problems = run_as_threads(2, [](Transport& transport) { Collectives(transport, 1, 1s); });
  expect_says(problems[0], "there are 1 shards, expected at least one for each of the 2 ranks");
}

TEST(Collectives, OthersLengthsAreAnError) {
  const auto problems = run_as_threads(2, [](Transport& transport) {
    Collectives collectives(transport, 2, 2s);
    all_reduced(collectives, f32, transport.rank() == 0 ? 100 : 101);
  });
  for (const std::string& problem : problems) expect_says(problem, "all_reduce 1 of step 0: rank ");
  expect_says(problems[0] + problems[1], " bytes where ");
}

}  // namespace
}  // namespace gradus::collectives_test
