/// Pauses between starts that end at once.
#include "apps/gradus/restart_pause.h"
#include <gtest/gtest.h>

namespace gradus::command::restart_pause_test {
namespace {

using namespace std::chrono_literals;

TEST(RestartPauses, DoubleUntilAStartHasLived) {
  RestartPause pause;
  auto expected = RestartPause::shortest;
  std::chrono::milliseconds sum{0};
  for (int start = 0; start < 100; ++start) {
    const auto given = pause.after(10ms);
    EXPECT_EQ(given, expected);
    expected = std::min(2 * expected, RestartPause::longest);
    sum += given;
  }
  EXPECT_GT(sum, 40min) << "a program that ends at once is not started 100 times in a minute";
  EXPECT_EQ(pause.after(RestartPause::soon), RestartPause::shortest);
  EXPECT_EQ(pause.after(0s), 2 * RestartPause::shortest);
}

}  // namespace
}  // namespace gradus::command::restart_pause_test
