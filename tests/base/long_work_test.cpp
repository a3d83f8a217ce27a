// Long work: hooks around it are called in pairs, on the thread that works, wherever it begins.
#include "gradus/base/long_work.h"
#include <gtest/gtest.h>
#include <vector>
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"

namespace gradus::long_work_test {
namespace {

std::vector<char>& calls() {
  static std::vector<char> all;
  return all;
}

struct Hooked {
  Hooked() {
    calls().clear();
    set_long_work_hooks({[]() -> void* {
                           calls().push_back('(');
                           return &calls();
                         },
                         [](void* began) {
                           EXPECT_EQ(began, &calls());
                           calls().push_back(')');
                         }});
  }
  ~Hooked() { set_long_work_hooks({}); }
};

TEST(LongWork, IsAnnouncedWhereValuesAreComputed) {
  const Tensor x = constant(1.0) + constant(2.0);
  const Hooked hooked;
  const Tensor y = x * 2;
  EXPECT_TRUE(calls().empty());  // recorded alone
  EXPECT_EQ(y.item(), 6);
  ASSERT_FALSE(calls().empty());
  int depth = 0;
  for (const char call : calls()) EXPECT_GE(depth += call == '(' ? 1 : -1, 0);
  EXPECT_EQ(depth, 0);
}

TEST(LongWork, EndsWithNothingIfItsBeginSaysSo) {
  static int ends = 0;
  set_long_work_hooks({[]() -> void* { return nullptr; }, [](void*) { ++ends; }});
  { const LongWork work; }
  set_long_work_hooks({});
  EXPECT_EQ(ends, 0);
}

}  // namespace
}  // namespace gradus::long_work_test
