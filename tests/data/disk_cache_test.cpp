/// The cache on disk: read again by later runs, refused where it is another one's, of use after a kill.
#include <gtest/gtest.h>
#include <signal.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>
#include "gradus/data/cache_file.h"
#include "gradus/function/variable.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/random.h"
#include "tests/data/readings.h"
#include "tests/test_directory.h"

namespace gradus::disk_cache_test {
namespace {

class DiskCache : public testing::Test {
 protected:
  std::string contents() const {
    std::ifstream in(file_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void replace(const std::string& bytes) const { std::ofstream(file_, std::ios::binary | std::ios::trunc) << bytes; }

  const EmptyTestDirectory directory_;
  const std::filesystem::path& folder_ = directory_.path();
  const std::filesystem::path file_ = folder_ / "numbers.cache";
};

Dataset<1> squares(std::int32_t n) {
  return data::from_tensor_slices(numbered_rows(n, 3)).map([](Tensor x) { return x * x; });
}

TEST_F(DiskCache, HoldsWhatWasMade) {
  const Elements expected = read_all(squares(20));
  for (int run = 0; run < 2; ++run) {
    const auto cached = squares(20).cache(file_);
    EXPECT_EQ(read_all(cached), expected);
    EXPECT_EQ(read_all(cached.shuffle({.seed = 1}).batch(6).prefetch()),
              read_all(squares(20).shuffle({.seed = 1}).batch(6)));
    EXPECT_EQ(cached.cardinality(), 20);
    EXPECT_EQ(cached.batch(8).unbatch().cardinality(), 20);
  }
  const auto partly = squares(21).cache(folder_ / "partly");
  EXPECT_EQ(read_all(partly.skip(5).take(3)), read_all(squares(21).skip(5).take(3)));
  EXPECT_EQ(read_all(squares(21).cache(folder_ / "partly").prefetch()), read_all(squares(21)));
}

TEST_F(DiskCache, IsReadInsteadOfMakingElements) {
  int calls = 0;
  const auto make = [&] {
    return data::from_generator({i32, {any_size}},
                                [&calls, i = 0]() mutable -> std::optional<Tensor> {
                                  if (i == 7) return std::nullopt;
                                  ++calls;
                                  ++i;
                                  return full({i}, i, i32);
                                })
        .cache(file_);
  };
  const Elements expected = read_all(make());
  EXPECT_EQ(expected.size(), 7u);
  EXPECT_EQ(calls, 7);
  EXPECT_EQ(read_all(make().prefetch()), expected);
  EXPECT_EQ(read_all(make().repeat(2)).size(), 14u);
  EXPECT_EQ(calls, 7);
}

TEST_F(DiskCache, RefusesWhatIsStale) {
  read_all(squares(5).cache(file_));
  const std::string before = contents(), message = text("cache: ", file_.string(),
                                                        " is stale: it was made from other data or by other stages; "
                                                        "delete it, or name another file");
  const auto rows = [](std::int32_t n) { return data::from_tensor_slices(numbered_rows(n, 3)); };
  Variable factor(constant(2));
  const std::vector<std::function<Dataset<1>()>> others{
      [&] { return rows(6).map([](Tensor x) { return x * x; }); },
      [&] { return rows(5).map([](Tensor x) { return x * x + 1; }); },
      [&] { return rows(5).map([](Tensor x) { return x * 3; }); },
      [&] { return rows(5).map([&](Tensor x) { return x * factor; }); },
      [&] { return data::from_tensor_slices(numbered_rows(5, 3) + 1).map([](Tensor x) { return x * x; }); },
      [&] { return squares(5).batch(2); },
      [&] { return squares(5).take(4); },
      [&] { return rows(5); },
  };
  for (std::size_t i = 0; i < others.size(); ++i) {
    EXPECT_EQ(message_of<DataError>([&] { others[i]().cache(file_); }), message) << i;
    const auto own = folder_ / std::to_string(i);
    EXPECT_EQ(read_all(others[i]().cache(own)), read_all(others[i]()));
    EXPECT_EQ(read_all(others[i]().cache(own)), read_all(others[i]())) << "the same stages again";
  }
  factor.assign(constant(5));
  EXPECT_EQ(message_of<DataError>([&] { others[3]().cache(folder_ / "3"); }).substr(0, 7), "cache: ");
  EXPECT_EQ(contents(), before);
}

TEST_F(DiskCache, OverwritesNoOtherFile) {
  for (const std::string text : {"precious", "a longer text that somebody wrote by hand, and wants to keep"}) {
    replace(text);
    EXPECT_THROW(read_all(squares(5).cache(file_)), DataError);
    EXPECT_EQ(contents(), text);
  }
  EXPECT_THROW(read_all(squares(5).cache(folder_ / "none" / "such")), Unavailable);
  for (const std::filesystem::path device : {"/dev/zero", "/dev/null"})
    EXPECT_THROW(read_all(squares(5).cache(device)), Unavailable) << device;
  const std::filesystem::path pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THROW(read_all(squares(5).cache(pipe)), Unavailable);
}

TEST_F(DiskCache, WhatWasCutOffIsMadeAgain) {
  const Elements expected = read_all(squares(6));
  read_all(squares(6).cache(file_));
  const std::string whole = contents();
  for (std::size_t size = 0; size < whole.size(); size += 5) {
    replace(whole.substr(0, size));
    EXPECT_EQ(read_all(squares(6).cache(file_)), expected) << size;
    EXPECT_EQ(contents(), whole) << size;
  }
}

TEST_F(DiskCache, DamageIsFound) {
  read_all(squares(6).cache(file_));
  const std::string whole = contents();
  const Elements expected = read_all(squares(6));
  for (std::size_t i = 0; i < whole.size(); i += 3) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    replace(damaged);
    try {
      EXPECT_EQ(read_all(squares(6).cache(file_)), expected) << i;
    } catch (const DataError& error) { EXPECT_NE(std::string(error.what()).find(file_.string()), std::string::npos); }
  }
}

/// A file that cannot shrink, and a bound on its size: part of a record is written, and stays.
TEST_F(DiskCache, IsNotWrittenBehindWhatCouldNotBeRemoved) {
  const int memory = memfd_create("cache", MFD_ALLOW_SEALING | MFD_CLOEXEC);
  ASSERT_GE(memory, 0);
  ASSERT_EQ(fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK), 0);
  const std::filesystem::path file = "/proc/self/fd/" + std::to_string(memory);
  const Tensor x = tensor_of_numbers({7}, {});
  {
    const auto cache = CacheFile::open(file, 1, {{i32, {}}}, std::nullopt);
    cache->append(0, {&x, 1});
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    const rlimit small{std::filesystem::file_size(file) + 10, before.rlim_max};
    const auto handler = signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    const std::string full = message_of<ResourceExhausted>([&] { cache->append(1, {&x, 1}); });
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    EXPECT_NE(full.find("cannot be written"), std::string::npos) << full;
    EXPECT_THROW(cache->append(1, {&x, 1}), Unavailable);
    EXPECT_EQ(cache->read(0)[0].item(), 7);
  }
  EXPECT_NO_THROW(CacheFile::check(file, 1)) << "its header is whole";
  close(memory);
}

/// In a child that computes nothing: it fills the file through CacheFile, and is killed at any moment.
TEST_F(DiskCache, SurvivesBeingKilled) {
  constexpr std::int64_t n = 3000;
  const std::vector<Spec> specs{{i32, {3}}};
  std::int64_t most = 0;
  for (int round = 0; round < 20; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      const auto cache = CacheFile::open(file_, 42, specs, n);
      for (std::int64_t i = 0; i < n; ++i)
        if (!cache->holds(i))
          cache->append(i, std::vector{tensor_of_numbers({static_cast<std::int32_t>(i), 1, 2}, {3})});
      _exit(0);
    }
    ::usleep(static_cast<useconds_t>(200 + 400 * round));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const auto cache = CacheFile::open(file_, 42, specs, n);
    std::int64_t held = 0;
    for (; held < n && cache->holds(held); ++held)
      ASSERT_EQ(cache->read(held)[0].to_vector<std::int32_t>(), (Numbers{static_cast<std::int32_t>(held), 1, 2}));
    for (std::int64_t i = held; i < n; ++i) ASSERT_FALSE(cache->holds(i));
    EXPECT_GE(held, most) << "what was written stays";
    most = held;
  }
}

TEST_F(DiskCache, IsOfOneProcessWhileItIsFilled) {
  const auto filling = squares(5).cache(file_);
  filling.first();
  const pid_t child = fork();
  if (child == 0) {
    const int descriptor = ::open(file_.c_str(), O_RDWR);
    _exit(flock(descriptor, LOCK_EX | LOCK_NB) == 0 ? 1 : 0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << "another process finds it locked";
  EXPECT_EQ(read_all(squares(5).cache(file_)), read_all(squares(5))) << "this one shares it";
}

TEST_F(DiskCache, OfRandomMapsGoesByTheSeed) {
  const auto noisy = [&](std::uint64_t seed) {
    set_seed(seed);
    return data::range(10).map([](Tensor n) { return n * 1000 + random::integers({}, {.high = 1000}); });
  };
  const Numbers first = values(noisy(1).cache(file_));
  EXPECT_EQ(values(noisy(1).cache(file_)), first);
  EXPECT_THROW(noisy(2).cache(file_), DataError);
}

}  // namespace
}  // namespace gradus::disk_cache_test
