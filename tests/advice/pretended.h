/// Trainings whose times are pretended: a clock that goes on when a source gives an element to the thread that trains,
/// and a little whenever it is looked at. What a data thread makes costs nothing.
#pragma once
#include <gtest/gtest.h>
#include <algorithm>
#include <memory>
#include <thread>
#include "gradus/advice/advice.h"
#include "gradus/base/rooms.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/losses.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/optim/optimizers.h"

namespace gradus {

struct Pretended {
  struct Time {
    double now = 0;
    std::thread::id trains = std::this_thread::get_id();
  };
  std::shared_ptr<Time> time = std::make_shared<Time>();

  std::function<double()> clock(double a_look = 1e-3) const {
    return [time = time, a_look] { return time->now += a_look; };
  }
  /// Examples that take so many seconds each.
  Dataset<2> slow(double seconds, std::int64_t examples = 64) const {
    return data::from_generator<2>(
        {Spec{f32, {3}}, Spec{f32, {2}}}, [time = time, seconds, examples, next = std::int64_t{0}]() mutable {
          std::optional<std::pair<Tensor, Tensor>> example;
          if (next++ == examples) return example;
          if (std::this_thread::get_id() == time->trains) time->now += seconds;
          example.emplace(fill({3}, 0.01 * static_cast<double>(next), f32), fill({2}, 1, f32));
          return example;
        });
  }
};

/// A training of rows in memory.
struct SmallTraining {
  Tensor x = random::normal({256, 3}, {.seed = 1});
  Dataset<2> dataset = data::from_tensor_slices(x, x.rows(0, 256) * 2).shuffle({.seed = 2}).batch(16);
  Sequential model{Dense(8, relu), Dense(3)};
  Adam optimizer{{.learning_rate = 1e-3}};
  MeanSquaredError loss;
};

inline const Lever& row_of(const Advice& advice, std::string_view name) {
  const auto found = std::ranges::find(advice.levers, name, &Lever::name);
  EXPECT_NE(found, advice.levers.end()) << name;
  static const Lever nothing;
  return found == advice.levers.end() ? nothing : *found;
}

/// What holds of every advice.
inline void expect_consistent(const Advice& advice) {
  for (const Lever& lever : advice.levers) {
    SCOPED_TRACE(lever.name);
    EXPECT_FALSE(lever.reason.empty());
    EXPECT_EQ(lever.worth_it, lever.verdict == Verdict::worth_it);
    const bool gains = lever.seconds_after < lever.seconds_before || lever.bytes_after < lever.bytes_before;
    EXPECT_TRUE(!lever.worth_it || gains);
    EXPECT_LE(lever.ratio_low, lever.ratio_high);
    EXPECT_EQ(std::ranges::count(advice.levers, lever.name, &Lever::name), 1);
  }
}

}  // namespace gradus
