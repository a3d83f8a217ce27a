/// How fast messages go over a transport, measured between two ranks of this process.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>
#include "gradus/distribute/messages/transport.h"

namespace gradus {

struct NetworkRates {
  std::string name = {};        // "TCP over loopback"
  double latency = 0;           // seconds from the sending of a small message to its arrival
  double message_seconds = 0;   // that each further small message takes, of many at once
  double bytes_per_second = 0;  // of large messages, one way
  std::string problem = {};     // why there are no numbers
};

using MakeTransport = std::function<std::unique_ptr<Transport>()>;

/// Measures for some tenths of a second. A failure, within `timeout`, is reported in `problem`.
NetworkRates measure_network(std::string name, const MakeTransport& make,
                             std::chrono::milliseconds timeout = std::chrono::seconds(10));

/// The rates of the transports between ranks of this machine: shared memory, and TCP over the loopback device.
std::vector<NetworkRates> measure_local_networks();

}  // namespace gradus
