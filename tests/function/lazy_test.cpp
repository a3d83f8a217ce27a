/// Lazy evaluation: what is computed when, what stays, what happens on failure, and with several threads.
#include <gtest/gtest.h>
#include <algorithm>
#include <functional>
#include <optional>
#include <thread>
#include "gradus/backend/cpu/codegen/lower.h"
#include "gradus/function/function.h"
#include "gradus/function/pending.h"
#include "gradus/function/program_cache.h"
#include "gradus/function/variable.h"
#include "gradus/gradients/tape.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/tensor/memory.h"
#include "tests/threads.h"

namespace gradus::lazy_test {
namespace {

std::vector<float> counting(int n) {
  std::vector<float> values(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) values[static_cast<std::size_t>(i)] = static_cast<float>(i);
  return values;
}

TEST(Lazy, ComputesWhenObserved) {
  const Tensor x = from_values(counting(6), {2, 3});
  const Tensor y = x * 2 + 1;
  EXPECT_FALSE(y.node()->value);
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{1, 3, 5, 7, 9, 11}));
  EXPECT_TRUE(y.node()->value);
  EXPECT_TRUE(y.node()->is_leaf()) << "its history has ended";
}

TEST(Lazy, AllThatIsPendingIsOneProgram) {
  const Tensor x = from_values(counting(4), {4});
  std::int64_t& started = Pending::mine().dispatches();
  const std::int64_t before = started;
  const Tensor a = x + 1, b = a * a, c = reduce_sum(b);
  EXPECT_EQ(c.item(), 1 + 4 + 9 + 16);
  EXPECT_EQ(b.to_vector<float>(), (std::vector<float>{1, 4, 9, 16}));
  EXPECT_EQ(started - before, 1);
}

TEST(Lazy, SecondSightIsCompiledAndGivesTheSameBits) {
  const Tensor x = from_values(counting(1000), {10, 100}) * 0.01f;
  x.observed();
  std::vector<std::vector<float>> results;
  for (int i = 0; i < 3; ++i) results.push_back(reduce_sum(exp(x) / (x + 1.5), {.axis = {1}}).to_vector<float>());
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[1], results[2]);
}

TEST(Lazy, AVariableIsUpdatedInItsOwnMemory) {
  Variable w(zeros({1000}));
  const Tensor g = ones({1000});
  g.observed();
  w.value().observed();
  const void* first = nullptr;
  for (int i = 0; i < 5; ++i) {
    w.assign(w.value() + g);
    const void* now = w.value().host();
    if (i > 1) { EXPECT_EQ(now, first) << i; }
    first = now;
  }
  EXPECT_EQ(w.value().to_vector<float>()[999], 5);
}

TEST(Lazy, AHeldValueIsNeverOverwritten) {
  Variable w(ones({100}));
  const Tensor before = w.value();
  for (int i = 0; i < 3; ++i) {
    w.assign(w.value() * 2);
    synchronize();
  }
  EXPECT_EQ(before.to_vector<float>()[5], 1);
  EXPECT_EQ(w.value().to_vector<float>()[5], 8);
}

TEST(Lazy, AFailedFlushLeavesEveryVariableAsItWas) {
  Variable w(ones({3})), v(ones({3}));
  w.value().observed();
  for (int i = 0; i < 3; ++i) {
    w.assign(w.value() + 1);
    v.assign(v.value() + gather(from_values(counting(3), {3}), constant({0, 7, 1})));
    EXPECT_THROW(synchronize(), OutOfRange);
    EXPECT_EQ(w.value().to_vector<float>(), (std::vector<float>{1, 1, 1}));
    EXPECT_EQ(v.value().to_vector<float>(), (std::vector<float>{1, 1, 1}));
  }
  w.assign(w.value() + 1);
  EXPECT_EQ(w.value().to_vector<float>(), (std::vector<float>{2, 2, 2}));
}

TEST(Lazy, AFirstValueThatNobodyReadsIsNotComputed) {
  const std::int64_t before = Pending::mine().dispatches();
  const Tensor drawn = random::normal({3});
  Variable unread(random::normal({3})), held(drawn), read(random::normal({3}));
  const Tensor sum = reduce_sum(read.value() - read.value());
  unread.assign(ones({3}));
  EXPECT_EQ(Pending::mine().dispatches(), before) << "no step has to begin";
  held.assign(ones({3}) * 2);
  EXPECT_EQ(Pending::mine().dispatches(), before + 1) << "somebody may look at what was drawn";
  read.assign(ones({3}) * 3);
  for (const Variable* w : {&unread, &held, &read})
    EXPECT_EQ(w->value().to_vector<float>()[2], static_cast<float>(1 + (w != &unread) + (w == &read)));
  EXPECT_EQ(sum.item(), 0);
  EXPECT_EQ(drawn.to_vector<float>().size(), 3u);
}

TEST(Lazy, AFailureReturnsToAFirstValueThatWasNotComputed) {
  Variable w(full({3}, 7));
  w.assign(gather(from_values(counting(3), {3}), constant({0, 7, 1})));
  EXPECT_THROW(synchronize(), OutOfRange);
  Variable v(full({3}, 8));
  v.assign(gather(from_values(counting(3), {3}), constant({0, 7, 1})));
  EXPECT_THROW(v.value().to_vector<float>(), OutOfRange);
  EXPECT_EQ(w.value().to_vector<float>(), (std::vector<float>{7, 7, 7}));
  v.assign(v.value() + 1);
  EXPECT_EQ(v.value().to_vector<float>(), (std::vector<float>{9, 9, 9}));
}

TEST(Lazy, ALargeProgramIsCompiledAtFirstSight) {
  const std::int64_t before = cpu_backend::kernels_generated();
  const auto draw = [](std::int64_t rows, std::int64_t columns) {
    return random::truncated_normal({rows, columns}, {.seed = 3}).to_vector<float>();
  };
  const std::vector<float> small = draw(8, 4);
  EXPECT_EQ(cpu_backend::kernels_generated(), before) << "interpreting it takes less than a millisecond";
  const std::vector<float> large = draw(1 << 14, 1 << 6);
  EXPECT_EQ(cpu_backend::kernels_generated(), before + 1);
  EXPECT_TRUE(std::ranges::equal(small, std::span(large).first(small.size()))) << "bit for bit, element by element";
  const Tensor a = random::truncated_normal({1 << 10, 1 << 10}, {.stddev = 2}),
               b = random::truncated_normal({16, 1 << 9, 1 << 6}, {.stddev = 2});
  synchronize();
  EXPECT_EQ(cpu_backend::kernels_generated(), before + 2) << "draws of other shapes share a kernel";
}

TEST(Lazy, AFailureIsReportedAgainToWhoeverHoldsTheValue) {
  const Tensor bad = gather(from_values(counting(3), {3}), constant({5})) * 2;
  EXPECT_THROW(bad.item(), OutOfRange);
  EXPECT_THROW(bad.item(), OutOfRange);
  EXPECT_THROW((bad + 1).item(), OutOfRange);
}

TEST(Lazy, AnAssignmentOfWhatHasFailedIsRefused) {
  Variable w(full({3}, 7));
  const Tensor bad = gather(from_values(counting(3), {3}), constant({0, 7, 1}));
  EXPECT_THROW(bad.observed(), OutOfRange);
  EXPECT_THROW(w.assign(bad), OutOfRange);
  EXPECT_EQ(w.value().to_vector<float>(), (std::vector<float>{7, 7, 7}));
}

TEST(Lazy, WhatAFunctionHasAssignedOutlivesAFailureOfWhatWaited) {
  Variable w(full({3}, 1));
  w.value().observed();
  const auto set = function([&] { w.assign(full({3}, 5)); });
  for (int i = 0; i < 3; ++i) {
    w.assign(w.value() + 1);
    const Tensor bad = gather(from_values(counting(3), {3}), constant({0, 7, 1}));
    set();
    EXPECT_THROW(bad.observed(), OutOfRange);
    EXPECT_EQ(w.value().to_vector<float>(), (std::vector<float>{5, 5, 5}));
  }
}

/// The one that waits is overtaken by a function's, and that by another one that waits.
TEST(Lazy, AnOvertakenAssignmentLeavesNoTrace) {
  Variable w(full({3}, 1));
  w.value().observed();
  const auto set = function([&] { w.assign(full({3}, 5)); });
  for (int i = 0; i < 3; ++i) {
    w.assign(w.value() + 1);
    set();
    const Tensor held = w.value();
    w.assign(held * 2);
    EXPECT_EQ(w.value().to_vector<float>(), (std::vector<float>{10, 10, 10}));
    EXPECT_EQ(held.to_vector<float>(), (std::vector<float>{5, 5, 5}));
    w.assign(w.value() + gather(from_values(counting(3), {3}), constant({0, 7, 1})));
    EXPECT_THROW(synchronize(), OutOfRange);
    EXPECT_EQ(w.value().to_vector<float>(), (std::vector<float>{10, 10, 10}));

    w.assign(w.value() + 1);
    set();  // and what waited is gone
    w.assign(constant({7.0, 7.0, 7.0}));
    const Tensor bad = gather(from_values(counting(3), {3}), constant({0, 7, 1}));
    EXPECT_THROW(bad.observed(), OutOfRange);
    EXPECT_EQ(w.value().to_vector<float>(), (std::vector<float>{7, 7, 7}));
  }
}

TEST(Lazy, ALongChainIsRecordedComputedAndFreed) {
  Tensor y = ones({4});
  for (int i = 0; i < 100'000; ++i) y = y + 1;
  EXPECT_EQ(y.to_vector<float>()[0], 100'001);
}

TEST(Lazy, WhatIsDroppedUnseenIsNeverComputed) {
  const Tensor x = from_values(counting(4), {4});
  synchronize();
  const std::int64_t before = Pending::mine().dispatches();
  for (int i = 0; i < 2000; ++i) {
    Tensor y = x;
    for (int k = 0; k < 10; ++k) y = y * x;
  }
  EXPECT_EQ(Pending::mine().dispatches(), before);
}

TEST(Lazy, AnotherThreadMayObserve) {
  const Tensor x = from_values(counting(100), {100});
  const Tensor y = reduce_sum(x * 3);
  double seen = 0;
  std::thread([&] { seen = y.item(); }).join();
  EXPECT_EQ(seen, 3 * 4950);
  EXPECT_EQ((y + 1).item(), 3 * 4950 + 1);
}

TEST(Lazy, WhatAnotherThreadComputedIsLetGo) {
  const Tensor raw = ones({1000});
  std::size_t before = 0;
  for (int i = 0; i < 100; ++i) {
    const Tensor y = sqrt(raw * 3 + 1) * raw;
    std::thread([&] { y.observed(); }).join();
    if (i == 3) before = memory_use().live_bytes;
  }
  EXPECT_LE(memory_use().live_bytes, before + 8 * 4000);
}

/// Its last handle goes while the other thread computes it.
TEST(Lazy, AThreadMayDropWhatAnotherOneComputes) {
  const Tensor x = random::normal({64, 64});
  for (int i = 0; i < 300; ++i) {
    const Tensor a = matmul(x, x) + i;
    Tensor b = a * 2;
    std::thread other([&] { a.observed(); });
    b = {};
    other.join();
    EXPECT_EQ(reduce_sum(a - a).item(), 0);
  }
}

/// The queue of an ended thread is the next one's, who may begin by looking at what waits in it.
TEST(Lazy, AThreadMayBeginWithWhatAnotherLeft) {
  for (int i = 0; i < 3; ++i) {
    Tensor y;
    std::thread([&] { y = from_values(counting(10), {10}) * 2; }).join();
    std::thread([&] { EXPECT_EQ(y.to_vector<float>()[9], 18); }).join();
  }
}

/// Or by assigning what it has left an assignment of, while that is computed.
TEST(Lazy, AThreadMayBeginByAssigningWhatAnotherLeft) {
  const Tensor next = from_values(counting(10), {10}), factor = full({500, 500}, 1e-3);
  for (int i = 0; i < 5; ++i) {
    Variable w(zeros({10}));
    std::thread([&] {
      Tensor y = factor + i;
      for (int k = 0; k < 6; ++k) y = tanh(matmul(y, factor));
      w.assign(w.value() + reduce_sum(y));
    }).join();
    std::atomic<bool> starts = false;
    std::thread other([&] {
      starts = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(i));  // into the midst of it, at times
      w.assign(next);
    });
    while (!starts) std::this_thread::yield();
    synchronize();
    other.join();
    EXPECT_EQ(w.value().to_vector<float>(), counting(10));
  }
}

/// What runs when this thread's variables are destroyed.
struct AtEnd {
  std::function<void()> work;
  ~AtEnd() {
    if (work) work();
  }
};
thread_local AtEnd at_end;

/// Whatever it has used before or after the variable whose destructor computes.
TEST(Lazy, AThreadMayComputeAtItsVeryEnd) {
  const Threads two(2);
  const Tensor large = full({300, 300}, 0.5);
  std::vector<Tensor> captured;
  for (int i = 0; i < 30; ++i) captured.push_back(full({2}, i));
  const auto compiled = function([&](Tensor x) {
    for (const Tensor& y : captured) x = x + y;
    return x;
  });
  const auto compute = [&](const Tensor& x) {
    EXPECT_EQ((x * 2).to_vector<float>()[1], 2);
    EXPECT_EQ(matmul(large, large).to_vector<float>()[0], 75);
    EXPECT_EQ(compiled(full({2}, 1.0)).to_vector<float>()[0], 436);
    EXPECT_THROW(gather(x, constant(7)).observed(), OutOfRange);
    const Tensor unseen = x + 1;
  };
  std::uint32_t queue = 0, early = 0;  // of a new thread
  for (int round = 0; round < 12; ++round) {
    std::thread([&] {
      const Tensor x = from_values(counting(3), {3});
      if (round % 4 == 1) (x + 1).observed();
      if (round % 4 == 2) compute(x);
      at_end.work = [&compute, x] { compute(x); };
      if (round % 4 == 3) compute(x);
    }).join();
    std::thread([&] { queue = Pending::mine().number(); }).join();
    if (round == 3) early = queue;
  }
  EXPECT_LE(queue, early) << "its queue is the next one's";
}

TEST(Lazy, WhatAThreadLeavesBehindStaysComputable) {
  Tensor y;
  std::thread([&] { y = from_values(counting(10), {10}) * 2 + 1; }).join();
  EXPECT_EQ(y.to_vector<float>()[9], 19);
  EXPECT_FALSE(y.node()->op) << "what it was computed from is kept by nobody";
  const std::size_t before = memory_use().live_bytes;
  for (int i = 0; i < 10; ++i) {
    std::thread([&] { y = sqrt(ones({100'000}) * 3 + 1) * 2; }).join();
    EXPECT_EQ(y.to_vector<float>()[9], 4);
  }
  EXPECT_LE(memory_use().live_bytes, before + 500'000);
}

/// A node whose flush failed waits again, in the queue of one of those who look at it, at what follows from it, and at
/// what it follows from.
TEST(Lazy, ManyThreadsMayLookAtAFailedValue) {
  const auto fails = [](const Tensor& x) { EXPECT_THROW(x.observed(), OutOfRange); };
  for (int i = 0; i < 100; ++i) {
    const Tensor x = from_values(counting(8), {8}), before = x + i;
    const Tensor failed = gather(before, constant(9)), after = failed * 2 + 1;
    if (i % 3 == 0) fails(after);
    std::atomic<int> waiting = 4;
    std::vector<std::thread> all;
    for (int t = 0; t < 4; ++t)
      all.emplace_back([&, t] {
        for (--waiting; waiting > 0;) std::this_thread::yield();
        for (int k = 0; k < 3; ++k) {
          fails(t % 2 ? failed : after);
          EXPECT_THROW((after - k).observed(), OutOfRange);
          fails(t % 2 ? after : failed);
        }
      });
    for (std::thread& each : all) each.join();
    EXPECT_EQ(before.to_vector<float>()[3], 3 + static_cast<float>(i));
  }
}

/// Its last handle goes while its own thread computes it.
TEST(Lazy, AnotherThreadMayDropWhatAThreadComputes) {
  for (const bool records : {false, true})
    for (int i = 0; i < 300; ++i) {
      std::optional<GradientTape> tape;
      if (records) tape.emplace();
      Tensor a = ones({16}) + i;
      Tensor b = a * 2;
      std::thread other([given = std::move(a)]() mutable { given = {}; });
      EXPECT_EQ(b.to_vector<float>()[3], 2.0f * static_cast<float>(i + 1));
      other.join();
    }
}

TEST(Lazy, TwoThreadsComputeOnOneVariable) {
  Variable w(from_values(counting(64), {8, 8}));
  std::vector<std::thread> threads;
  std::vector<double> sums(2);
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const Tensor y = matmul(w, w) * (t + 1) + w;
        sums[static_cast<std::size_t>(t)] = reduce_sum(y).item();
      }
    });
  for (std::thread& thread : threads) thread.join();
  const Tensor product = matmul(w, w);
  EXPECT_EQ(sums[0], reduce_sum(product * 1 + w).item());
  EXPECT_EQ(sums[1], reduce_sum(product * 2 + w).item());
}

TEST(Lazy, ThreadsHandEachOtherPendingValues) {
  std::vector<Tensor> parts(8);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] { parts[static_cast<std::size_t>(t)] = from_values(counting(50), {50}) * t; });
  for (std::thread& thread : threads) thread.join();
  Tensor sum = zeros({50});
  for (const Tensor& part : parts) sum = sum + part;
  EXPECT_EQ(sum.to_vector<float>()[2], 2 * 28);
}

TEST(Lazy, TheCacheOfProgramsIsBounded) {
  const ProgramCacheUse before = program_cache_use();
  set_program_cache_limit(before.bytes + 100'000);
  const Tensor x = ones({3});
  for (int round = 0; round < 2; ++round) {  // what has left it is made anew
    for (int n = 1; n < 200; ++n) {
      Tensor y = x;
      for (int i = 0; i < n; ++i) y = y * 1.5f;
      EXPECT_EQ(y.to_vector<float>()[2], y.to_vector<float>()[0]) << n;
    }
    EXPECT_LE(program_cache_use().bytes, before.bytes + 100'000);
  }
  set_program_cache_limit(0);
  EXPECT_EQ(program_cache_use().entries, 1u);
  set_program_cache_limit(std::size_t{256} << 20);
}

TEST(Lazy, AnEmptyTensorSaysSo) {
  const Tensor nothing;
  EXPECT_THROW(nothing.item(), InvalidArgument);
  EXPECT_THROW(nothing + 1, InvalidArgument);
  EXPECT_THROW(nothing.shape(), InvalidArgument);
}

}  // namespace
}  // namespace gradus::lazy_test
