/// Gradients of tables over shards: rows travel, with the bits of whole tables, for any number of replicas and ranks;
/// and sums in bf16.
#include <gtest/gtest.h>
#include "gradus/gradus.h"
#include "tests/distribute/grids.h"
#include "tests/distribute/processes_as_ranks.h"
#include "tests/distribute/trained.h"
#include "tests/errors.h"

namespace gradus::table_gradients_test {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t extent = 5000, width = 24;

Tensor indices_of(std::int64_t rows, std::int64_t high = extent) {
  return random::integers({rows, 3}, {.high = high, .seed = 4});
}

/// The gradient of a table that is read twice. `in_full`: as a whole, since it is multiplied by 1 before.
Gradients gradient_of(const Strategy& strategy, const Variable& table, const Tensor& indices, bool in_full) {
  const auto step = [&](Tensor at) {
    GradientTape tape;
    const Tensor t = in_full ? table.value() * 1 : table.value();
    const DType wide = computed_in(table.dtype());
    const Tensor read = cast(gather(t, at), wide), again = cast(gather(t, at.rows(0, 1)), wide);
    const Loss loss = Loss::mean(reduce_mean(sin(read) * read, {.axis = {1, 2}}) + 1e-3 * reduce_sum(square(again)));
    Variables all;
    all.add(table);
    return tape.gradient(loss, all);
  };
  return strategy.run(step, indices);
}

TEST(TableGradients, HaveTheBitsOfTheWholeTable) {
  for (const DType type : {f32, f64, bf16}) {
    const Variable table(cast(random::normal({extent, width}, {.seed = 1}), type), "table");
    for (const int shards : type == f32 ? std::vector{1, 2, 3, 5, 8} : std::vector{5})
      for (const std::int64_t rows : {40, 37}) {
        const Tensor indices = concat({indices_of(rows - 20), indices_of(20, 7)}, 0);  // many of one row
        const MirroredStrategy strategy({.devices = devices(1), .micro_shards = shards});
        const Gradients by_rows = gradient_of(strategy, table, indices, false);
        const Gradients in_full = gradient_of(strategy, table, indices, true);
        EXPECT_TRUE(by_rows.mean(0).is_rows() && !in_full.mean(0).is_rows());
        EXPECT_TRUE(bitwise_equal(by_rows[0], in_full[0])) << type << ", " << shards << " shards of " << rows;
      }
  }
}

TEST(TableGradients, AreWholeTablesWhereThoseAreSmaller) {
  const Variable table(random::normal({extent, width}, {.seed = 1}), "table");
  const MirroredStrategy strategy({.devices = devices(1), .micro_shards = 4});
  // The rows of a shard, and one of them again, of 3 places each. Of 3 rows one shard has none.
  for (const auto& [rows, by_rows] : {std::pair{1660, true}, {1664, false}, {3, false}}) {
    const Gradients found = gradient_of(strategy, table, indices_of(rows), false);
    EXPECT_EQ(found.mean(0).is_rows(), by_rows) << rows;
    EXPECT_TRUE(bitwise_equal(found[0], gradient_of(strategy, table, indices_of(rows), true)[0])) << rows;
  }
}

/// What is read does not grow with the rows of a shard, of which there are two lengths.
TEST(TableGradients, OfPlacesThatAreTheSameOnAllShards) {
  const Variable table(random::normal({extent, width}, {.seed = 1}), "table");
  const Tensor always = indices_of(2);
  for (const std::int64_t rows : {7, 8, 13}) {
    const auto gradient = [&](bool in_full) {
      return MirroredStrategy({.devices = devices(2), .micro_shards = 4})
          .run(
              [&](Tensor x) {
                GradientTape tape;
                const Tensor read = gather(in_full ? table.value() * 1 : table.value(), always);
                const Loss loss = Loss::mean(square(x) * reduce_sum(square(read)));
                Variables all;
                all.add(table);
                return tape.gradient(loss, all);
              },
              random::normal({rows}, {.seed = 2}));
    };
    EXPECT_TRUE(gradient(false).mean(0).is_rows());
    EXPECT_TRUE(bitwise_equal(gradient(false)[0], gradient(true)[0])) << rows;
  }
}

struct Way {
  std::string name;
  std::function<Optimizer()> optimizer;
};
const std::vector<Way>& ways() {
  static const std::vector<Way> all = {
      {"SGD", [] { return SGD({.learning_rate = 0.1}); }},
      {"Adam", [] { return Adam({.global_clipnorm = 0.1}); }},
      {"Adagrad", [] { return Adagrad({.learning_rate = 0.1, .clipvalue = 0.01}); }},
      {"Lamb", [] { return Lamb({.learning_rate = 1e-2}); }},
      {"lazy AdamW", [] { return AdamW({.weight_decay = 0.1, .use_ema = true, .lazy = true}); }}};
  return all;
}

std::string trained(const Strategy& strategy, const Way& way, double* bytes = nullptr) {
  set_seed(1);
  Sequential model{Embedding(extent, width), Flatten(), Dense(1)};
  Optimizer optimizer = way.optimizer();
  const Tensor x = indices_of(24), y = random::normal({24, 1}, {.seed = 5});
  const auto step = function([&](Tensor in, Tensor ys) {
    GradientTape tape;
    const Loss loss = MeanSquaredError()(ys, model(in, training));
    optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
    return loss;
  });
  for (const std::int64_t rows : {24, 24, 17}) strategy.run(step, x.rows(0, rows), y.rows(0, rows));
  if (bytes) *bytes = strategy.explain(step).exchanged_bytes;
  strategy.gather(optimizer.variables());
  std::string all;
  for (const Variable& v : model.variables() + optimizer.variables())
    all.append(static_cast<const char*>(v.value().host()), v.value().bytes());
  return all;
}

TEST(TableGradients, TrainWithTheSameBitsOnAnyNumberOfReplicas) {
  for (const Way& way : ways()) {
    const auto with = [&](int replicas) {
      return trained(MirroredStrategy({.devices = devices(replicas), .micro_shards = 4}), way);
    };
    const std::string one = with(1);
    EXPECT_TRUE(one == with(2) && one == with(3)) << way.name;
  }
}

MultiWorkerMirroredStrategy strategy_of(const ProcessOfTest& process, MultiWorkerOptions options) {
  options.micro_shards = 4;
  return MultiWorkerMirroredStrategy({.rank = process.rank,
                                      .timeout = 30s,
                                      .size = process.ranks,
                                      .meeting_point = "127.0.0.1:" + process.option,
                                      .heartbeat = 5s,
                                      .credentials = {.token = "secret"}},
                                     options);
}

const ProcessJob tables_job("tables of ranks", [](const ProcessOfTest& process) {
  const MultiWorkerMirroredStrategy strategy = strategy_of(process, {});
  for (const Way& way : ways()) {
    double bytes = 0;
    check(trained(strategy, way, &bytes) == trained(MirroredStrategy({.devices = {cpu(0)}, .micro_shards = 4}), way),
          text("other bits: ", way.name));
    // 4 shards of up to 18 places, of the mean over all programs so far; the table has 480,000 bytes.
    check(process.ranks == 1 || (bytes > 0 && bytes < 4 * 18 * (width + 1) * 4 + 2000), text(bytes, " bytes a step"));
  }
});
const ProcessJob divided_tables_job("tables of ranks that divide slots", [](const ProcessOfTest& process) {
  const MultiWorkerMirroredStrategy strategy = strategy_of(process, {.shard_optimizer = true});
  for (const Way& way : ways())
    check(trained(strategy, way) == trained(MirroredStrategy({.devices = {cpu(0)}, .micro_shards = 4}), way),
          text("other bits: ", way.name));
});

/// A step of a model without tables: the bytes of its variables, and those that travel in a step.
std::pair<std::string, double> stepped(const Strategy& strategy) {
  set_seed(1);
  Sequential model{Dense(200, tanh), Dense(3)};
  AdamW optimizer({.learning_rate = 1e-2, .global_clipnorm = 0.5});
  const Tensor x = random::normal({22, 50}, {.seed = 4}), y = random::normal({22, 3}, {.seed = 5});
  const auto step = function([&](Tensor in, Tensor ys) {
    GradientTape tape;
    const Loss loss = MeanSquaredError()(ys, model(in, training));
    optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
    return loss;
  });
  for (int i = 0; i < 3; ++i) strategy.run(step, x, y);
  std::string all;
  for (const Variable& v : model.variables()) all.append(static_cast<const char*>(v.value().host()), v.value().bytes());
  return {all, strategy.explain(step).exchanged_bytes};
}

const ProcessJob narrow_job("sums in bf16", [](const ProcessOfTest& process) {
  const auto [narrow, half] = stepped(strategy_of(process, {.bf16_sums = true}));
  check(narrow == stepped(MirroredStrategy({.devices = {cpu(0)}, .micro_shards = 4, .bf16_sums = true})).first,
        "other bits than those of one process");
  if (process.ranks == 1) return;
  ProcessOfTest next = process;
  next.option = std::to_string(std::stoi(process.option) + 1);
  const double all = stepped(strategy_of(next, {})).second;
  check(half < 0.51 * all, text(half, " bytes in place of ", all));
});

TEST(NarrowSums, AreNearThoseInF32) {
  const auto with = [](bool narrow, int replicas) {
    return stepped(MirroredStrategy({.devices = devices(replicas), .micro_shards = 4, .bf16_sums = narrow})).first;
  };
  const std::string wide = with(false, 1), narrow = with(true, 1);
  EXPECT_NE(wide, narrow);
  EXPECT_EQ(narrow, with(true, 2));
  EXPECT_EQ(narrow, with(true, 4));
  ASSERT_EQ(wide.size(), narrow.size());
  float most = 0;
  for (std::size_t at = 0; at < wide.size(); at += sizeof(float)) {
    float a = 0, b = 0;
    std::memcpy(&a, wide.data() + at, sizeof a);
    std::memcpy(&b, narrow.data() + at, sizeof b);
    most = std::max(most, std::abs(a - b));
  }
  EXPECT_LT(most, 0.03F);  // three steps of Adam at 1e-2: a sign that turns moves a weight by up to two of them
  // Each contribution is rounded, and each sum of two.
  const MirroredStrategy strategy({.devices = devices(2), .micro_shards = 4, .bf16_sums = true});
  const Variable w(ones({3}), "w");
  const auto gradient = strategy.run(
      [&](Tensor x) {
        GradientTape tape;
        Variables all;
        all.add(w);
        return tape.gradient(Loss::mean(x * reduce_sum(w.value())), all);
      },
      constant(std::vector<float>{1, 0.00390625f, 1.00390625f, 3}));
  // 1 + 2^-8 is rounded to 1 where it is added, and before: a tie goes to the even one. 1 + 3 = 4, 1 + 4 = 5.
  EXPECT_EQ(gradient[0].to_vector<float>(), (std::vector<float>{1.25, 1.25, 1.25}));
}

class TablesOfRanks : public testing::Test {
 protected:
  void SetUp() override {
    static const std::string problem = problem_of_ucx() + problem_of_grpc();
    if (!problem.empty()) GTEST_SKIP() << problem;
  }
  static void run(const std::string& job, const std::vector<int>& usual, const std::vector<int>& all) {
    for (const int ranks : numbers_of_ranks(usual, all)) {
      SCOPED_TRACE(text(job, ", ", ranks, " ranks"));
      expect_all_well(run_as_processes(job, ranks, std::to_string(free_port()), {}, 60s));
      if (!takes_whole_grids()) continue;
      SCOPED_TRACE("by TCP");
      expect_all_well(run_as_processes(job, ranks, std::to_string(free_port()), {{"UCX_TLS", "tcp,self"}}, 60s));
    }
  }
};

TEST_F(TablesOfRanks, TravelAsRowsWithTheBitsOfOneProcess) { run("tables of ranks", {2, 3}, {1, 2, 3, 4}); }
TEST_F(TablesOfRanks, HaveTheSameBitsWhereSlotsAreDivided) {
  run("tables of ranks that divide slots", {2}, {1, 2, 3, 4});
}
TEST_F(TablesOfRanks, AddUpInBf16WithHalfTheBytes) { run("sums in bf16", {1, 3}, {1, 2, 3, 4}); }

}  // namespace
}  // namespace gradus::table_gradients_test
