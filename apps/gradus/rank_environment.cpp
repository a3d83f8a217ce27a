#include "apps/gradus/rank_environment.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include "apps/gradus/launch_failure.h"
#include "gradus/base/cores.h"
#include "gradus/base/error.h"
#include "gradus/distribute/cluster.h"
#include "gradus/distribute/cluster/json_fields.h"

namespace gradus::command {
namespace {

/// Variables of other launchers that distribute/cluster/cluster_sources.cpp reads, and their neighbours.
constexpr std::string_view of_others[] = {"TF_CONFIG",
                                          "RANK",
                                          "LOCAL_RANK",
                                          "WORLD_SIZE",
                                          "LOCAL_WORLD_SIZE",
                                          "MASTER_ADDR",
                                          "MASTER_PORT",
                                          "OMPI_MCA_orte_hnp_uri",
                                          "MPI_LOCALNRANKS",
                                          "MPI_LOCALRANKID",
                                          "SLURM_PROCID",
                                          "SLURM_LOCALID",
                                          "SLURM_STEP_NUM_TASKS",
                                          "SLURM_STEP_NUM_NODES",
                                          "SLURM_STEP_NODELIST"};
constexpr std::string_view families_of_others[] = {"TORCHELASTIC_", "OMPI_COMM_WORLD_", "PMIX_", "PMI_"};

bool is_of_others(std::string_view name) {
  return std::ranges::find(of_others, name) != std::end(of_others) ||
         std::ranges::any_of(families_of_others, [&](auto family) { return name.starts_with(family); });
}

constexpr std::string_view name_of_cluster = "GRADUS_CLUSTER";

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

/// Ports of 127.0.0.1, none twice: each is held until all are found.
std::vector<std::int64_t> free_ports(int count) {
  std::vector<std::int64_t> ports;
  std::vector<int> descriptors;
  int problem = 0;
  while (problem == 0 && static_cast<int>(ports.size()) < count) {
    const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    const bool is_found =
        descriptor >= 0 && bind(descriptor, any, size) == 0 && getsockname(descriptor, any, &size) == 0;
    if (!is_found) problem = errno;
    if (descriptor >= 0) descriptors.push_back(descriptor);
    ports.push_back(ntohs(address.sin_port));
  }
  for (const int descriptor : descriptors) close(descriptor);
  errno = problem;
  if (problem != 0) fail_launch("no port of 127.0.0.1 is free");
  return ports;
}

std::string new_token() {
  std::array<unsigned char, 16> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) fail_launch("no random token");
  std::string out;
  for (const unsigned char byte : bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    (out += digits[byte >> 4]) += digits[byte & 15];
  }
  return out;
}

std::string cluster_variable(int process, const MeetingOfRanks& meeting) {
  const std::string of_user = variable(name_of_cluster.data());
  nlohmann::json cluster = of_user.empty() ? nlohmann::json::object() : object(of_user, name_of_cluster);
  for (const char* other : {"workers", "parameter_servers", "task"}) cluster.erase(other);
  const bool is_server = process >= meeting.ranks;
  if (is_server) cluster["task"] = "parameter_server";
  for (const std::int64_t port : meeting.server_ports) cluster["parameter_servers"].push_back(text("127.0.0.1:", port));
  cluster["rank"] = is_server ? process - meeting.ranks : process;
  cluster["size"] = meeting.ranks;
  cluster["meeting_point"] = text("127.0.0.1:", meeting.port);
  cluster["token"] = meeting.token;
  return written(cluster);
}

}  // namespace

std::string MeetingOfRanks::name_of(int process) const {
  return process < ranks ? text("rank ", process) : text("parameter server ", process - ranks);
}

MeetingOfRanks new_meeting(int ranks, std::optional<std::int64_t> port, int servers) {
  std::vector<std::int64_t> ports = free_ports(servers + 1);
  MeetingOfRanks made{.ranks = ranks, .port = port ? *port : ports.back(), .token = new_token()};
  ports.pop_back();
  made.server_ports = std::move(ports);
  return made;
}

TimesOfRanks times_of_ranks(const MeetingOfRanks& meeting) {
  const auto times = [](const Cluster& cluster) { return TimesOfRanks{cluster.timeout, cluster.heartbeat}; };
  try {
    return times(cluster_of_json(cluster_variable(0, meeting)));
  } catch (const Error&) { return times(Cluster{}); }
}

std::vector<std::string> environment_of_rank(int process, const MeetingOfRanks& meeting) {
  const bool shares_cores = variable("GRADUS_NUM_THREADS").empty();
  std::vector<std::string> out;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view line = *each, name = line.substr(0, line.find('='));
    if (is_of_others(name) || name == name_of_cluster || name == "GRADUS_RESTART" || name == "GRADUS_LAUNCHER" ||
        (name == "GRADUS_NUM_THREADS" && shares_cores))
      continue;
    out.emplace_back(line);
  }
  out.push_back(text(name_of_cluster, '=', cluster_variable(process, meeting)));
  if (meeting.restart > 0) out.push_back(text("GRADUS_RESTART=", meeting.restart));
  if (!meeting.launcher.empty()) out.push_back(text("GRADUS_LAUNCHER=", meeting.launcher));
  constexpr int most_threads = 1024;  // that the variable may say
  if (shares_cores)
    out.push_back(text("GRADUS_NUM_THREADS=", std::clamp(available_cores() / meeting.processes(), 1, most_threads)));
  return out;
}

}  // namespace gradus::command
