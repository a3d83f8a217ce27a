/// Buffers: layout, reuse, exact accounts, the limit's message, frees on other threads and after a thread's end.
#include "gradus/base/rooms.h"
#include "gradus/tensor/buffer.h"
#include <gtest/gtest.h>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <random>
#include <thread>
#include <vector>
#include "gradus/base/error.h"
#include "gradus/tensor/heap.h"
#include "tests/environment_variables.h"
#include "tests/joined_pages.h"
#include "tests/new_process.h"

namespace gradus::buffer_test {
namespace {

constexpr std::int64_t sizes[] = {0,     1,      4,      63,      64,      65,      832,
                                  896,   897,    1000,   4096,    8000,    65408,   65409,
                                  70000, 262144, 999999, 1 << 20, 2 << 20, 3000000, 40 * (1 << 20)};

std::int64_t live() { return static_cast<std::int64_t>(memory_use().live_bytes); }
std::int64_t peak() { return static_cast<std::int64_t>(memory_use().peak_bytes); }

/// Restores the machine's limit, also when a test fails.
struct LimitScope {
  explicit LimitScope(std::int64_t bytes) { set_memory_limit(cpu(), static_cast<std::size_t>(bytes)); }
  ~LimitScope() { set_memory_limit(cpu(), 0); }
};

std::string message_of(auto action) {
  try {
    action();
  } catch (const ResourceExhausted& error) { return error.what(); }
  return "nothing was thrown";
}
void expect_contains(const std::string& text, std::string_view part) {
  EXPECT_NE(text.find(part), std::string::npos) << "\"" << part << "\" is not in: " << text;
}

TEST(HeapTest, ClassesFitAndWasteAnEighthAtMost) {
  for (std::int64_t size = 1; size <= heap::largest_small; ++size) {
    const int c = heap::class_of(size);
    const std::int64_t given = heap::class_size(c);
    ASSERT_LT(c, heap::class_count);
    ASSERT_GE(given, size);
    ASSERT_EQ(given % 64, 0);
    ASSERT_TRUE(given - size < 64 || (given - size) * 8 <= given) << size << " in " << given;
    ASSERT_TRUE(c == 0 || heap::class_size(c - 1) < size) << size;
  }
}

TEST(BufferTest, IsAlignedAndPadded) {
  for (const std::int64_t bytes : sizes) {
    const Ref<Buffer> buffer = Buffer::allocate(bytes);
    EXPECT_EQ(buffer->bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->data()) % 64, 0u);
    std::memset(buffer->data(), 0x5a, static_cast<std::size_t>(bytes + 64));
    EXPECT_EQ(buffer->data<unsigned char>()[bytes + 63], 0x5a);
  }
}

TEST(BufferTest, LiveBuffersNeverOverlap) {
  std::mt19937 random(1);
  struct Held {
    Ref<Buffer> buffer;
    unsigned char mark;
  };
  std::vector<Held> held;
  const auto intact = [](const Held& h) {
    const auto* data = h.buffer->data<unsigned char>();
    for (std::int64_t i = 0; i < h.buffer->bytes(); ++i)
      if (data[i] != h.mark) return false;
    return true;
  };
  for (int step = 0; step < 4000; ++step) {
    if (held.size() > 60 || (!held.empty() && random() % 3 == 0)) {
      const std::size_t i = random() % held.size();
      ASSERT_TRUE(intact(held[i])) << "step " << step;
      held[i] = held.back();
      held.pop_back();
    } else {
      const std::int64_t below = std::int64_t{1} << (random() % 21);
      const std::int64_t bytes = static_cast<std::int64_t>(random()) % below;
      held.push_back({Buffer::allocate(bytes), static_cast<unsigned char>(random())});
      std::memset(held.back().buffer->data(), held.back().mark, static_cast<std::size_t>(bytes));
    }
  }
  for (const Held& h : held) EXPECT_TRUE(intact(h));
}

TEST(BufferTest, BorrowedMemoryLivesAsLongAsTheBuffer) {
  auto owner = std::make_shared<std::vector<int>>(100, 7);
  const std::weak_ptr<std::vector<int>> alive = owner;
  const std::int64_t before = live();
  Ref<Buffer> buffer = Buffer::borrow(owner->data(), 400, owner);
  EXPECT_EQ(live(), before);
  owner.reset();
  EXPECT_EQ(buffer->data<int>()[99], 7);
  EXPECT_EQ(buffer->bytes(), 400);
  buffer = {};
  EXPECT_TRUE(alive.expired());
}

TEST(MemoryTest, LiveAndPeakAreExact) {
  for (const std::int64_t bytes : sizes) {
    reset_peak_memory();
    const std::int64_t before = live();
    EXPECT_EQ(peak(), before);
    {
      const Ref<Buffer> a = Buffer::allocate(bytes), b = Buffer::allocate(bytes), same = a;
      EXPECT_EQ(live(), before + 2 * bytes);
    }
    const Ref<Buffer> again = Buffer::allocate(bytes);
    EXPECT_EQ(live(), before + bytes);
    EXPECT_EQ(peak(), before + 2 * bytes) << "of " << bytes;
    reset_peak_memory();
    EXPECT_EQ(peak(), before + bytes);
  }
}

TEST(MemoryTest, PeakIsTheHighestOfAnyOrder) {
  std::mt19937 random(2);
  std::vector<Ref<Buffer>> held;
  reset_peak_memory();
  std::int64_t now = live(), highest = now;
  for (int step = 0; step < 5000; ++step) {
    if (random() % 2 && !held.empty()) {
      now -= held.back()->bytes();
      held.pop_back();
    } else {
      held.push_back(Buffer::allocate(static_cast<std::int64_t>(random() % 3000)));
      highest = std::max(highest, now += held.back()->bytes());
    }
    if (step % 977 == 0) { EXPECT_EQ(live(), now); }
  }
  EXPECT_EQ(live(), now);
  EXPECT_EQ(peak(), highest);
}

TEST(MemoryTest, LimitNamesTheLargestHolders) {
  std::vector<Ref<Buffer>> held;
  for (int i = 1; i <= 6; ++i) held.push_back(Buffer::allocate(i * (1 << 20)));
  for (int i = 1; i <= 6; ++i)
    held[static_cast<std::size_t>(i - 1)]->set_label("parameter dense_" + std::to_string(i) + "/kernel");
  const std::int64_t before = live();
  const LimitScope limit(before + (4 << 20));
  const std::string message = message_of([] { Buffer::allocate(5 << 20, "result of matmul"); });
  expect_contains(message, "result of matmul asks for 5242880 bytes (5.0 MiB)");
  expect_contains(message, std::to_string(before) + " bytes");
  expect_contains(message, "the limit is " + std::to_string(before + (4 << 20)) + " bytes");
  expect_contains(
      message, "parameter dense_6/kernel: 6291456 bytes (6.0 MiB), parameter dense_5/kernel: 5242880 bytes (5.0 MiB)");
  expect_contains(message, "dense_2/kernel");
  EXPECT_EQ(message.find("dense_1/kernel"), std::string::npos) << message;
  expect_contains(message, "set_memory_limit");
  EXPECT_EQ(live(), before) << "a refused buffer was counted";
  EXPECT_NO_THROW(Buffer::allocate(4 << 20));
  held.pop_back();
  EXPECT_NO_THROW(Buffer::allocate(5 << 20)) << "what was freed is not given again";
}

TEST(MemoryTest, LimitIsExactForSmallBuffersToo) {
  for (const std::int64_t bytes : {1, 100, 5000}) {
    const LimitScope limit(live() + 40 * bytes);
    std::vector<Ref<Buffer>> held;
    EXPECT_THROW(while (held.size() < 1000) held.push_back(Buffer::allocate(bytes)), ResourceExhausted);
    EXPECT_EQ(held.size(), 40u) << "of " << bytes;
    held.clear();
    EXPECT_NO_THROW(held.push_back(Buffer::allocate(40 * bytes)));
  }
}

TEST(MemoryTest, AnAbsurdRequestIsRefused) {
  const std::string message = message_of([] { Buffer::allocate(std::int64_t{1} << 60); });
  expect_contains(message, "(1.0 EiB)");
  expect_contains(message, "memory limit reached");
}

TEST(MemoryTest, ThreadsFreeWhatOthersAllocate) {
  reset_peak_memory();
  const std::int64_t before = live();
  std::vector<Ref<Buffer>> made;
  std::thread([&] {
    for (int i = 0; i < 3000; ++i) made.push_back(Buffer::allocate(i));
  }).join();
  EXPECT_EQ(live(), before + 2999 * 3000 / 2) << "what an ended thread allocated";
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (std::size_t i = t; i < made.size(); i += 3) made[i] = Buffer::allocate(100);
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(live(), before + 3000 * 100);
  made.clear();
  EXPECT_EQ(live(), before);
  EXPECT_GE(peak(), before + 2999 * 3000 / 2);
}

TEST(MemoryTest, ThreadsTogether) {
  const std::int64_t before = live();
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      std::mt19937 random(t);
      std::vector<Ref<Buffer>> held(50);
      for (int i = 0; i < 5000; ++i) {
        Ref<Buffer>& slot = held[random() % held.size()];
        const std::int64_t below = std::int64_t{1} << (random() % 18);
        slot = Buffer::allocate(static_cast<std::int64_t>(random()) % below);
        std::memset(slot->data(), static_cast<int>(t), static_cast<std::size_t>(slot->bytes()));
        if (i % 500 == 0) memory_use();
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(live(), before);
}

/// Freed by a destructor that runs after the thread's own cache is gone.
TEST(MemoryTest, OutlivesTheThreadsCache) {
  struct Late {
    Ref<Buffer> buffer;
    ~Late() {
      buffer = {};
      Buffer::allocate(123);
    }
  };
  const std::int64_t before = live();
  std::thread([] {
    thread_local Late late;
    late.buffer = Buffer::allocate(1000);
  }).join();
  EXPECT_EQ(live(), before);
}

#if !defined(__SANITIZE_ADDRESS__)
TEST(MemoryTest, WhatTheSystemRefusesIsAnErrorToo) {
  const LimitScope limit(std::int64_t{1} << 62);
  const std::int64_t before = live();
  expect_contains(message_of([] { Buffer::allocate((std::int64_t{1} << 55) + 1, "huge"); }), "huge asks for");
  EXPECT_EQ(live(), before);
}

TEST(HeapTest, MemoryIsReused) {
  for (const std::int64_t bytes : sizes) {
    const void* first = Buffer::allocate(bytes)->data();
    EXPECT_EQ(Buffer::allocate(bytes)->data(), first) << bytes;
  }
}

/// Buffers that hold numbers of their own, in memory of small pages as long as nothing has settled the heap.
struct Held {
  std::vector<Ref<Buffer>> buffers;
  explicit Held(std::initializer_list<int> megabytes) {
    for (const int m : megabytes) buffers.push_back(Buffer::allocate(std::int64_t{m} << 20));
    each([](std::byte& at, std::byte number) { at = number; });
  }
  void each(auto visit) const {
    for (std::size_t k = 0; k < buffers.size(); ++k)
      for (std::int64_t i = 0; buffers[k] && i < buffers[k]->bytes(); i += 1000)
        visit(buffers[k]->data<std::byte>()[i], static_cast<std::byte>(k + 3));
  }
  bool is_whole() const {
    bool whole = true;
    each([&](std::byte& at, std::byte number) { whole = whole && at == number; });
    return whole;
  }
};

/// Runs `checks` in a process of its own, since a heap settles once; it exits with the number of the first that fails.
void expect_in_new_process(const std::function<void(std::function<void(bool, int)>)>& checks) {
  GRADUS_IN_NEW_PROCESS();
  EXPECT_EXIT(
      {
        checks([](bool holds, int number) {
          if (!holds) std::_Exit(number);
        });
        std::_Exit(0);
      },
      testing::ExitedWithCode(0), "");
}

TEST(HeapDeathTest, ACallJoinsNoMorePagesThanItMay) {
  if (!system_joins_pages()) GTEST_SKIP() << "this system joins no pages when it is asked to";
  expect_in_new_process([](auto check) {
    constexpr std::int64_t page = heap::huge_page_bytes;
    const Held held{40, 3, 9};
    std::int64_t whole = 0, calls = 0;
    for (std::int64_t most = 1, joined = -1; joined != 0; most = most % 3 + 1, ++calls, whole += joined) {
      joined = heap::settle(most * page - 1);
      check(joined <= most * page, 1);
      check(held.is_whole(), 2);
      check(calls < 40, 3);
    }
    const std::int64_t reserved = heap::reserved_bytes();
    check(whole >= 52 * page / 2 - 3 * page && whole <= reserved, 4);  // pieces at ends of arenas stay small
    const Held later{30};                                              // of huge pages from the beginning
    check(heap::settle() == 0, 5);
  });
}

TEST(HeapDeathTest, MemoryThatNothingTouchedIsNotJoined) {
  expect_in_new_process([](auto check) {
    const Ref<Buffer> untouched = Buffer::allocate(60 << 20);  // but for the head of the buffer
    check(heap::settle(1 << 30) <= heap::huge_page_bytes, 1);
  });
}

TEST(HeapDeathTest, PagesAreJoinedWhileMemoryComesAndGoes) {
  if (!system_joins_pages()) GTEST_SKIP() << "this system joins no pages when it is asked to";
  expect_in_new_process([](auto check) {
    Held held{20, 30, 10, 40};
    std::atomic<bool> ends = false;
    std::jthread other([&] {
      while (!ends) {
        const Held some{9, 1};
        if (!some.is_whole()) std::_Exit(1);
        heap::trim();
      }
    });
    std::int64_t calls = 0;
    for (; heap::settle() > 0; ++calls) {
      check(held.is_whole(), 2);
      check(calls < 300, 3);
      if (calls == 3) held.buffers[1] = nullptr, heap::trim();
    }
    ends = true;
    check(calls > 20, 4);
  });
}

TEST(HeapDeathTest, JoiningIsSwitchedOff) {
  const VariablesOfTest off{{"GRADUS_HUGE_PAGES", "0"}};
  expect_in_new_process([](auto check) {
    const Held held{40};
    check(heap::settle(1 << 30) == 0, 1);
    check(heap::settle(1 << 30) == 0, 2);
  });
}

TEST(HeapTest, FreedBlocksServeOtherSizes) {
  heap::trim();
  std::vector<Ref<Buffer>> held;
  for (int i = 0; i < 64; ++i) held.push_back(Buffer::allocate(1 << 20));
  const std::int64_t reserved = heap::reserved_bytes();
  held.clear();
  held.push_back(Buffer::allocate(7 << 20));
  held.push_back(Buffer::allocate(300000));
  EXPECT_LE(heap::reserved_bytes(), reserved);
}

TEST(HeapTest, AStepsMemoryStaysButOldMemoryGoesBack) {
  constexpr std::int64_t large = 256 << 20;
  const auto step = [] { Buffer::allocate(large), Buffer::allocate(large); };
  step();
  const std::int64_t reserved = heap::reserved_bytes();
  for (int i = 0; i < 100; ++i) step();
  EXPECT_EQ(heap::reserved_bytes(), reserved);
  EXPECT_GE(reserved, large);
  for (int i = 0; i < 10000; ++i) Buffer::allocate(100000);
  Buffer::allocate(64 << 20);
  EXPECT_LT(heap::reserved_bytes(), large);
}

TEST(HeapTest, CachedMemoryMakesRoomUnderTheLimit) {
  heap::trim();
  const std::int64_t bound = live() + (100 << 20);
  const LimitScope limit(bound);
  { const Ref<Buffer> a = Buffer::allocate(40 << 20), b = Buffer::allocate(24 << 20); }
  const Ref<Buffer> c = Buffer::allocate(70 << 20);
  EXPECT_LE(heap::reserved_bytes(), bound);
}

TEST(HeapTest, TrimReturnsAllThatIsFree) {
  const std::int64_t before = live();
  { const Ref<Buffer> a = Buffer::allocate(33 << 20); }
  heap::trim();
  EXPECT_LT(heap::reserved_bytes(), before + (33 << 20));
}
#endif

}  // namespace
}  // namespace gradus::buffer_test
