#include "tests/distribute/threads_as_ranks.h"
#include <gtest/gtest.h>
#include <thread>
#include "gradus/base/error.h"

namespace gradus {

Group group_of(int rank, const std::vector<std::string>& addresses, int generation) {
  Group group{rank, generation};
  for (std::size_t r = 0; r < addresses.size(); ++r)
    group.members.push_back({text("rank ", r, " (here)"), addresses[r]});
  return group;
}

std::vector<std::string> run_as_threads(int ranks, const std::function<void(Transport&)>& body, const Wrap& wrap) {
  const auto network = in_process_network();
  std::vector<std::unique_ptr<Transport>> transports;
  std::vector<std::string> addresses, problems(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    transports.push_back(in_process_transport(network));
    if (wrap) transports.back() = wrap(rank, std::move(transports.back()));
    addresses.push_back(transports.back()->open());
  }
  for (int rank = 0; rank < ranks; ++rank) transports[static_cast<std::size_t>(rank)]->join(group_of(rank, addresses));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, at = static_cast<std::size_t>(rank)] {
      try {
        body(*transports[at]);
      } catch (const std::exception& error) {
        problems[at] = error.what();
        transports[at]->close(error.what());
      }
    });
  for (std::thread& thread : threads) thread.join();
  return problems;
}

void expect_all_well(const std::vector<std::string>& problems) {
  for (std::size_t rank = 0; rank < problems.size(); ++rank) EXPECT_EQ(problems[rank], "") << "rank " << rank;
}

}  // namespace gradus
