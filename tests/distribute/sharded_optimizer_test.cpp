/// State of optimizers that ranks divide among themselves: the bits of one process, memory divided by the ranks,
/// checkpoints with the same bytes. Skipped where UCX or gRPC is not there.
#include <gtest/gtest.h>
#include <algorithm>
#include <bit>
#include <fstream>
#include <ranges>
#include "gradus/backend/divided_value.h"
#include "gradus/base/hash.h"
#include "gradus/gradus.h"
#include "tests/distribute/grids.h"
#include "tests/distribute/processes_as_ranks.h"
#include "tests/distribute/trained.h"
#include "tests/errors.h"
#include "tests/test_directory.h"

namespace gradus::sharded_optimizer_test {
namespace {

using namespace std::chrono_literals;

Cluster cluster_of_test(const ProcessOfTest& process) {
  return {.rank = process.rank,
          .timeout = 60s,
          .size = process.ranks,
          .meeting_point = "127.0.0.1:" + process.option,
          .heartbeat = 10s,
          .credentials = {.token = "secret"}};
}
MultiWorkerMirroredStrategy divided(const ProcessOfTest& process, int micro_shards = 4) {
  return MultiWorkerMirroredStrategy(cluster_of_test(process), {.micro_shards = micro_shards, .shard_optimizer = true});
}
MirroredStrategy whole(int micro_shards = 4) {
  return MirroredStrategy({.devices = {cpu(0)}, .micro_shards = micro_shards});
}

/// Kernels of one, two and five blocks of the contract's reductions, the last ones short; columns; scalars.
Sequential model_of(const ModelOptions& options = {}) {
  return Sequential({Dense(300, tanh), BatchNormalization(), Dense(500, tanh), Dense(7), Dense(3)}, options);
}

struct Way {
  std::string name;
  std::function<Optimizer()> optimizer;
  std::optional<Policy> policy = {};
  bool clips_by_hand = false;
};

const std::vector<Way>& ways() {
  static const std::vector<Way> all = {
      {"Adam", [] { return Adam({.learning_rate = 1e-2}); }},
      {"SGD", [] { return SGD(); }},
      {"momentum", [] { return SGD({.learning_rate = 0.1, .momentum = 0.9, .nesterov = true}); }},
      {"global norm", [] { return AdamW({.weight_decay = 0.01, .global_clipnorm = 0.05}); }},
      {"norms", [] { return Adam({.amsgrad = true, .clipnorm = 0.01}); }},
      {"norms of Lamb", [] { return Lamb({.learning_rate = 1e-2}); }},
      {"averages", [] { return Nadam({.use_ema = true, .ema_momentum = 0.9, .ema_overwrite_frequency = 3}); }},
      {"Ftrl", [] { return Ftrl({.l1_regularization_strength = 1e-3}); }},
      {"by hand", [] { return RMSprop({.momentum = 0.5, .centered = true}); }, {}, true},
      {"f16", [] { return Adam(); }, mixed_float16},
      {"bf16", [] { return Lion({.learning_rate = 1e-3}); }, mixed_bfloat16},
  };
  return all;
}

Trained trained(const Strategy& strategy, const Way& way) {
  set_seed(3);
  Sequential model = way.policy ? model_of({.policy = *way.policy}) : model_of();
  Optimizer optimizer = way.optimizer();
  const Tensor x = random::normal({40, 130}, {.seed = 1}), y = random::normal({40, 3}, {.seed = 2});
  auto step = function([&](Tensor xs, Tensor ys) {
    GradientTape tape;
    const Loss loss = MeanSquaredError()(ys, cast(model(xs, training), f32));
    const Gradients gradients = tape.gradient(loss, model.trainable_variables());
    if (way.clips_by_hand) optimizer.apply_gradients(clip_by_global_norm(gradients, 0.1));
    else optimizer.apply_gradients(gradients);
    return loss;
  });
  double loss = 0;
  for (const std::int64_t rows : {16, 16, 13, 3, 16})
    loss = strategy.run(step, x.rows(0, rows), y.rows(0, rows)).item();
  strategy.gather(optimizer.variables());
  return values_of(model.variables() + optimizer.variables(), loss);
}

/// A number for all bits of a training.
std::uint64_t digest_of(const Trained& trained) {
  std::uint64_t hash = std::bit_cast<std::uint64_t>(trained.loss);
  for (const Tensor& value : trained.variables)
    hash = mix(hash, std::hash<std::string_view>{}({static_cast<const char*>(value.host()), value.bytes()}));
  return hash;
}

/// Trains in the ways that the option names, "port;name=digest;...", and compares.
const ProcessJob bits_job("bits of a sharded optimizer", [](const ProcessOfTest& process) {
  std::vector<std::string> words;
  for (const auto word : std::views::split(std::string_view(process.option), ';'))
    words.emplace_back(word.begin(), word.end());
  ProcessOfTest own = process;
  own.option = words[0];
  const MultiWorkerMirroredStrategy strategy = divided(own);
  for (const std::string& word : std::span(words).subspan(1)) {
    const std::size_t equals = word.find('=');
    const auto way = std::ranges::find(ways(), word.substr(0, equals), &Way::name);
    check(std::to_string(digest_of(trained(strategy, *way))) == word.substr(equals + 1),
          text("other bits: ", way->name));
  }
});

/// C++ branches on what all have in common, so the step is cut into segments: where slots are assigned in one without
/// sums, they are whole.
const ProcessJob branches_job("branches with a sharded optimizer", [](const ProcessOfTest& process) {
  const auto train = [](const Strategy& strategy) {
    set_seed(3);
    Sequential model = model_of();
    Adam optimizer({.learning_rate = 1e-2});
    const Tensor x = random::normal({16, 130}, {.seed = 1}), y = random::normal({16, 3}, {.seed = 2});
    const auto step = function([&](Tensor xs, Tensor ys, Tensor number) {
      GradientTape tape;
      const Loss loss = MeanSquaredError()(ys, model(xs, training));
      const Gradients gradients = tape.gradient(loss, model.trainable_variables());
      const Tensor common = all_reduce_mean(number);
      if (common < 2) optimizer.apply_gradients(gradients);
      else if (global_norm(gradients) > 1e-6) optimizer.apply_gradients(clip_by_global_norm(gradients, 0.1));
      else if (common > 99) optimizer.apply_gradients(clip_by_norm(gradients, 1));
      return loss;
    });
    double loss = 0;
    for (int i = 0; i < 6; ++i) loss = strategy.run(step, x, y, static_cast<double>(i % 4)).item();
    const Adam copy = optimizer;  // of parts, as they are
    strategy.gather(optimizer.variables());
    strategy.gather(copy.variables());
    return values_of(model.variables() + optimizer.variables() + copy.variables(), loss);
  };
  expect_same_bits(train(whole()), train(divided(process)), "branches");
  check(!testing::Test::HasFailure(), "other bits");
});

/// Layers that are trained from some step on, one that is frozen, and slots that a step reads beside the optimizer.
const ProcessJob changes_job("changes with a sharded optimizer", [](const ProcessOfTest& process) {
  const auto train = [](const Strategy& strategy) {
    set_seed(3);
    Dense first(300, tanh), second(200, tanh), last(3);
    Sequential model{first, second, last};
    model.build({f32, {any_size, 130}});
    Adam optimizer({.learning_rate = 1e-2});
    const Tensor x = random::normal({16, 130}, {.seed = 1}), y = random::normal({16, 3}, {.seed = 2});
    double loss = 0;
    const auto run = [&](const Variables& trained) {
      const auto step = function([&](Tensor xs, Tensor ys) {
        GradientTape tape;
        const Loss of_step = MeanSquaredError()(ys, model(xs, training));
        optimizer.apply_gradients(tape.gradient(of_step, trained));
        const Tensor slot = optimizer.variables()[2].value();
        return std::pair{of_step, reduce_max(slot) + slot.rows(1, 2)};
      });
      for (int i = 0; i < 2; ++i) loss += strategy.run(step, x, y).first.item();
    };
    const Variables all = model.trainable_variables();
    Variables some;
    for (std::size_t i = 2; i < all.size(); ++i) some.add(all[i]);
    optimizer.build(some);
    run(some);
    optimizer.build(all);
    run(all);
    run(some);
    run(all);
    strategy.gather(optimizer.variables());
    return values_of(model.variables() + optimizer.variables(), loss);
  };
  expect_same_bits(train(whole()), train(divided(process)), "changes");
  check(!testing::Test::HasFailure(), "other bits");
});

/// What this process has of these variables.
std::int64_t bytes_here(const Variables& variables) {
  std::int64_t bytes = 0;
  for (const Variable& variable : variables) {
    const Tensor value = variable.value();
    const Buffer& buffer = value.observed();
    const DividedValue* const part = DividedValue::of(buffer);
    bytes += part ? part->part()->bytes() : buffer.bytes();
  }
  return bytes;
}

const ProcessJob memory_job("memory of a sharded optimizer", [](const ProcessOfTest& process) {
  const MultiWorkerMirroredStrategy strategy = divided(process);
  Sequential model{Dense(1024, relu), Dense(1024, relu), Dense(512)};  // 1.6 M numbers
  Adam optimizer;
  const Tensor x = ones({8, 256}), y = zeros({8, 512});
  const auto step = function([&](Tensor xs, Tensor ys) {
    GradientTape tape;
    const Loss loss = MeanSquaredError()(ys, model(xs, training));
    optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
    return loss;
  });
  const auto peak_of_step = [&] {
    reset_peak_memory();
    strategy.run(step, x, y).item();
    return static_cast<std::int64_t>(memory_use().peak_bytes);
  };
  const std::int64_t first = peak_of_step();
  strategy.run(step, x, y).item();
  const std::int64_t later = peak_of_step();
  check(first <= later + (std::int64_t{1} << 20),
        text("the first step took up to ", first, " bytes, a later one ", later));
  const std::int64_t weights = bytes_here(model.variables());
  const std::int64_t slots = bytes_here(optimizer.variables());
  const std::int64_t share = 2 * weights / process.ranks, block = 2 * 32768 * 4;
  check(slots <= share + block && slots >= share - block * process.ranks, text(slots, " bytes of slots on this rank"));
  const auto live = static_cast<std::int64_t>(memory_use().live_bytes);
  check(live < weights + share + 2 * block, text(live, " bytes are live, of which weights ", weights));
  // Who reads a part is told what to do.
  std::string said;
  try {
    optimizer.variables()[2].value().to_vector<float>();
  } catch (const InvalidArgument& error) { said = error.what(); }
  check(said.find("strategy.gather(optimizer.variables())") != std::string::npos, text("it says: ", said));
  said.clear();
  try {
    reduce_sum(optimizer.variables()[2].value()).item();
  } catch (const InvalidArgument& error) { said = error.what(); }
  check(said.find("strategy.gather(optimizer.variables())") != std::string::npos, text("it says: ", said));
  strategy.gather(optimizer.variables());
  check(bytes_here(optimizer.variables()) >= 2 * weights, "they are gathered");
  strategy.run(step, x, y).item();
  check(bytes_here(optimizer.variables()) == slots, "and divided again by the next step");
});

Trained fitted(const Strategy& strategy, int epochs, const std::filesystem::path& folder) {
  set_seed(3);
  Sequential model = model_of();
  Adam optimizer({.learning_rate = 1e-3, .global_clipnorm = 1, .use_ema = true});
  const Tensor x = random::normal({60, 130}, {.seed = 1}), y = random::normal({60, 3}, {.seed = 2});
  fit(model, optimizer, MeanSquaredError(), data::from_tensor_slices(x, y).shuffle().batch(16),
      {.epochs = epochs,
       .checkpoints = {.directory = folder, .max_to_keep = 0, .every_steps = 3},
       .strategy = strategy,
       .verbose = false});
  strategy.gather(optimizer.variables());
  return values_of(model.variables() + optimizer.variables(), 0);
}

/// Whether two folders have the same files.
bool are_equal(const std::filesystem::path& a, const std::filesystem::path& b) {
  const auto bytes_of = [](const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  std::size_t files = 0, others = 0;
  for (const auto& entry : std::filesystem::directory_iterator(b)) others += entry.is_regular_file();
  for (const auto& entry : std::filesystem::directory_iterator(a)) {
    if (!entry.is_regular_file()) continue;
    ++files;
    if (bytes_of(entry.path()) != bytes_of(b / entry.path().filename())) return false;
  }
  return files > 0 && files == others;
}

/// Trains to an epoch, from what is in the folder on. The option is "port,epochs,folder".
const ProcessJob fitted_job("fit with a sharded optimizer", [](const ProcessOfTest& process) {
  const std::size_t first = process.option.find(','), second = process.option.find(',', first + 1);
  ProcessOfTest own = process;
  own.option = process.option.substr(0, first);
  const int epochs = std::stoi(process.option.substr(first + 1, second - first - 1));
  const Trained here = fitted(divided(own), epochs, process.option.substr(second + 1));
  const TestDirectory folder(text("sharded_alone_", process.rank));
  expect_same_bits(fitted(whole(), epochs, folder.path()), here, "after fit");
  check(!testing::Test::HasFailure(), "other bits");
});

/// Rank 1 saves nothing.
const ProcessJob unequal_job("unequal checkpoints", [](const ProcessOfTest& process) {
  const MultiWorkerMirroredStrategy strategy = divided(process);
  Sequential model{Dense(1)};
  Adam optimizer;
  FitOptions options{.strategy = strategy, .verbose = false};
  if (process.rank == 0) options.checkpoints = CheckpointOptions{.directory = process.folder / "checkpoints"};
  fit(model, optimizer, MeanSquaredError(), data::from_tensor_slices(ones({8, 2}), ones({8, 1})).batch(4), options);
});

class ShardedOptimizer : public testing::Test {
 protected:
  void SetUp() override {
    static const std::string problem = problem_of_ucx() + problem_of_grpc();
    if (!problem.empty()) GTEST_SKIP() << problem;
  }
  static void run(const std::string& job, int ranks, const std::string& more = {},
                  const std::map<std::string, std::string>& variables = {}) {
    SCOPED_TRACE(text(job, ", ", ranks, " ranks"));
    expect_all_well(run_as_processes(job, ranks, std::to_string(free_port()) + more, variables, 100s));
  }
};

TEST_F(ShardedOptimizer, HasTheBitsOfOneProcess) {
  std::string of_all, of_norms, of_one;
  for (const Way& way : ways()) {
    const std::string word = text(';', way.name, '=', digest_of(trained(whole(), way)));
    of_all += word;
    if (way.name.find("norm") != std::string::npos) of_norms += word;
    if (way.name == "global norm") of_one = word;
  }
  run("bits of a sharded optimizer", 2, of_all);
  run("bits of a sharded optimizer", 3, of_norms);
  if (!takes_whole_grids()) return;
  run("bits of a sharded optimizer", 4, of_one);
  for (const int ranks : {2, 3, 4}) run("bits of a sharded optimizer", ranks, of_all, {{"UCX_TLS", "tcp,self"}});
}

TEST_F(ShardedOptimizer, FollowsBranchesAndWhatIsTrained) {
  run("branches with a sharded optimizer", 2);
  run("changes with a sharded optimizer", 3);
}

TEST_F(ShardedOptimizer, DividesTheMemoryOfSlotsByTheRanks) {
  for (const int ranks : {2, 3}) run("memory of a sharded optimizer", ranks);
}

/// What two ranks write is what one process writes; three ranks go on with it, and one without the option.
TEST_F(ShardedOptimizer, WritesTheCheckpointsOfOneProcess) {
  const TestDirectory alone("sharded_one"), shared("sharded_two"), copy("sharded_copy");
  const auto job = [&](int epochs) { return text(',', epochs, ',', shared.path().string()); };
  fitted(whole(), 2, alone.path());
  run("fit with a sharded optimizer", 2, job(2));
  EXPECT_TRUE(are_equal(alone.path(), shared.path()));
  std::filesystem::copy(shared.path(), copy.path());
  run("fit with a sharded optimizer", 3, job(4));
  const Trained resumed = fitted(whole(), 4, copy.path()), undisturbed = fitted(whole(), 4, alone.path());
  expect_same_bits(undisturbed, resumed, "without the option");
  EXPECT_TRUE(are_equal(alone.path(), shared.path()));
}

TEST_F(ShardedOptimizer, AsksAllRanksForTheirPartsOfCheckpoints) {
  for (const EndedProcess& each : run_as_processes("unequal checkpoints", 2, std::to_string(free_port()), {}, 60s))
    expect_says(each.problem, "same every_steps");
}

}  // namespace
}  // namespace gradus::sharded_optimizer_test
