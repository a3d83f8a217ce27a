/// Reading ahead: order, ends, failures, and leaving half-way.
#include <gtest/gtest.h>
#include <pthread.h>
#include <atomic>
#include <chrono>
#include <system_error>
#include <thread>
#include "gradus/data/prefetch.h"
#include "tests/data/readings.h"
#include "tests/threads.h"

namespace gradus::prefetch_test {
namespace {

/// Elements that are counted when they are made; `broken` cannot be.
class CountedStage : public Stage {
 public:
  CountedStage(std::int64_t length, std::int64_t broken, int parallel_calls = autotune,
               std::chrono::milliseconds pause = {})
      : Stage({{i32, {}}}), length_(length), broken_(broken), parallel_calls_(parallel_calls), pause_(pause) {}
  std::int64_t length(std::int64_t) const override { return length_; }
  int parallel_calls() const override { return parallel_calls_; }
  std::string name() const override { return "counted"; }
  std::unique_ptr<Pass> make_pass(std::int64_t) const override { return std::make_unique<CountedPass>(*this); }
  std::int64_t made() const { return made_; }

 private:
  struct CountedPass : Pass {
    explicit CountedPass(const CountedStage& stage) : stage(stage) {}
    Tensors at(std::int64_t index) override {
      require<DataError>(index != stage.broken_, "element ", index, " is broken");
      ++stage.made_;
      if (stage.pause_.count() > 0) std::this_thread::sleep_for(stage.pause_);
      return {tensor_of_numbers({static_cast<std::int32_t>(index)}, {})};
    }
    const CountedStage& stage;
  };
  const std::int64_t length_, broken_;
  const int parallel_calls_;
  const std::chrono::milliseconds pause_;
  mutable std::atomic<std::int64_t> made_ = 0;
};

constexpr std::int64_t none = -1;

TEST(Prefetch, KeepsTheOrderWithSeveralThreads) {
  for (const int threads : {autotune, 1, 2, 5}) {
    const Dataset<1> dataset(Pipeline(std::make_shared<CountedStage>(500, none, threads)));
    EXPECT_EQ(values(dataset.prefetch(7)), counted(500));
    EXPECT_EQ(values(dataset.prefetch()), counted(500));
  }
}

TEST(Prefetch, MakesNoMoreThanItsBuffers) {
  const auto stage = std::make_shared<CountedStage>(1000, none, 3);
  const Dataset<1> dataset = Dataset<1>(Pipeline(stage)).prefetch(4);
  auto next = dataset.begin();
  for (int i = 0; i < 10; ++i) {
    *next;
    ++next;
    EXPECT_LE(stage->made(), i + 1 + 4);
  }
}

TEST(Prefetch, MakesNothingBeforeItIsAsked) {
  const auto stage = std::make_shared<CountedStage>(10, none);
  const Dataset<1> dataset = Dataset<1>(Pipeline(stage)).prefetch(4);
  const auto next = dataset.begin();
  EXPECT_EQ(next.position(), Position{});
  EXPECT_EQ(stage->made(), 0);
}

TEST(Prefetch, KnowsWhereWhatFollowsEnds) {
  const auto stage = std::make_shared<CountedStage>(1000, none);
  EXPECT_EQ(values(Dataset<1>(Pipeline(stage)).prefetch(100).take(3)), counted(3));
  EXPECT_EQ(stage->made(), 3);
}

TEST(Prefetch, MayBeLeftHalfWay) {
  const auto stage = std::make_shared<CountedStage>(1000000, none, 2);
  for (int read = 0; read < 50; ++read) {
    const Dataset<1> dataset = Dataset<1>(Pipeline(stage)).prefetch(read % 5 + 1);
    auto next = dataset.begin();
    for (int i = 0; i < read % 7; ++i) ++next;
    if (read % 2) *next;
  }
  EXPECT_LT(stage->made(), 50 * (7 + 5 + 1));
}

TEST(Prefetch, OfWhatHasNoEndMayBeLeft) {
  int seen = 0;
  for (auto x : data::range(10).repeat().shuffle(4).batch(3).prefetch())
    if (++seen == 20) break;
  EXPECT_EQ(seen, 20);
}

TEST(Prefetch, TellsAFailureOnceAtItsElement) {
  for (const int threads : {autotune, 1, 3})
    for (const int buffers : {1, 4, autotune}) {
      const Dataset<1> dataset =
          Dataset<1>(Pipeline(std::make_shared<CountedStage>(100, 7, threads))).prefetch(buffers);
      auto next = dataset.begin();
      for (int i = 0; i < 7; ++i, ++next) EXPECT_EQ((*next).item(), i);
      EXPECT_EQ(message_of<DataError>([&] { *next; }), "element 7 is broken");
      EXPECT_TRUE(next == dataset.end());
      EXPECT_THROW(*next, OutOfRange);
    }
}

TEST(Prefetch, AFailureThatIsSkippedIsToldToo) {
  const Dataset<1> dataset = Dataset<1>(Pipeline(std::make_shared<CountedStage>(100, 2))).prefetch();
  auto next = dataset.begin();
  *next;
  EXPECT_THROW(for (int i = 0; i < 5; ++i)++ next, DataError);
}

TEST(Prefetch, AFailureThatIsNotReadIsNotTold) {
  const Dataset<1> dataset = Dataset<1>(Pipeline(std::make_shared<CountedStage>(100, 2))).prefetch();
  auto next = dataset.begin();
  EXPECT_EQ((*next).item(), 0);
}

/// As long as it lives the system has no room for the stack of a further thread.
class NoMoreThreads {
 public:
  NoMoreThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t huge;
    pthread_attr_init(&huge);
    pthread_attr_setstacksize(&huge, std::size_t{1} << 48);
    pthread_setattr_default_np(&huge);
    pthread_attr_destroy(&huge);
  }
  ~NoMoreThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  NoMoreThreads(const NoMoreThreads&) = delete;

 private:
  pthread_attr_t before_;
};

TEST(Prefetch, GoesOnWithTheThreadsThatThereAre) {
  const Threads several(4);
  const Dataset<1> dataset =
      Dataset<1>(Pipeline(std::make_shared<CountedStage>(60, none, autotune, std::chrono::milliseconds(1)))).prefetch();
  auto next = dataset.begin();
  EXPECT_EQ((*next).item(), 0);  // by the first thread
  const NoMoreThreads refused;
  EXPECT_THROW(std::thread([] {}).join(), std::system_error);
  for (int i = 1; i < 60; ++i) {
    ++next;
    ASSERT_EQ((*next).item(), i);
  }
}

TEST(Prefetch, SeveralThreadsReadOneDataset) {
  const auto dataset = data::range(300).shuffle({.seed = 1}).batch(7).cache().prefetch();
  const Numbers expected = values(dataset.epoch(0));
  std::vector<std::thread> readers;
  std::atomic<int> equal = 0;
  for (int i = 0; i < 4; ++i) readers.emplace_back([&] { equal += values(dataset) == expected; });
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(equal, 4) << "the cache froze the order";
}

TEST(Prefetch, ElementsOutliveTheDataset) {
  std::vector<Tensor> kept;
  {
    const auto dataset = data::from_tensor_slices(numbered_rows(20, 3)).batch(4).prefetch();
    for (auto x : dataset) kept.push_back(x);
  }
  Numbers seen;
  for (const Tensor& x : kept)
    for (std::int64_t row = 0; row < 4; ++row)
      seen.push_back(x.span<std::int32_t>()[static_cast<std::size_t>(3 * row)]);
  EXPECT_EQ(seen, counted(20));
}

}  // namespace
}  // namespace gradus::prefetch_test
