/// Strategies of several ranks that are threads of the test: what ranks of several processes do, without UCX and gRPC.
#pragma once
#include <functional>
#include "gradus/distribute/strategy.h"
#include "tests/distribute/threads_as_ranks.h"

namespace gradus {

class MeetingDesk;
struct MeetingTerms;

struct RanksOfTest {
  int ranks = 2, micro_shards = 4;
  bool shard_optimizer = false;
  std::chrono::milliseconds timeout{20'000}, heartbeat{5'000};
  Wrap wrap = {};                                                            // of transports
  std::function<std::shared_ptr<MeetingDesk>(MeetingTerms)> make_desk = {};  // another one than MeetingDesk
};

/// What each rank's body threw, as text; empty where it came to its end. Each rank draws random numbers of its own from
/// the same seed.
std::vector<std::string> run_on_ranks(const RanksOfTest& ranks,
                                      const std::function<void(const Strategy& strategy, int rank)>& body);

}  // namespace gradus
