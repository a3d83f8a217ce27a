/// Collectives as ops within a step: their values, gradients in both modes, batching, the same bits for any number of
/// replicas and ranks, and what is refused.
#include <gtest/gtest.h>
#include "gradus/gradus.h"
#include "tests/distribute/processes_as_ranks.h"
#include "tests/distribute/trained.h"
#include "tests/errors.h"

namespace gradus::strategy_collectives_test {
namespace {

using namespace std::chrono_literals;

/// Rows of shard i of m, of n.
std::pair<std::int64_t, std::int64_t> rows_of(std::int64_t i, std::int64_t m, std::int64_t n) {
  return {(i * n + m - 1) / m, ((i + 1) * n + m - 1) / m};
}

TEST(StrategyCollectives, GatherTheRowsOfAllShards) {
  for (const std::int64_t n : {16, 13, 3}) {
    const Tensor x = random::normal({n, 3}, {.dtype = f64, .seed = 1});
    const Tensor whole_rows = random::integers({n, 2}, {.high = 9, .seed = 2});
    for (const int replicas : {1, 2, 4}) {
      const MirroredStrategy strategy({.devices = devices(replicas), .micro_shards = 4});
      const auto [rows, columns, integers, truths] = strategy.run(
          [](Tensor part, Tensor whole) {
            return std::tuple{all_gather(part), all_gather(transpose(2 * part), -1), all_gather(whole, 0),
                              all_gather(part > 0, 0)};
          },
          x, whole_rows);
      for (int replica = 0; replica < replicas && n > 3; ++replica) {
        EXPECT_TRUE(bitwise_equal(rows[static_cast<std::size_t>(replica)], x)) << n << ' ' << replicas;
        EXPECT_TRUE(bitwise_equal(columns[static_cast<std::size_t>(replica)], transpose(2 * x))) << n;
      }
      EXPECT_TRUE(bitwise_equal(rows[0], x)) << n << ' ' << replicas;
      EXPECT_TRUE(bitwise_equal(integers[0], whole_rows)) << n;
      EXPECT_TRUE(bitwise_equal(truths[0], x > 0)) << n;
    }
  }
}

TEST(StrategyCollectives, GatherWhatIsTheSameOnAllShards) {
  const MirroredStrategy strategy({.devices = devices(2), .micro_shards = 4});
  const Tensor w = random::normal({5}, {.seed = 1});
  const auto [common, sums] = strategy.run(
      [&](Tensor x) { return std::pair{all_gather(w), all_gather(reduce_sum(x, {.axis = {0}, .keepdims = true}))}; },
      ones({13, 2}));
  EXPECT_TRUE(bitwise_equal(common[0], concat({w, w, w, w})));
  EXPECT_EQ(sums[0].to_vector<float>(), (std::vector<float>{4, 4, 3, 3, 3, 3, 3, 3}));
}

TEST(StrategyCollectives, ScatterTheSum) {
  for (const std::int64_t n : {16, 13}) {
    const Tensor x = random::normal({n, 4, 8}, {.dtype = f64, .seed = 1});
    for (const int replicas : {1, 2, 4}) {
      const MirroredStrategy strategy({.devices = devices(replicas), .micro_shards = 4});
      const auto [along_0, along_1] = strategy.run(
          [](Tensor part) {
            const Tensor sum = reduce_sum(part, {.axis = {0}});
            return std::pair{reduce_scatter(sum), transpose(reduce_scatter(sum, -1))};
          },
          x);
      // The tree over the shards' numbers.
      Tensors parts;
      for (int i = 0; i < 4; ++i) {
        const auto [begin, end] = rows_of(i, 4, n);
        parts.push_back(reduce_sum(x.rows(begin, end), {.axis = {0}}));
      }
      const Tensor sum = (parts[0] + parts[1]) + (parts[2] + parts[3]);
      EXPECT_TRUE(bitwise_equal(along_0.concat(), sum)) << n << ' ' << replicas;
      EXPECT_TRUE(bitwise_equal(along_1.concat(), transpose(sum))) << n << ' ' << replicas;
    }
  }
}

TEST(StrategyCollectives, BroadcastAShardBitForBit) {
  const Tensor x = constant(std::vector<float>{1, 2, -0.0f, 1e-41f, std::nanf(""), 6, 7, 8});
  for (const int root : {0, 1, 3}) {
    for (const int replicas : {1, 2, 4}) {
      const MirroredStrategy strategy({.devices = devices(replicas), .micro_shards = 4});
      const auto [numbers, truths] =
          strategy.run([&](Tensor part) { return std::pair{broadcast(part, root), broadcast(part > 2, root)}; }, x);
      EXPECT_TRUE(bitwise_equal(numbers[0], x.rows(2 * root, 2 * root + 2))) << root;
      EXPECT_TRUE(bitwise_equal(truths[0], x.rows(2 * root, 2 * root + 2) > 2)) << root;
    }
  }
  const MirroredStrategy strategy({.devices = devices(2), .micro_shards = 4});  // of 13 rows: shards of two lengths
  const auto means = strategy.run([](Tensor part) { return broadcast(reduce_mean(part), 3); }, range(13, f32));
  EXPECT_EQ(means[0].item(), 11);
}

/// A loss of the whole batch that each shard computes for its rows.
using StepLoss = std::function<Loss(Tensor w, Tensor x, Tensor rows)>;

Tensor gradient_of(const Strategy& strategy, const Variable& w, const StepLoss& loss_of, const Tensor& x) {
  Tensor found;
  const auto step = [&](Tensor part) {
    GradientTape tape;
    const Loss loss = loss_of(w.value(), part, part);
    Variables all;
    all.add(w);
    return tape.gradient(loss, all);
  };
  return strategy.run(step, x)[0];
}

TEST(StrategyCollectives, HaveTheGradientsOfTheWholeBatch) {
  struct Case {
    const char* name;
    StepLoss on_shards, on_all;  // the same loss: of a shard's rows, and of the batch
    std::vector<std::int64_t> rows = {12, 13, 3};
  };
  const auto contrast = [](const Tensor& own, const Tensor& all) {  // each row against all others
    return Loss::mean(reduce_mean(exp(matmul(own, transpose(all)) * 0.3), {.axis = {1}}));
  };
  const auto columns = [](const Tensor& own, const Tensor& all) { return Loss::mean(square(own) * reduce_sum(all)); };
  const std::vector<Case> cases = {
      {"all_gather",
       [&](Tensor w, Tensor x, Tensor) {
         const Tensor z = matmul(x, w);
         return contrast(z, all_gather(z));
       },
       [&](Tensor w, Tensor x, Tensor) { return contrast(matmul(x, w), matmul(x, w)); }},
      {"all_gather along axis 1",
       [&](Tensor w, Tensor x, Tensor) {
         const Tensor z = matmul(x, w);
         return contrast(z, transpose(all_gather(transpose(z), 1)));
       },
       [&](Tensor w, Tensor x, Tensor) { return contrast(matmul(x, w), matmul(x, w)); }},
      {"reduce_scatter and all_gather",
       [&](Tensor w, Tensor x, Tensor) {
         const Tensor z = reduce_sum(sin(matmul(x, w)), {.axis = {0}});  // [12]
         return columns(matmul(x, w), square(all_gather(reduce_scatter(z))));
       },
       [&](Tensor w, Tensor x, Tensor) {
         return columns(matmul(x, w), square(reduce_sum(sin(matmul(x, w)), {.axis = {0}})));
       }},
      {"broadcast",
       [&](Tensor w, Tensor x, Tensor) {
         const Tensor z = matmul(x, w);
         return columns(z, square(broadcast(z, 0)));
       },
       [&](Tensor w, Tensor x, Tensor) {
         const Tensor z = matmul(x, w);
         return columns(z, square(z.rows(0, rows_of(0, 3, x.shape()[0]).second)));
       },
       {12}},
  };
  const Variable w(random::normal({4, 12}, {.dtype = f64, .seed = 3}) * 0.3, "w");
  for (const Case& each : cases)
    for (const std::int64_t rows : each.rows) {
      const Tensor x = random::normal({rows, 4}, {.dtype = f64, .seed = 1});
      const Tensor whole = [&] {
        GradientTape tape;
        return tape.gradient(each.on_all(w.value(), x, x), w);
      }();
      for (const int replicas : {1, 3}) {
        const MirroredStrategy strategy({.devices = devices(replicas), .micro_shards = 3});
        EXPECT_LT(max_abs_difference(whole, gradient_of(strategy, w, each.on_shards, x)), 1e-11)
            << each.name << ", " << rows << " rows, " << replicas << " replicas";
      }
      // Along a direction, by differences of the loss.
      const MirroredStrategy strategy({.devices = devices(2), .micro_shards = 3});
      const Tensor direction = random::normal({4, 12}, {.dtype = f64, .seed = 9});
      const auto loss_at = [&](double step) {
        return strategy.run([&](Tensor part) { return each.on_shards(w.value() + step * direction, part, part); }, x)
            .item();
      };
      const double slope = (loss_at(1e-5) - loss_at(-1e-5)) / 2e-5;
      EXPECT_NEAR(reduce_sum(whole * direction).item(), slope, 1e-6 * std::max(1.0, std::abs(slope))) << each.name;
    }
}

TEST(StrategyCollectives, HaveTangents) {
  const MirroredStrategy strategy({.devices = devices(2), .micro_shards = 4});
  const Tensor x = random::normal({8, 4}, {.dtype = f64, .seed = 1}),
               dx = random::normal({8, 4}, {.dtype = f64, .seed = 2});
  const auto forward = [](const Tensor& in) {
    const Tensor all = all_gather(in), scattered = reduce_scatter(in, 1), from = broadcast(in, 2);
    return std::tuple{all, scattered, from};
  };
  const auto [direct_all, direct_scattered, direct_from] = strategy.run([&](Tensor t) { return forward(t); }, dx);
  const auto [all, scattered, from] = strategy.run(
      [&](Tensor part, Tensor tangent) {
        const auto along = [&](auto f) { return jvp(f, part, tangent).second; };
        return std::tuple{along([](Tensor in) { return all_gather(in); }),
                          along([](Tensor in) { return reduce_scatter(in, 1); }),
                          along([](Tensor in) { return broadcast(in, 2); })};
      },
      x, dx);
  EXPECT_LT(max_abs_difference(all[0], direct_all[0]), 1e-14);
  EXPECT_LT(max_abs_difference(scattered.concat(), direct_scattered.concat()), 1e-14);
  EXPECT_LT(max_abs_difference(from[0], direct_from[0]), 1e-14);
}

/// On all rows of a vectorized_map at once: what a loop over them gives.
TEST(StrategyCollectives, WorkInVectorizedMap) {
  for (const std::int64_t n : {8, 7}) {  // shards of one length, and of two
    const Tensor x = random::normal({n, 3, 4}, {.dtype = f64, .seed = 1});
    const MirroredStrategy strategy({.devices = devices(2), .micro_shards = 4});
    const auto all_of = [](const Tensor& rows) {  // [n, 4]
      return Tensors{all_gather(2 * rows), all_reduce_sum(reduce_sum(rows, {.axis = {0}})),
                     all_reduce_mean(reduce_sum(rows, {.axis = {0}})), reduce_scatter(reduce_sum(rows, {.axis = {0}})),
                     broadcast(reduce_sum(rows, {.axis = {0}}), 1)};
    };
    for (std::size_t k = 0; k < 5; ++k) {
      const auto mapped = strategy.run(
          [&](Tensor part) {
            return vectorized_map([&](Tensor rows) { return all_of(rows)[k]; }, transpose(part, {1, 0, 2}));
          },
          x);
      const auto looped = strategy.run(
          [&](Tensor part) {
            Tensors each;
            for (int i = 0; i < 3; ++i)
              each.push_back(all_of(squeeze(slice(part, {0, i, 0}, {part.shape()[0], 1, 4}), {1}))[k]);
            return stack(each);
          },
          x);
      for (std::size_t replica = 0; replica < 2; ++replica)
        EXPECT_TRUE(bitwise_equal(mapped[replica], looped[replica])) << k << ' ' << n;
    }
  }
}

TEST(StrategyCollectives, OutsideABatchIsOneShard) {
  const Tensor x = random::normal({4, 2}, {.seed = 1});
  for (const Tensor& same : {all_gather(x), all_gather(x, -1), reduce_scatter(x, 1), broadcast(x), all_reduce_mean(x)})
    EXPECT_TRUE(bitwise_equal(same, x));
  expect_error<OutOfRange>([&] { broadcast(x, 1); }, {"root is 1", "1 shards"});
  expect_error<InvalidArgument>([&] { all_gather(ones({})); }, {"all_gather", "reshape(x, {1})"});
  expect_error<Error>([&] { all_gather(x, 2); }, {"axis"});
  expect_error<InvalidArgument>([&] { reduce_scatter(x > 0); }, {"booleans", "i32"});
}

TEST(StrategyCollectives, RefuseWhatDoesNotFit) {
  const MirroredStrategy strategy({.devices = devices(2), .micro_shards = 4});
  const auto fails = [&](const auto& step, std::int64_t rows, std::initializer_list<const char*> says) {
    expect_error<Error>([&] { strategy.run(step, ones({rows, 3})); }, says);
  };
  fails([](Tensor x) { return reduce_scatter(x, 1); }, 8, {"reduce_scatter", "multiple", "4 shards"});
  fails([](Tensor x) { return broadcast(x, 4); }, 8, {"broadcast", "root is 4"});
  fails([](Tensor x) { return broadcast(x, -1); }, 8, {"broadcast", "root is -1"});
  fails([](Tensor x) { return broadcast(x, 0); }, 7, {"two lengths"});
  fails([](Tensor) { return all_gather(ones({2})); }, 7, {"in proportion"});  // taken for a shard's 2 rows
  fails([](Tensor x) { return cond(reduce_sum(x) > 0, [&] { return all_gather(x); }, [&] { return x; }); }, 8,
        {"inside"});
  fails(
      [](Tensor x) {
        return while_loop([](Tensor v) { return reduce_sum(v) < 10; }, [](Tensor v) { return all_reduce_mean(v) + 1; },
                          x);
      },
      8, {"inside"});
}

std::string bytes_of_collectives(const Strategy& strategy) {
  std::string bytes;
  for (const std::int64_t n : {16, 13, 3}) {
    const Tensor x = random::normal({n, 8}, {.seed = 1});
    const auto [all, scattered, from, gradients] = strategy.run(
        [&](Tensor part) {
          Variables none;
          const Tensor sum = reduce_sum(part, {.axis = {0}, .keepdims = true});
          const Tensor divisible = concat({sum, sum, 2 * sum, sum, sum, 3 * sum}, 1);
          GradientTape tape;
          tape.watch(part);
          const Tensor target = reduce_sum(square(all_gather(part))) + reduce_sum(broadcast(sum, n > 3 ? 3 : 1) * part);
          return std::tuple{all_gather(part), reduce_scatter(divisible, 1), broadcast(sum, 2),
                            tape.gradient(target, part)};
        },
        x);
    for (const PerReplica<Tensor>& each : {all, scattered, from, gradients}) {
      const Tensor value = each.concat();
      bytes.append(static_cast<const char*>(value.host()), value.bytes());
    }
  }
  return bytes;
}

const ProcessJob collectives_job("collectives of ranks", [](const ProcessOfTest& process) {
  const MultiWorkerMirroredStrategy strategy({.rank = process.rank,
                                              .timeout = 30s,
                                              .size = process.ranks,
                                              .meeting_point = "127.0.0.1:" + process.option,
                                              .heartbeat = 3s,
                                              .credentials = {.token = "secret"}},
                                             {.micro_shards = 4});
  check(bytes_of_collectives(strategy) ==
            bytes_of_collectives(MirroredStrategy({.devices = {cpu(0)}, .micro_shards = 4})),
        "other bits");
});

TEST(StrategyCollectives, HaveTheSameBitsBetweenProcesses) {
  if (const std::string problem = problem_of_ucx() + problem_of_grpc(); !problem.empty()) GTEST_SKIP() << problem;
  for (const int ranks : {1, 2, 3, 4})
    expect_all_well(run_as_processes("collectives of ranks", ranks, std::to_string(free_port()), {}, 60s));
}

}  // namespace
}  // namespace gradus::strategy_collectives_test
