/// Ranks that are processes: the test program starts itself again, once a rank, and each runs the job of a given name.
#pragma once
#include <gtest/gtest.h>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>
#include "gradus/distribute/cluster.h"
#include "gradus/distribute/messages/transport.h"
#include "tests/components.h"

namespace gradus {

struct ProcessOfTest {
  int rank = 0, ranks = 1;
  std::filesystem::path folder = {};  // which all ranks of the job share
  std::string option = {};

  /// Writes a file that appears whole, and waits for one.
  void publish(const std::string& name, const std::string& bytes) const;
  std::string fetch(const std::string& name, std::chrono::milliseconds patience = std::chrono::seconds(20)) const;
  /// Addresses of all ranks that take part in a generation, by files.
  Group meet(const std::string& address, int own_rank, int all_ranks, int generation = 1) const;
};

/// A job is known by its name; a body returns, or throws.
struct ProcessJob {
  ProcessJob(const char* name, void (*body)(const ProcessOfTest&));
};

struct EndedProcess {
  bool was_killed = false;   // by a signal, also by that of the test's own patience
  int signal = 0;            // the signal that ended this process
  bool was_late = false;     // it did not end by itself
  std::string problem = {};  // what its body threw
  std::string output = {};   // what it wrote to standard output and standard error
  double seconds = 0;        // until it ended
};

/// Runs the job on so many ranks, with further variables of the environment, and waits for all, at most so long.
std::vector<EndedProcess> run_as_processes(const std::string& job, int ranks, const std::string& option = {},
                                           const std::map<std::string, std::string>& variables = {},
                                           std::chrono::milliseconds patience = std::chrono::seconds(20));

/// All ended by themselves, and threw nothing.
void expect_all_well(const std::vector<EndedProcess>& ended);

/// A port of this machine that nobody listens at now.
int free_port();

/// The cluster of a process whose option is the port of the meeting.
Cluster cluster_of_process(const ProcessOfTest& process, std::chrono::milliseconds timeout = std::chrono::seconds(15));

/// Tests of processes that meet by gRPC. Skipped without it.
class RanksByGrpc : public testing::Test {
 protected:
  void SetUp() override;
  /// The option of each process is a free port.
  static std::vector<EndedProcess> run(const std::string& job, int ranks);
};

}  // namespace gradus
