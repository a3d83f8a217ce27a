/// Sinks of notices and of progress: what arrives there, what does not, and sinks that fail.
#include <gtest/gtest.h>
#include <stdexcept>
#include <mutex>
#include <string>
#include <thread>
#include <vector>
#include "gradus/base/notice.h"
#include "gradus/base/rooms.h"
#include "gradus/nn/layers.h"
#include "gradus/ops/constant.h"
#include "gradus/optim/optimizers.h"
#include "gradus/train/fit.h"

namespace gradus::message_sinks_test {
namespace {

/// Sinks that keep what they get, and are gone with this.
struct Kept {
  Kept() {
    set_notice_sink([this](std::string_view message) { notices.emplace_back(message); });
    set_progress_sink([this](std::string_view message) { progress.emplace_back(message); });
  }
  ~Kept() {
    set_notice_sink({});
    set_progress_sink({});
  }
  std::vector<std::string> notices, progress;
};

TEST(MessageSinks, ProgressArrivesByLinesOfEpochsAndNothingElseIsWritten) {
  testing::internal::CaptureStderr();
  const Kept kept;
  Sequential model{Dense(1)};
  SGD optimizer({.learning_rate = 0.01});
  const auto data = data::from_tensor_slices(ones({8, 2}), ones({8, 1})).batch(4);
  fit(model, optimizer, MeanSquaredError(), data, {.epochs = 2, .verbose = true});
  ASSERT_EQ(kept.progress.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(kept.progress[i].find("epoch " + std::to_string(i + 1) + "/2  2 steps"), 0u) << kept.progress[i];
    EXPECT_EQ(kept.progress[i].back(), '\n');
    EXPECT_EQ(kept.progress[i].find_first_of("\r\033"), std::string::npos);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(MessageSinks, GiveTheOneBefore) {
  int calls = 0;
  EXPECT_FALSE(set_notice_sink([&](std::string_view) { ++calls; }));
  const MessageSink first = set_notice_sink([](std::string_view) {});
  notice("to the second\n");
  first("by hand\n");
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(set_notice_sink({}));
}

TEST(MessageSinks, AFailureIsWrittenBehindTheMessage) {
  testing::internal::CaptureStderr();
  set_notice_sink([](std::string_view) { throw std::runtime_error("full"); });
  notice("something\n");
  set_notice_sink([](std::string_view) { throw 7; });
  notice("something else\n");
  set_notice_sink({});
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "something\ngradus: the sink of this message failed: full\n"
            "something else\ngradus: the sink of this message failed\n");
}

TEST(MessageSinks, MayBeSetAndUsedByThreads) {
  std::mutex mutex;
  int count = 0;
  const MessageSink counting = [&](std::string_view) {
    std::lock_guard lock(mutex);
    ++count;
  };
  set_notice_sink(counting);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 100; ++k) {
        notice("x\n");
        set_notice_sink(counting);
      }
    });
  for (std::thread& thread : threads) thread.join();
  set_notice_sink({});
  EXPECT_EQ(count, 400);
}

}  // namespace
}  // namespace gradus::message_sinks_test
