/// UCX transport: shared memory between ranks of one machine, TCP and InfiniBand between machines. It is a component of
/// its own (component.h). Its messages are neither encrypted nor authenticated: it belongs on a trusted network, and
/// its ports open only after the meeting has named the others.
#pragma once
#include <memory>
#include "gradus/distribute/messages/transport.h"

namespace gradus {

struct UcxChoice {
  std::string transports = {};  // as in UCX_TLS: those of shared memory on one machine; empty: UCX's own choice
  std::string devices = {};     // as UCX_NET_DEVICES: "lo"; empty: all
  /// Lost peers are noticed within a second, as forming again in the same process needs. Large messages take 1.5 to 1.9
  /// times as long.
  bool notices_lost_peers = false;
  std::chrono::milliseconds timeout{60'000};  // for joining a group, which all its ranks do together
  std::string problem = {};                   // for people: why there is no choice of devices
};

/// Transports between ranks of one machine, in the form of UCX_TLS: memory that only this user may open. UCX's own "sm"
/// includes System V's segments, which it opens to the user's group. Direct copies from another process (CMA) are
/// included if the system allows them.
std::string shared_memory_transports();

/// Unavailable if the component or a library that it needs is missing. Variables of UCX (UCX_TLS, UCX_NET_DEVICES) take
/// precedence over `choice`.
std::unique_ptr<Transport> ucx_transport(UcxChoice choice);

}  // namespace gradus
