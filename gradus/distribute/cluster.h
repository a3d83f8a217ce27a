/// Cluster: the processes that train together, which of them this one is, and where they meet. Launchers supply nothing
/// else; docs/decisions/distribute.md says which of them takes precedence.
///
/// The inputs are environment variables and fields that the program sets; the result is one checked Cluster. Everything
/// else in distribute/ starts from it. Files in cluster/ read what launchers set, and report a rank's state to its
/// launcher.
#pragma once
#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace gradus {

/// The role of a process. The chief is the worker of rank 0; an evaluator stands beside the cluster.
enum class TaskType { chief, worker, parameter_server, evaluator };
/// The task as text, such as "worker".
std::string_view name_of(TaskType task);

/// A place in the network: "host:port" or "[v6 address]:port".
struct Address {
  std::string host;  // name or number
  int port = 0;      // 1 to 65535

  /// Reads an address. InvalidArgument, which begins with `what`, unless `written` is one with a port of 1 to 65535.
  static Address parse(std::string_view written, std::string_view what);
  /// True if only this machine reaches it: localhost, 127.x.x.x or ::1.
  bool is_loopback() const;
  /// "host:port", as parse() reads it.
  std::string to_string() const;
  bool operator==(const Address&) const = default;
};

/// The proof, at the meeting, that ranks belong together. Files are PEM.
struct Credentials {
  std::string token = {};                                  // a secret that all ranks share
  std::string certificate = {}, key = {}, authority = {};  // files; all three: TLS, and both sides show certificates
  /// True if the meeting uses TLS.
  bool has_tls() const { return !certificate.empty(); }
};

/// The processes that train together, as one of them sees them.
struct Cluster {
  static constexpr int most_ranks = 16'384;  // the largest number of ranks in a cluster
  /// The default heartbeat; settled() shortens it if the timeout is not longer.
  static constexpr std::chrono::milliseconds usual_heartbeat{10'000};

  std::vector<std::string> workers = {};            // host:port of each rank, where they are known
  std::vector<std::string> parameter_servers = {};  // the same of the servers
  int rank = 0;                                     // among those of its task
  std::chrono::milliseconds timeout{60'000};        // a peer that is silent for longer is an Error that names it
  TaskType task = TaskType::worker;                 // the role of this process
  int size = 0;                                     // number of ranks that train; 0: that of `workers`
  std::string meeting_point = {};                   // host:port where ranks meet rank 0; empty: the first of `workers`
  std::chrono::milliseconds heartbeat = usual_heartbeat;  // interval between a rank's signs of life; see settled()
  std::string interface = {};    // peers get its address; empty: the one that reaches the meeting
  Credentials credentials = {};  // shown at the meeting
  bool in_process = false;       // all ranks are threads of this process
  std::string source = {};       // the source of these settings, as "TF_CONFIG"

  /// The cluster that this process's environment describes, in the order of `cluster_of`. One rank if the environment
  /// describes none.
  static Cluster from_environment();
  /// All ranks inside of this process, for tests.
  static Cluster simulated(int workers, int parameter_servers = 0);

  /// The number of ranks that train together.
  int ranks() const { return size > 0 ? size : static_cast<int>(workers.size()); }
  /// The number of parameter servers.
  int servers() const { return static_cast<int>(parameter_servers.size()); }
  /// True for the worker of rank 0, which writes checkpoints and reports.
  bool is_chief() const { return task == TaskType::chief || (task == TaskType::worker && rank == 0); }
  /// The address at which ranks meet: meeting_point, else the first of `workers`. InvalidArgument if there is neither.
  Address meeting() const;
  /// InvalidArgument names the wrong field, the expected and the given value.
  void check() const;
  /// This cluster as strategies use it: if `timeout` is not longer than the usual heartbeat, and the heartbeat was not
  /// set, the heartbeat is a quarter of `timeout`.
  Cluster settled() const;
  /// One line: the rank, the number of ranks, the address, the source.
  std::string describe() const;
};

/// The value of a variable of the environment; nothing if it is not set.
using EnvironmentLookup = std::function<std::string(std::string_view name)>;

/// The cluster that variables describe, from the first to the last source: GRADUS_CLUSTER (JSON), TF_CONFIG (JSON),
/// torchrun's, Open MPI's, MPICH's (PMI), Slurm's. Each gives the rank, the number of ranks and the meeting point as
/// far as it knows them. Two sources that differ are an InvalidArgument that names both; within Slurm, mpirun's rank
/// and number take precedence. GRADUS_TOKEN, GRADUS_CERTIFICATE, GRADUS_KEY and GRADUS_AUTHORITY are the credentials.
/// The result is checked.
Cluster cluster_of(const EnvironmentLookup& variable);

/// A cluster from JSON as GRADUS_CLUSTER has it, for tests and tools; missing fields keep their defaults. DataError for
/// any other text.
Cluster cluster_of_json(std::string_view written);

/// The first host of Slurm's list, as "node[03-05,9],gpu1" -> "node03"; empty if the text is no such list.
std::string first_host(std::string_view node_list);

}  // namespace gradus
