/// `gradus devices`.
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>
#include "apps/gradus/commands.h"
#include "gradus/distribute/network_rates.h"
#include "gradus/gradus.h"

namespace gradus::command {

namespace {

nlohmann::json networks_as_json() {
  nlohmann::json all = nlohmann::json::array();
  for (const NetworkRates& rates : measure_local_networks()) {
    if (!rates.problem.empty()) all.push_back({{"network", rates.name}, {"problem", rates.problem}});
    else
      all.push_back({{"network", rates.name},
                     {"latency_seconds", rates.latency},
                     {"message_seconds", rates.message_seconds},
                     {"bytes_per_second", rates.bytes_per_second}});
  }
  return all;
}

void print_networks(const nlohmann::json& networks) {
  for (const auto& network : networks) {
    std::cout << network["network"].get<std::string>() << "  ";
    if (network.contains("problem")) std::cout << "not measured: " << network["problem"].get<std::string>() << '\n';
    else
      std::cout << text(std::fixed, std::setprecision(2), network["latency_seconds"].get<double>() * 1e6,
                        " us latency  ", network["message_seconds"].get<double>() * 1e6, " us a message  ",
                        network["bytes_per_second"].get<double>() / 1e9, " GB/s\n");
  }
}

}  // namespace

int list_devices(bool json, bool network) {
  nlohmann::json all = nlohmann::json::array();
  for (const Device& device : devices(DeviceKind::cpu)) {
    const MemoryUse memory = memory_use(device);
    all.push_back({{"device", text(device)},
                   {"instructions", instruction_set()},
                   {"threads", num_threads()},
                   {"memory_bytes", memory.limit_bytes}});
  }
  const nlohmann::json networks = network ? networks_as_json() : nlohmann::json();
  if (json) {
    std::cout << (network ? nlohmann::json{{"devices", all}, {"networks", networks}} : all).dump() << '\n';
    return ok;
  }
  for (const auto& device : all)
    std::cout << device["device"].get<std::string>() << "  " << device["instructions"].get<std::string>() << "  "
              << device["threads"] << " threads  " << device["memory_bytes"].get<double>() / GiB << " GiB\n";
  print_networks(networks);
  return ok;
}

}  // namespace gradus::command
