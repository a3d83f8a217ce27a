/// Shares of a job: every unit once a pass, passes in order, whoever takes over what from whom.
#include "gradus/base/share.h"
#include <gtest/gtest.h>
#include <thread>
#include <vector>

namespace gradus::share_test {
namespace {

bool is(const Units& units, std::int64_t begin, std::int64_t end) { return units.begin == begin && units.end == end; }

TEST(Share, GivesItsOwnerUnitsFromTheFront) {
  Share share;
  share.begin({3, 10});
  EXPECT_TRUE(is(share.next(2), 3, 5));
  EXPECT_TRUE(is(share.later(), 5, 10));
  EXPECT_TRUE(is(share.next(100), 5, 10));
  EXPECT_EQ(share.next(1).count(), 0);
}

TEST(Share, GivesOthersHalfFromTheEnd) {
  Share share, other;
  share.begin({0, 7});
  ASSERT_EQ(other.take_over(share, 1), Share::Found::taken);
  EXPECT_TRUE(is(share.later(), 0, 3));
  EXPECT_TRUE(is(other.later(), 3, 7));
  Share third;
  share.begin({5, 6});
  EXPECT_EQ(third.take_over(share, 1), Share::Found::taken) << "the last one has not been begun";
  EXPECT_EQ(share.next(1).count(), 0);
  EXPECT_EQ(third.take_over(share, 1), Share::Found::nothing);
}

TEST(Share, KeepsWhatIsNotWorthTakingOver) {
  Share share, other;
  share.begin({0, 6});
  EXPECT_EQ(other.take_over(share, 4), Share::Found::nothing);
  share.begin({0, 7});
  EXPECT_EQ(other.take_over(share, 4), Share::Found::taken);
}

TEST(Share, HoldsTheLargestNumbers) {
  Share share;
  share.begin({Share::most_units - 2, Share::most_units});
  Units units = share.next(2);
  EXPECT_TRUE(is(units, Share::most_units - 2, Share::most_units));
  units.passes_left = Share::most_passes_left;
  share.offer(units);
  EXPECT_EQ(share.now().passes_left, Share::most_passes_left);
  EXPECT_TRUE(is(share.take(1), Share::most_units - 2, Share::most_units - 1));
  share.clear();
  EXPECT_EQ(Share().take_over(share, 1), Share::Found::nothing);
}

TEST(Share, HandsOnAPassThatHasBegun) {
  Share share, other;
  share.begin({0, 20});
  Units units = share.next(12);
  units.passes_left = 2;
  share.offer(units);
  EXPECT_TRUE(is(share.take(4), 0, 4));
  ASSERT_EQ(other.take_over(share, 1), Share::Found::taken) << "what comes later goes first";
  EXPECT_TRUE(is(other.later(), 16, 20));
  Share third;
  share.next(100);
  ASSERT_EQ(third.take_over(share, 1), Share::Found::taken);
  EXPECT_TRUE(is(third.now(), 8, 12));
  EXPECT_EQ(third.now().passes_left, 2);
  EXPECT_TRUE(is(share.take(100), 4, 8));
  EXPECT_EQ(Share().take_over(share, 1), Share::Found::more_soon);
  share.next_pass(0);
  EXPECT_TRUE(is(share.now(), 0, 8)) << "units that were taken over are another one's in all passes";
  share.take(100);
  share.next_pass(0);
  share.take(100);
  EXPECT_EQ(Share().take_over(share, 1), Share::Found::nothing);
}

TEST(Share, KeepsTheLastUnitOfAPassThatOthersFollow) {
  Share share, other;
  share.begin({0, 1});
  share.offer({0, 1, 1});
  share.next(1);
  EXPECT_EQ(other.take_over(share, 1), Share::Found::more_soon);
  EXPECT_EQ(share.take(1).count(), 1);
}

/// Workers that go over ranges of their units in passes, as products do.
class Team {
 public:
  Team(int workers, std::int64_t units, std::int64_t range, std::int64_t passes)
      : shares_(static_cast<std::size_t>(workers)),
        visits_(static_cast<std::size_t>(units)),
        range_(range),
        passes_(passes) {}

  /// Worker 0 has all of it at first.
  void run() {
    shares_[0].begin({0, std::ssize(visits_)});
    std::vector<std::jthread> threads;
    for (std::size_t w = 1; w < shares_.size(); ++w) threads.emplace_back([this, w] { take_over(w); });
    work(shares_[0]);
    take_over(0);
  }
  std::vector<std::int64_t> visits() const { return visits_; }
  int out_of_order() const { return out_of_order_; }

 private:
  void work(Share& share) {
    if (share.now().count() > 0) pass_over(share);
    for (;;) {
      Units units = share.next(range_);
      if (units.count() <= 0) return;
      units.passes_left = passes_ - 1;
      share.offer(units);
      pass_over(share);
    }
  }
  void pass_over(Share& share) {
    const Units first = share.now();
    for (std::int64_t left = first.passes_left;; --left) {
      for (Units taken = share.take(3); taken.count() > 0; taken = share.take(3))
        for (std::int64_t unit = taken.begin; unit < taken.end; ++unit) {
          std::int64_t& visits = visits_[static_cast<std::size_t>(unit)];  // a race here is a mistake in the share
          out_of_order_ += visits != passes_ - 1 - left;
          ++visits;
        }
      if (left == 0) return;
      share.next_pass(first.begin);
    }
  }
  void take_over(std::size_t self) {
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (std::size_t i = 1; i < shares_.size(); ++i) {
        const auto found = shares_[self].take_over(shares_[(self + i) % shares_.size()], 1);
        goes_on |= found != Share::Found::nothing;
        if (found == Share::Found::taken) work(shares_[self]);
      }
    }
  }

  std::vector<Share> shares_;
  std::vector<std::int64_t> visits_;
  const std::int64_t range_, passes_;
  std::atomic<int> out_of_order_ = 0;
};

TEST(Share, HasEveryUnitOnceAPassWhateverIsTakenOver) {
  for (const int workers : {1, 2, 3, 5})
    for (const std::int64_t passes : {1, 2, 4})
      for (const std::int64_t range : {1, 7, 100, 5000})
        for (int again = 0; again < 10; ++again) {
          Team team(workers, 1000, range, passes);
          team.run();
          ASSERT_EQ(team.visits(), std::vector<std::int64_t>(1000, passes)) << workers << " workers, range " << range;
          ASSERT_EQ(team.out_of_order(), 0) << workers << " workers, range " << range;
        }
}

}  // namespace
}  // namespace gradus::share_test
