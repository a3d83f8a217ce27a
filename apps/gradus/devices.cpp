/// `gradus devices`.
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>
#include "apps/gradus/commands.h"
#include "gradus/backend/object.h"
#include "gradus/backend/plugin.h"
#include "gradus/distribute/messages/network_rates.h"
#include "gradus/gradus.h"

namespace gradus::command {
namespace {

std::string gibibytes(std::size_t bytes) {
  return bytes == 0 ? "memory unknown" : text(std::setprecision(4), static_cast<double>(bytes) / GiB, " GiB");
}
/// The first line of a version of several.
std::string first_line(const std::string& all) { return printable(all.substr(0, all.find('\n')), true); }

nlohmann::json json_of(const PluginInfo& plugin) {
  nlohmann::json all{{"plugin", plugin.name}, {"path", plugin.path}};
  if (!plugin.problem.empty()) all["problem"] = plugin.problem;
  if (!plugin.platform.empty())
    all.update({{"platform", plugin.platform},
                {"platform_version", plugin.platform_version},
                {"pjrt_version", plugin.api_version}});
  return all;
}

void print(const PluginInfo& plugin) {
  if (!plugin.problem.empty()) {
    std::cout << "plugin " << printable(plugin.name, true) << "  cannot be used: " << printable(plugin.problem) << '\n';
    return;
  }
  int number = 0;
  for (const PluginDeviceInfo& each : plugin.devices)
    std::cout << each.device << "  " << printable(each.model, true) << "  " << gibibytes(each.memory_bytes)
              << "  plugin " << printable(plugin.name, true) << ':' << number++ << " ("
              << first_line(plugin.platform_version) << ", PJRT " << plugin.api_version << ", "
              << printable(plugin.path, true) << ")\n";
}

/// The kinds of machines that `gradus compile --target` makes object files for.
void print(const ObjectTarget& target) {
  std::cout << "target " << target.name << "  ";
  for (const std::string& set : target.instruction_sets)
    std::cout << (&set == target.instruction_sets.data() ? "" : ", ") << set;
  if (target.is_here) std::cout << "  this machine's";
  if (!target.problem.empty()) std::cout << "  cannot be used: " << target.problem;
  std::cout << '\n';
}

nlohmann::json json_of(const ObjectTarget& target) {
  nlohmann::json all{
      {"target", target.name}, {"instruction_sets", target.instruction_sets}, {"is_here", target.is_here}};
  if (!target.problem.empty()) all["problem"] = target.problem;
  return all;
}

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
  const Device processor = cpu(0);
  const std::size_t memory = memory_use(processor).limit_bytes;
  const std::vector<PluginInfo> found = plugins();
  if (!json) {
    std::cout << processor << "  " << instruction_set() << "  " << num_threads() << " threads  " << gibibytes(memory)
              << '\n';
    for (const PluginInfo& plugin : found) print(plugin);
    for (const ObjectTarget& target : object_targets()) print(target);
    if (network) print_networks(networks_as_json());
    return ok;
  }
  nlohmann::json all = nlohmann::json::array();
  all.push_back({{"device", text(processor)},
                 {"instructions", instruction_set()},
                 {"threads", num_threads()},
                 {"memory_bytes", memory}});
  for (const PluginInfo& plugin : found) {
    for (const PluginDeviceInfo& each : plugin.devices) {
      nlohmann::json device = json_of(plugin);
      device.update({{"device", text(each.device)}, {"model", each.model}, {"memory_bytes", each.memory_bytes}});
      all.push_back(std::move(device));
    }
    if (!plugin.problem.empty()) all.push_back(json_of(plugin));
  }
  for (const ObjectTarget& target : object_targets()) all.push_back(json_of(target));
  if (network) all = nlohmann::json{{"devices", std::move(all)}, {"networks", networks_as_json()}};
  std::cout << all.dump() << '\n';
  return ok;
}

}  // namespace gradus::command
