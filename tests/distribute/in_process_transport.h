/// In-process transport: ranks are threads of one process, and messages are copied from box to box.
#pragma once
#include <memory>
#include "gradus/distribute/messages/transport.h"

namespace gradus {

/// The boxes of all ranks.
class InProcessNetwork;
std::shared_ptr<InProcessNetwork> in_process_network();

/// One rank's. It is opened and joined like any other.
std::unique_ptr<Transport> in_process_transport(std::shared_ptr<InProcessNetwork> network);

/// As when the process behind `address` is killed: all of its group learn it at once.
void kill_in_process(InProcessNetwork& network, const std::string& address);

}  // namespace gradus
