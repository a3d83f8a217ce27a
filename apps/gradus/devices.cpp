/// `gradus devices`.
#include <iostream>
#include <nlohmann/json.hpp>
#include "apps/gradus/commands.h"
#include "gradus/gradus.h"

namespace gradus::command {

int list_devices(bool json) {
  nlohmann::json all = nlohmann::json::array();
  for (const Device& device : devices(DeviceKind::cpu)) {
    const MemoryUse memory = memory_use(device);
    all.push_back({{"device", text(device)},
                   {"instructions", instruction_set()},
                   {"threads", num_threads()},
                   {"memory_bytes", memory.limit_bytes}});
  }
  if (json) {
    std::cout << all.dump() << '\n';
    return ok;
  }
  for (const auto& device : all)
    std::cout << device["device"].get<std::string>() << "  " << device["instructions"].get<std::string>() << "  "
              << device["threads"] << " threads  " << device["memory_bytes"].get<double>() / GiB << " GiB\n";
  return ok;
}

}  // namespace gradus::command
