/// Ranks that are threads of the test: each runs the same body on a transport of its own.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>
#include "tests/distribute/in_process_transport.h"

namespace gradus {

/// Puts another transport before that of a rank, as one with faults.
using Wrap = std::function<std::unique_ptr<Transport>(int rank, std::unique_ptr<Transport> inner)>;

/// What each rank's body threw, as text; empty where it came to its end.
std::vector<std::string> run_as_threads(int ranks, const std::function<void(Transport&)>& body, const Wrap& wrap = {});

/// The group of transports with these addresses.
Group group_of(int rank, const std::vector<std::string>& addresses, int generation = 1);

/// Fails the test with what they threw, if anything.
void expect_all_well(const std::vector<std::string>& problems);

}  // namespace gradus
