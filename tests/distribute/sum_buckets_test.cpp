/// Sums on their way between ranks: their bits, in whatever order a rank comes to its parts, and that they move while
/// it computes.
#include "gradus/distribute/collectives/sum_buckets.h"
#include <gtest/gtest.h>
#include <algorithm>
#include <cstring>
#include <random>
#include "tests/distribute/faulty_transport.h"
#include "tests/distribute/summands.h"
#include "tests/distribute/threads_as_ranks.h"

namespace gradus::detail::sum_buckets_test {
namespace {

using namespace std::chrono_literals;

struct Wanted {
  DType type;
  std::int64_t count;
};
// Small ones between large ones, several types, one of a bucket alone.
const std::vector<Wanted> wanted{{f32, 10}, {f32, 3000}, {f64, 7}, {f32, 300'000}, {bf16, 100},
                                 {f32, 64}, {i64, 5},    {f32, 0}, {f32, 1}};

std::vector<ShardRun::Sum> sums() {
  std::vector<ShardRun::Sum> all;
  for (const Wanted& each : wanted) all.push_back({Spec{each.type, {each.count}}, {}});
  return all;
}
void give_parts(ShardRun::Sum& sum, ShardRange shards) {
  for (int shard = shards.begin; shard < shards.end; ++shard) {
    const Bytes values = summands(sum.spec.dtype, shard, sum.spec.shape[0]);
    Ref<Buffer> buffer = Buffer::allocate(static_cast<std::int64_t>(values.size()));
    if (!values.empty()) std::memcpy(buffer->data(), values.data(), values.size());
    sum.parts.push_back({shard, std::move(buffer)});
  }
}
void expect_sums(const std::vector<ShardRun::Sum>& all, int shards) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Bytes expected = plain_sums(wanted[i].type, shards, wanted[i].count);
    ASSERT_EQ(all[i].result->bytes(), static_cast<std::int64_t>(expected.size()));
    EXPECT_TRUE(std::ranges::equal(std::span(all[i].result->data<std::byte>(), expected.size()), expected)) << i;
  }
}

TEST(SumBuckets, HaveTheBitsOfTheTreeInWhateverOrderPartsCome) {
  constexpr int shards = 5;
  for (const int ranks : {1, 2, 3})
    expect_all_well(run_as_threads(ranks, [&](Transport& transport) {
      Collectives collectives(transport, shards, 20s);
      for (std::uint64_t step = 1; step <= 4; ++step) {
        collectives.begin_step(step);
        std::vector<ShardRun::Sum> all = sums();
        std::vector<std::size_t> order(all.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
        std::mt19937 random(static_cast<unsigned>(step) * 7 + static_cast<unsigned>(transport.rank()));
        std::ranges::shuffle(order, random);
        SumBuckets buckets(collectives, all);
        for (const std::size_t i : order) {
          give_parts(all[i], collectives.own_shards());
          if (step < 4) buckets.is_there(i), buckets.drive();  // else all of them begin at the end
        }
        Traffic traffic;
        buckets.finish(traffic);
        expect_sums(all, shards);
        EXPECT_GT(traffic.buckets, 4);
        EXPECT_LT(traffic.buckets, static_cast<std::int64_t>(all.size())) << "small ones travel together";
      }
    }));
}

/// Every message comes 2 ms late. A rank that drives between its kernels has nothing left to wait for.
TEST(SumBuckets, MoveWhileTheRankComputes) {
  constexpr int shards = 4;
  const Wrap slow = [](int, std::unique_ptr<Transport> inner) {
    return std::make_unique<FaultyTransport>(std::move(inner), std::vector<Fault>{{.is_lasting = true, .delay = 2ms}});
  };
  expect_all_well(run_as_threads(
      2,
      [&](Transport& transport) {
        Collectives collectives(transport, shards, 20s);
        collectives.begin_step(1);
        std::vector<ShardRun::Sum> all = sums();
        SumBuckets buckets(collectives, all);
        for (std::size_t i = 0; i < all.size(); ++i) {
          give_parts(all[i], collectives.own_shards());
          buckets.is_there(i);
        }
        const auto late = std::chrono::steady_clock::now() + 20s;
        while (!buckets.are_done() && std::chrono::steady_clock::now() < late) buckets.drive();
        EXPECT_TRUE(buckets.are_done());
        Traffic traffic;
        buckets.finish(traffic);
        expect_sums(all, shards);
        EXPECT_GE(traffic.seconds, 0.002) << "what was under way counts";
        dynamic_cast<FaultyTransport&>(transport).send_late();
      },
      slow));
}

}  // namespace
}  // namespace gradus::detail::sum_buckets_test
