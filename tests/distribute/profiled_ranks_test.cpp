/// What a rank waits for in its calls of other ranks is communication in its profile. Here each message takes a rank
/// 2 ms to send, in the calls themselves: so much they last at least.
#include <gtest/gtest.h>
#include <thread>
#include "gradus/base/rooms.h"
#include "gradus/gradus.h"
#include "gradus/profile/timeline.h"
#include "tests/distribute/strategies_as_threads.h"

namespace gradus::profiled_ranks_test {
namespace {

using namespace std::chrono_literals;

constexpr auto slowness = 2ms;

/// Messages of 8 bytes at most, which are votes and what ranks say, are slow, or all.
class SlowTransport final : public Transport {
 public:
  SlowTransport(std::unique_ptr<Transport> inner, std::size_t most_bytes, int& slow)
      : inner_(std::move(inner)), most_bytes_(most_bytes), slow_(slow) {}
  std::string open() override { return inner_->open(); }
  void join(Group group) override { inner_->join(std::move(group)); }
  const Group& group() const override { return inner_->group(); }
  TransferPointer send(int to, Tag tag, std::span<const std::byte> bytes) override {
    if (bytes.size() <= most_bytes_) {
      std::this_thread::sleep_for(slowness);
      ++slow_;
    }
    return inner_->send(to, tag, bytes);
  }
  TransferPointer receive(int from, Tag tag, std::span<std::byte> bytes) override {
    return inner_->receive(from, tag, bytes);
  }
  bool progress() override { return inner_->progress(); }
  void wait(Deadline deadline) override { inner_->wait(deadline); }
  void fail(const std::string& why) override { inner_->fail(why); }
  void close(const std::string& why) noexcept override { inner_->close(why); }

 private:
  const std::unique_ptr<Transport> inner_;
  const std::size_t most_bytes_;
  int& slow_;
};

/// Seconds of the profiled thread in exchanges of this name.
double seconds_of(const ProfileReport& report, std::string_view name) {
  std::int64_t nanoseconds = 0;
  for (const ActivityEvent& event : report.timeline->tracks.front().kept.events)
    if (event.kind == ActivityEvent::Kind::communication && report.timeline->name(event.name) == name)
      nanoseconds += event.end - event.begin;
  return static_cast<double>(nanoseconds) * 1e-9;
}

/// Takes the profile of what it is given.
using Profiled = std::function<void(const std::function<void()>& work)>;

struct Exchanged {
  std::string name;             // name of the exchange in a profile
  int messages = 0;             // number of slow messages that rank 0 sends for it
  std::size_t most_bytes = 16;  // largest size of slow messages
  bool shard_optimizer = false;
  std::function<void(const Strategy& strategy, const Profiled& profiled)> body;
};

struct Training {
  Sequential model{Dense(4, tanh), Dense(1)};
  Adam optimizer;
  Tensor x = random::normal({8, 3}, {.seed = 1});
  void run(const Strategy& strategy, int steps) {
    const auto step = function([this](Tensor rows) {
      GradientTape tape;
      const Loss loss = Loss::mean(square(model(rows, training)));
      optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
      return loss;
    });
    for (int k = 0; k < steps; ++k) strategy.run(step, x);
  }
};

const std::vector<Exchanged>& exchanges() {
  static const std::vector<Exchanged> all = {
      // Two votes, and rank 0 tells rank 1 of each that all have voted.
      {.name = "vote on a step",
       .messages = 4,
       .body =
           [](const Strategy& strategy, const Profiled& profiled) {
             Training t;
             profiled([&] { t.run(strategy, 2); });
           }},
      {.name = "what processes say",
       .messages = 8,  // three about lengths that are known, four about batches, and one about the end
       .body =
           [](const Strategy& strategy, const Profiled& profiled) {
             const auto some = data::from_tensor_slices(random::normal({16, 3}))
                                   .filter([](Tensor x) { return reduce_sum(square(x)) > 0; })
                                   .batch(4);
             profiled([&] {
               for (const Tensor& x : strategy.distribute(some)) EXPECT_EQ(x.shape()[1], 3);
             });
           }},
      {.name = "values of all processes",
       .messages = 1,
       .most_bytes = 1 << 20,
       .shard_optimizer = true,
       .body =
           [](const Strategy& strategy, const Profiled& profiled) {
             Training t;
             t.run(strategy, 1);
             profiled([&] { strategy.gather(t.optimizer.variables()); });
           }},
      {.name = "results of all processes",
       .messages = 1,
       .most_bytes = 1 << 20,
       .body =
           [](const Strategy& strategy, const Profiled& profiled) {
             const Tensor x = random::normal({8, 3}, {.seed = 1});
             profiled([&] {
               const auto doubled = strategy.run([](Tensor rows) { return rows * 2; }, x);
               EXPECT_EQ(doubled[0].shape()[1], 3);
             });
           }},
  };
  return all;
}

TEST(ProfiledRanks, WhatARankWaitsForIsCommunication) {
  for (const Exchanged& each : exchanges()) {
    SCOPED_TRACE(each.name);
    ProfileReport report;
    int slow = 0;
    const Wrap wrap = [&](int rank, std::unique_ptr<Transport> inner) -> std::unique_ptr<Transport> {
      if (rank != 0) return inner;
      return std::make_unique<SlowTransport>(std::move(inner), each.most_bytes, slow);
    };
    expect_all_well(
        run_on_ranks({.shard_optimizer = each.shard_optimizer, .wrap = wrap}, [&](const Strategy& strategy, int rank) {
          each.body(strategy, [&](const std::function<void()>& work) {
            if (rank != 0) return work();
            slow = 0;
            report = profile(work);
          });
        }));
    EXPECT_GE(slow, each.messages);
    const double seconds = seconds_of(report, each.name);
    EXPECT_GE(seconds, each.messages * std::chrono::duration<double>(slowness).count());
    EXPECT_GE(report.communication, seconds) << report;
    EXPECT_DOUBLE_EQ(report.compute + report.input_wait + report.compile + report.communication + report.host,
                     report.seconds);
  }
}

}  // namespace
}  // namespace gradus::profiled_ranks_test
