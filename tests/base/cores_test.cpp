/// How many cores control groups leave: what files of both versions say, of the group and of those above it.
#include "gradus/base/cores.h"
#include <gtest/gtest.h>
#include <sched.h>
#include <fstream>
#include <limits>
#include <thread>
#include <vector>
#include "tests/test_directory.h"

namespace gradus::cores_test {
namespace {

constexpr double unlimited = std::numeric_limits<double>::infinity();

struct Row {
  const char* name;
  std::vector<std::pair<std::string, std::string>> files;  // below the root, and their first lines
  std::string groups;
  double cores;
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

class Groups : public testing::TestWithParam<Row> {};

TEST_P(Groups, GiveTheLeast) {
  const EmptyTestDirectory directory;
  for (const auto& [file, line] : GetParam().files) {
    const auto path = directory.path() / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << line << '\n';
  }
  EXPECT_EQ(cores_of_groups(GetParam().groups, directory.path()), GetParam().cores);
}

INSTANTIATE_TEST_SUITE_P(
    Rows, Groups,
    testing::Values(
        Row{"nothing", {}, "", unlimited},  //
        Row{"no_files", {}, "0::/user\n", unlimited}, Row{"no_limit", {{"cpu.max", "max 100000"}}, "0::/\n", unlimited},
        Row{"container", {{"cpu.max", "150000 100000"}}, "0::/\n", 1.5},
        Row{"of_the_group", {{"a/b/cpu.max", "50000 100000"}, {"a/cpu.max", "400000 100000"}}, "0::/a/b\n", 0.5},
        Row{"of_one_above", {{"a/b/cpu.max", "max 100000"}, {"a/cpu.max", "200000 100000"}}, "0::/a/b\n", 2},
        Row{"of_another_group", {{"c/cpu.max", "50000 100000"}}, "0::/a/b\n", unlimited},
        Row{"path_of_the_host", {{"cpu.max", "100000 100000"}}, "0::/kubepods/pod1\n", 1},
        Row{"version_1",
            {{"cpu,cpuacct/a/cpu.cfs_quota_us", "300000"}, {"cpu,cpuacct/a/cpu.cfs_period_us", "100000"}},
            "5:memory:/a\n4:cpu,cpuacct:/a\n1:name=systemd:/\n0::/\n",
            3},
        Row{"version_1_by_its_short_name",
            {{"cpu/cpu.cfs_quota_us", "25000"}, {"cpu/cpu.cfs_period_us", "50000"}},
            "4:cpuacct,cpu:/docker/1\n",
            0.5},
        Row{"version_1_without_limit",
            {{"cpu/cpu.cfs_quota_us", "-1"}, {"cpu/cpu.cfs_period_us", "100000"}},
            "4:cpu:/\n",
            unlimited},
        Row{"another_controller",
            {{"cpuset/cpu.cfs_quota_us", "1"}, {"cpuset/cpu.cfs_period_us", "2"}},
            "4:cpuset:/\n",
            unlimited},
        Row{"nonsense", {{"cpu.max", "many 0"}}, "0::/\nno colons\n:\n::\n", unlimited},
        Row{"no_period", {{"cpu.max", "100000"}}, "0::/\n", unlimited},
        Row{"period_of_nothing", {{"cpu.max", "100000 0"}}, "0::/\n", unlimited}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(AvailableCores, AreThoseThatTheProcessMayRunOn) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_GE(available_cores(), 1);
  EXPECT_LE(available_cores(), CPU_COUNT(&before));
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core)
    if (CPU_ISSET(core, &before)) CPU_SET(core, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);  // of the main thread
  EXPECT_EQ(available_cores(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

/// A thread that was confined hands that on to those that it makes.
TEST(AvailableCores, AreGivenToThreadsThatWereMadeByAConfinedOne) {
  cpu_set_t all, seen;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core)
      if (CPU_ISSET(core, &all)) CPU_SET(core, &one);
    sched_setaffinity(0, sizeof one, &one);
    std::thread([&] {
      use_cores_of_process();
      sched_getaffinity(0, sizeof seen, &seen);
    }).join();
  }).join();
  EXPECT_TRUE(CPU_EQUAL(&all, &seen));
}

}  // namespace
}  // namespace gradus::cores_test
