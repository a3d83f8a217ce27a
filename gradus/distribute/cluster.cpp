/// The checks of a cluster, and the errors when one fails.
#include "gradus/distribute/cluster.h"
#include <algorithm>
#include <charconv>
#include <map>
#include "gradus/base/error.h"

namespace gradus {
namespace {

bool is_host_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
}

bool is_host(std::string_view host) {
  return !host.empty() && host.size() <= 253 && host.front() != '-' && std::ranges::all_of(host, is_host_character);
}

bool is_v6(std::string_view host) {
  const auto fits = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == ':' || c == '.';
  };
  return host.size() >= 2 && host.size() <= 45 && std::ranges::count(host, ':') >= 2 && std::ranges::all_of(host, fits);
}

std::string counted(int count, std::string_view what) { return text(count, " ", what, count == 1 ? "" : "s"); }

void check_rank(std::string_view of_whom, int rank, int count) {
  require(count > 0, "Cluster: there is no ", of_whom, ", but this process is one: name it, or take another `task`");
  require(rank >= 0 && rank < count, "Cluster: `rank` is ", rank, ", expected 0 .. ", count - 1, " for ",
          counted(count, of_whom));
}

void check_addresses(const Cluster& cluster) {
  std::map<std::string, std::string> seen;
  const auto look = [&](const std::vector<std::string>& addresses, std::string_view field) {
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      const std::string where = text("Cluster: `", field, "` ", i);
      const std::string address = Address::parse(addresses[i], where).to_string();
      const auto [found, is_new] = seen.emplace(address, text("`", field, "` ", i));
      require(is_new, where, ": ", address, " is that of ", found->second, ", too: each process has its own");
    }
  };
  look(cluster.workers, "workers");
  look(cluster.parameter_servers, "parameter_servers");
}

void check_credentials(const Credentials& given) {
  const int files = !given.certificate.empty() + !given.key.empty() + !given.authority.empty();
  require(
      files == 0 || files == 3,
      "Cluster: `certificate`, `key` and `authority` belong together: name all three files for TLS, or none; given ",
      files == 1 ? "is one" : "are two");
  require(given.token.size() <= 4096, "Cluster: `token` has ", given.token.size(), " characters, at most 4096");
  require(
      std::ranges::all_of(given.token, [](char c) { return c >= '!' && c <= '~'; }),
      "Cluster: `token` has characters other than printable ASCII without blanks: take, say, 32 hexadecimal digits");
}

void check_time(std::string_view field, std::chrono::milliseconds given) {
  using namespace std::chrono_literals;
  require(given > 0ms && given <= std::chrono::hours(24), "Cluster: `", field, "` is ", given.count(),
          " ms, expected more than 0 and at most a day");
}

}  // namespace

std::string_view name_of(TaskType task) {
  constexpr std::string_view names[] = {"chief", "worker", "parameter server", "evaluator"};
  return names[static_cast<int>(task)];
}

Address Address::parse(std::string_view written, std::string_view what) {
  const auto wrong = [&](std::string_view why) {
    return InvalidArgument(
        text(what, ": expected host:port, as node1:2222 or [::1]:2222, given \"", written, "\": ", why));
  };
  const std::size_t colon = written.rfind(':');
  if (written.size() > 300 || colon == std::string_view::npos) throw wrong("there is no port");
  std::string_view host = written.substr(0, colon);
  const std::string_view digits = written.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
    if (!is_v6(host)) throw wrong("that is no address of IPv6");
  } else if (!is_host(host)) {
    throw wrong(host.find(':') == std::string_view::npos ? "that is no host" : "an address of IPv6 stands in brackets");
  }
  int port = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (digits.empty() || problem != std::errc() || end != digits.data() + digits.size() || port < 1 || port > 65'535)
    throw wrong("a port is 1 to 65535");
  return {std::string(host), port};
}

bool Address::is_loopback() const { return host == "localhost" || host.starts_with("127.") || host == "::1"; }

std::string Address::to_string() const {
  const bool is_long = host.find(':') != std::string::npos;
  return text(is_long ? "[" : "", host, is_long ? "]:" : ":", port);
}

Cluster Cluster::simulated(int workers, int parameter_servers) {
  require(workers >= 1 && workers <= 1024, "Cluster::simulated: `workers` is ", workers, ", expected 1 .. 1024");
  require(parameter_servers >= 0 && parameter_servers <= 1024, "Cluster::simulated: `parameter_servers` is ",
          parameter_servers, ", expected 0 .. 1024");
  Cluster made;
  made.size = workers;
  made.in_process = true;
  made.source = "Cluster::simulated";
  for (int i = 0; i < parameter_servers; ++i) made.parameter_servers.push_back(text("127.0.0.1:", i + 1));
  return made;
}

Address Cluster::meeting() const {
  if (!meeting_point.empty()) return Address::parse(meeting_point, "Cluster: `meeting_point`");
  require(!workers.empty(), "Cluster: nothing says where the ", ranks(),
          " ranks meet: set `meeting_point` to host:port of rank 0, as GRADUS_CLUSTER='{\"meeting_point\": "
          "\"node0:2222\"}'");
  return Address::parse(workers[0], "Cluster: `workers` 0");
}

void Cluster::check() const {
  check_addresses(*this);
  require(size >= 0 && size <= most_ranks, "Cluster: `size` is ", size, ", expected 0 .. ", most_ranks);
  require(size == 0 || workers.empty() || size == static_cast<int>(workers.size()), "Cluster: `size` is ", size,
          ", but `workers` has ", workers.size(), workers.size() == 1 ? " address" : " addresses");
  require(ranks() >= 1 && ranks() <= most_ranks, "Cluster: there are ", ranks(), " workers, expected 1 .. ", most_ranks,
          ": name their addresses in `workers`, or how many there are in `size`");
  if (task == TaskType::parameter_server) check_rank("parameter server", rank, servers());
  else if (task == TaskType::evaluator) require(rank >= 0, "Cluster: `rank` is ", rank, ", expected 0 or more");
  else check_rank("worker", rank, ranks());
  require(task != TaskType::chief || rank == 0, "Cluster: the chief has rank 0, given ", rank);
  check_time("timeout", timeout);
  check_time("heartbeat", heartbeat);
  require(heartbeat < timeout || heartbeat == usual_heartbeat, "Cluster: `heartbeat` is ", heartbeat.count(),
          " ms, expected less than `timeout`, ", timeout.count(), " ms: leave it out, and it follows from `timeout`");
  require(
      interface.size() < 16 && std::ranges::all_of(interface, [](char c) { return c > ' ' && c < 127 && c != '/'; }),
      "Cluster: `interface` is no name of a network interface, as eth0");
  check_credentials(credentials);
  if (in_process || (ranks() == 1 && parameter_servers.empty())) return;
  const auto require_token = [&](std::string_view what, const Address& place) {
    require(
        place.is_loopback() || !credentials.token.empty(), "Cluster: ", what, " ", place.to_string(),
        ", beyond this machine, and nothing keeps strangers out: set `token`, or GRADUS_TOKEN, to one secret on all "
        "ranks");
  };
  require_token("ranks meet at", meeting());
  for (const std::string& each : parameter_servers)
    require_token("a parameter server is at", Address::parse(each, "Cluster: `parameter_servers`"));
}

Cluster Cluster::settled() const {
  Cluster out = *this;
  if (heartbeat >= timeout && heartbeat == usual_heartbeat)
    out.heartbeat = std::max(timeout / 4, std::chrono::milliseconds(1));
  return out;
}

std::string Cluster::describe() const {
  TextStream out;
  out << "cluster: " << name_of(is_chief() ? TaskType::chief : task) << " " << rank << " of "
      << counted(ranks(), "rank");
  if (servers() > 0) out << " and " << counted(servers(), "parameter server");
  if (in_process) out << ", all in this process";
  else if (ranks() > 1 || servers() > 0) out << ", meeting at " << meeting().to_string();
  if (!interface.empty()) out << " by " << interface;
  if (!source.empty()) out << " (" << source << ")";
  return std::move(out).str();
}

}  // namespace gradus
