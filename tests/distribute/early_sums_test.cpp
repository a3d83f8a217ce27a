/// Sums of a step begin while the rank still computes. Here each message comes 2 ms late: kernels hide a part of that,
/// and the bits are those of one process.
#include <gtest/gtest.h>
#include <algorithm>
#include <map>
#include "tests/distribute/faulty_transport.h"
#include "gradus/base/rooms.h"
#include "gradus/gradus.h"
#include "tests/distribute/strategies_as_threads.h"
#include "tests/distribute/trained.h"

namespace gradus::early_sums_test {
namespace {

using namespace std::chrono_literals;

constexpr int layers = 5, width = 512;  // weights of 1 MiB: the sum of their gradients is a bucket of its own

/// Each message comes late. Notes when the buckets of a step begin.
class SlowTransport final : public FaultyTransport {
 public:
  explicit SlowTransport(std::unique_ptr<Transport> inner)
      : FaultyTransport(std::move(inner), {{.is_lasting = true, .delay = 2ms}}) {}

  TransferPointer send(int to, Tag tag, std::span<const std::byte> bytes) override {
    if (bytes.size() > 100'000) begun_.emplace(tag.slot / 2, driven_);  // its other message is that of the result
    return FaultyTransport::send(to, tag, bytes);
  }
  bool progress() override {
    ++driven_;
    return FaultyTransport::progress();
  }
  void begin_step() { begun_.clear(); }
  int begun() const { return static_cast<int>(begun_.size()); }
  /// How many buckets began before the last kernel. After each kernel buckets begin, then the transport is driven: so
  /// those had another one after them, with a drive in between. Where none is early, all begin one after the other.
  int begun_early() const {
    int last = 0;
    for (const auto& [bucket, driven] : begun_) last = std::max(last, driven);
    return static_cast<int>(std::ranges::count_if(begun_, [&](const auto& each) { return each.second < last; }));
  }

 private:
  std::map<std::uint32_t, int> begun_;  // bucket: how often the transport was driven before
  int driven_ = 0;
};

struct Training {
  const bool is_seeded = (set_seed(2), true);
  Sequential model = [] {
    Sequential all;
    for (int i = 0; i < layers; ++i) all.add(Dense(width, tanh));
    all.add(Dense(1));
    return all;
  }();
  SGD optimizer{{.learning_rate = 1e-3}};
  const Tensor x = random::normal({64, width}, {.seed = 1}), y = random::normal({64, 1}, {.seed = 2});
  std::function<Loss(Tensor, Tensor)> body = [this](const Tensor& xs, const Tensor& ys) {
    GradientTape tape;
    const Loss loss = MeanSquaredError()(ys, model(xs, training));
    optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
    return loss;
  };
  Function<std::function<Loss(Tensor, Tensor)>> step = function(body);

  double run(const Strategy& strategy) { return strategy.run(step, x, y).item(); }
};

/// On two ranks, of one shard each.
void run_slowly(const std::function<void(const Strategy&, SlowTransport&)>& body) {
  std::vector<SlowTransport*> transports(2);
  RanksOfTest ranks{.ranks = 2, .micro_shards = 2};
  ranks.wrap = [&](int rank, std::unique_ptr<Transport> inner) {
    auto slow = std::make_unique<SlowTransport>(std::move(inner));
    transports[static_cast<std::size_t>(rank)] = slow.get();
    return slow;
  };
  expect_all_well(run_on_ranks(ranks, [&](const Strategy& strategy, int rank) {
    SlowTransport& own = *transports[static_cast<std::size_t>(rank)];
    body(strategy, own);
    own.send_late();
  }));
}

TEST(EarlySums, BeginBeforeTheLastKernelOfAStep) {
  const MirroredStrategy one({.devices = {cpu(0)}, .micro_shards = 2});
  Training alone;
  std::vector<double> losses;
  for (int i = 0; i < 3; ++i) losses.push_back(alone.run(one));
  run_slowly([&](const Strategy& strategy, SlowTransport& transport) {
    Training job;
    for (const double loss : losses) {
      transport.begin_step();
      EXPECT_EQ(job.run(strategy), loss);
      EXPECT_EQ(transport.begun(), layers);
      EXPECT_GE(transport.begun_early(), layers - 2);
    }
    expect_same_bits(values_of(alone.model.variables(), 0), values_of(job.model.variables(), 0), "after three steps");
  });
}

/// What is under way before a rank waits is hidden, however short. Where no sum begins early, a rank waits at least as
/// long as sums are under way, after any number of steps. Steps are added as a rank may be stopped while it notes
/// times.
TEST(EarlySums, AreHiddenByKernels) {
  constexpr int most_steps = 100;
  run_slowly([&](const Strategy& strategy, SlowTransport&) {
    Training job;
    Explanation explanation;
    bool hides = false;
    for (int step = 0; step < most_steps && strategy.any(!hides); ++step) {
      job.run(strategy);
      explanation = strategy.explain(job.step);
      hides = explanation.exchange_wait_seconds < explanation.exchange_seconds;
    }
    EXPECT_TRUE(hides) << explanation;
    EXPECT_GE(explanation.exchange_seconds, 0.002);
    EXPECT_NE(text(explanation).find(", of which kernels hid "), std::string::npos) << explanation;
  });
}

TEST(EarlySums, AreExplainedInPercent) {
  Explanation explanation{.exchanges = 2, .exchange_seconds = 0.004, .exchange_wait_seconds = 0.001};
  EXPECT_NE(text(explanation).find(", of which kernels hid 75 %\n"), std::string::npos) << explanation;
  explanation.exchange_wait_seconds = 0.005;  // also time to put sums together
  EXPECT_NE(text(explanation).find(", of which kernels hid 0 %\n"), std::string::npos) << explanation;
}

}  // namespace
}  // namespace gradus::early_sums_test
