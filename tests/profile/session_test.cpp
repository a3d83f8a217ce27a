// Profiles that begin and end where a program says, by threads that may be others.
#include "gradus/profile/session.h"
#include <gtest/gtest.h>
#include <algorithm>
#include <memory>
#include <thread>
#include "gradus/base/error.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/profile/profile.h"

namespace gradus::session_test {
namespace {

void work() {
  const ProfileScope scope("step");
  (full({8}, 2) * 3).to_vector<float>();
}

std::int64_t steps_of(const ProfileReport& report) {
  const auto row = std::ranges::find(report.rows, "step", &ProfileRow::name);
  return row == report.rows.end() ? 0 : row->calls;
}

template <class Work> void elsewhere(const Work& work) { std::thread(work).join(); }

TEST(ProfileSession, ReportsWhatCameBetweenBeginAndEnd) {
  work();
  ProfileSession session;
  work(), work();
  const ProfileReport report = session.finish();
  work();
  EXPECT_EQ(steps_of(report), 2);
  EXPECT_EQ(steps_of(profile(work)), 1);
}

TEST(ProfileSession, IsOneAtATimeAndEndsOnce) {
  ProfileSession session;
  EXPECT_THROW(ProfileSession(), InvalidArgument);
  EXPECT_THROW(profile(work), InvalidArgument);
  session.finish();
  EXPECT_THROW(session.finish(), InvalidArgument);
  EXPECT_EQ(steps_of(profile(work)), 1);
}

TEST(ProfileSession, RunsOnIfAnotherThreadWantsToEndIt) {
  ProfileSession session;
  elsewhere([&] { EXPECT_THROW(session.finish(), InvalidArgument); });
  work();
  EXPECT_EQ(steps_of(session.finish()), 1);
}

TEST(ProfileSession, MayBeDroppedAnywhere) {
  { const ProfileSession session; }
  EXPECT_EQ(steps_of(profile(work)), 1);
  elsewhere([] {
    auto session = std::make_unique<ProfileSession>();
    elsewhere([&] { session.reset(); });
    work();  // recorded, and read by none
  });
}

}  // namespace
}  // namespace gradus::session_test
