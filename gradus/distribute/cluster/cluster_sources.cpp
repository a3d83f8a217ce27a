/// Clusters as launchers and variables of the environment describe them. Each source is read alone; then they are
/// compared and joined.
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include "gradus/base/error.h"
#include "gradus/base/hash.h"
#include "gradus/base/launcher_note.h"
#include "gradus/base/nearest.h"
#include "gradus/distribute/cluster.h"
#include "gradus/distribute/cluster/json_fields.h"

namespace gradus {
namespace {

using Json = nlohmann::json;

constexpr int first_guessed_port = 61'440, guessed_ports = 4'096;  // above the ports that systems assign themselves

/// The settings that one source knows. A guessed meeting point is one that all ranks derive alike without a setting.
struct SourceSettings {
  std::string source;
  std::optional<int> rank = {}, size = {};
  std::string meeting = {};
  bool is_guessed = false;
  std::string_view missing = {};  // the variable that would give the number of ranks
};

// ---------------------------------------------------------------- JSON

std::vector<std::string> addresses(const Json& value, std::string_view source, std::string_view field) {
  if (!value.is_array()) throw unexpected(source, field, "a list of host:port", value);
  require<DataError>(value.size() <= static_cast<std::size_t>(Cluster::most_ranks), source, ": `", field, "` has ",
                     value.size(), " addresses, at most ", Cluster::most_ranks);
  std::vector<std::string> out;
  for (const Json& each : value) out.push_back(string(each, source, field));
  return out;
}

std::chrono::milliseconds seconds(const Json& value, std::string_view source, std::string_view field) {
  if (!value.is_number()) throw unexpected(source, field, "a number of seconds", value);
  const double given = value.get<double>();
  require<DataError>(given > 0 && given <= 86'400, source, ": `", field, "` is ", given,
                     " s, expected more than 0 and at most a day");
  return std::max(std::chrono::milliseconds(1), std::chrono::milliseconds(static_cast<std::int64_t>(given * 1000)));
}

TaskType task_of(const std::string& name, std::string_view source, std::string_view field) {
  if (name == "worker") return TaskType::worker;
  if (name == "chief" || name == "master") return TaskType::chief;
  if (name == "ps" || name == "parameter_server") return TaskType::parameter_server;
  if (name == "evaluator") return TaskType::evaluator;
  throw DataError(text(source, ": `", field, "` is \"", name, "\", expected chief, worker, ps or evaluator"));
}

/// As GRADUS_CLUSTER has it, and whether it says which rank this is.
struct OwnJson {
  Cluster cluster;
  bool has_rank = false;
};

OwnJson read_own(std::string_view written) {
  constexpr std::string_view source = "GRADUS_CLUSTER";
  const std::vector<std::string> known = {
      "workers",   "parameter_servers", "task",  "rank",        "size", "meeting_point", "timeout",
      "heartbeat", "interface",         "token", "certificate", "key",  "authority"};
  OwnJson out;
  Cluster& made = out.cluster;
  const Json read = object(written, source);
  for (const auto& [key, value] : read.items()) {
    if (key == "workers") made.workers = addresses(value, source, key);
    else if (key == "parameter_servers") made.parameter_servers = addresses(value, source, key);
    else if (key == "task") made.task = task_of(string(value, source, key), source, key);
    else if (key == "rank") made.rank = integer(value, source, key), out.has_rank = true;
    else if (key == "size") made.size = integer(value, source, key);
    else if (key == "meeting_point") made.meeting_point = string(value, source, key);
    else if (key == "timeout") made.timeout = seconds(value, source, key);
    else if (key == "heartbeat") made.heartbeat = seconds(value, source, key);
    else if (key == "interface") made.interface = string(value, source, key);
    else if (key == "token") made.credentials.token = string(value, source, key);
    else if (key == "certificate") made.credentials.certificate = string(value, source, key);
    else if (key == "key") made.credentials.key = string(value, source, key);
    else if (key == "authority") made.credentials.authority = string(value, source, key);
    else throw DataError(text(source, ": there is no key `", key, "`", did_you_mean(key, known)));
  }
  made.source = source;
  return out;
}

/// TensorFlow's. Nothing of a value without a cluster, which means one process there.
std::optional<Cluster> read_tensorflow(std::string_view written) {
  constexpr std::string_view source = "TF_CONFIG";
  const Json read = object(written, source);
  if (!read.contains("cluster")) {
    require<DataError>(!read.contains("sparseCluster"), source,
                       ": `sparseCluster` names some of the workers alone: switch dynamic workers off, so that "
                       "`cluster` names all");
    return {};
  }
  const Json& lists = read["cluster"];
  if (!lists.is_object()) throw unexpected(source, "cluster", "an object of lists", lists);
  Cluster made;
  std::vector<std::string> chiefs, workers;
  for (const auto& [name, value] : lists.items()) {
    switch (task_of(name, source, "cluster")) {
      case TaskType::chief: chiefs = addresses(value, source, name); break;
      case TaskType::worker: workers = addresses(value, source, name); break;
      case TaskType::parameter_server: made.parameter_servers = addresses(value, source, name); break;
      case TaskType::evaluator:
        throw DataError(text(source,
                             ": `cluster` lists an evaluator, for which no rank waits: take it out of the list "
                             "and leave it in `task`"));
    }
  }
  require<DataError>(chiefs.size() <= 1, source, ": there are ", chiefs.size(), " chiefs, expected one at most");
  made.workers = chiefs;
  made.workers.insert(made.workers.end(), workers.begin(), workers.end());
  if (made.workers.empty() && made.parameter_servers.empty()) return {};
  require<DataError>(read.contains("task"), source,
                     ": `task` is missing: {\"type\": \"worker\", \"index\": 0} says "
                     "which process this is");
  const Json& task = read["task"];
  if (!task.is_object()) throw unexpected(source, "task", "an object", task);
  require<DataError>(task.contains("type") && task.contains("index"), source, ": `task` needs `type` and `index`");
  made.task = task_of(string(task["type"], source, "type"), source, "type");
  made.rank = integer(task["index"], source, "index");
  const auto listed = made.task == TaskType::chief    ? chiefs.size()
                      : made.task == TaskType::worker ? workers.size()
                                                      : made.parameter_servers.size();
  require(made.task == TaskType::evaluator || (made.rank >= 0 && made.rank < static_cast<int>(listed)), source,
          ": `index` is ", made.rank, ", but the list of ", name_of(made.task), "s has ", listed,
          listed == 1 ? " address" : " addresses");
  if (made.task == TaskType::worker) made.rank += static_cast<int>(chiefs.size());
  made.source = source;
  return made;
}

// ---------------------------------------------------------------- launchers

class Launchers {
 public:
  explicit Launchers(const EnvironmentLookup& variable) : variable_(variable) {}

  /// The sources, the most trusted first. `others_say_rank`: a rank without a size is ignored, since its origin is
  /// unknown.
  std::vector<SourceSettings> all(bool others_say_rank) const {
    std::vector<SourceSettings> out;
    const auto add = [&](std::optional<SourceSettings> said) {
      if (said) out.push_back(std::move(*said));
    };
    add(torchrun());
    add(open_mpi());
    add(mpich());
    const bool is_inner = !out.empty() && (variable_("OMPI_COMM_WORLD_SIZE").size() || variable_("PMI_SIZE").size() ||
                                           variable_("TORCHELASTIC_RUN_ID").size());
    if (auto said = slurm()) {
      if (is_inner) said->rank.reset(), said->size.reset();  // the launcher's rank, not that of the launched process
      out.push_back(std::move(*said));
    }
    if (!others_say_rank && std::ranges::none_of(out, [](const SourceSettings& each) { return each.rank.has_value(); }))
      add(lone_rank());
    return out;
  }

 private:
  /// A variable that gives a rank alone; another source may know the size. Slurm sets SLURM_PROCID in scripts, too.
  std::optional<SourceSettings> lone_rank() const {
    for (const auto& [rank, size] : {std::pair{"RANK", "WORLD_SIZE"},
                                     {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                     {"PMI_RANK", "PMI_SIZE"},
                                     {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}}) {
      const std::string written = variable_(rank);
      const bool is_number = !written.empty() && written.find_first_not_of("0123456789") == std::string::npos;
      if (!is_number || !variable_(size).empty() || (rank == std::string_view("SLURM_PROCID") && number(rank) == 0))
        continue;
      return SourceSettings{.source = text(rank, ", set to ", written, ","), .rank = number(rank), .missing = size};
    }
    return {};
  }
  std::optional<int> number(std::string_view name) const {
    const std::string written = variable_(name);
    if (written.empty()) return {};
    int value = 0;
    const auto [end, problem] = std::from_chars(written.data(), written.data() + written.size(), value);
    require(problem == std::errc() && end == written.data() + written.size() && value >= 0, name, " is \"", written,
            "\", expected a number of 0 or more");
    return value;
  }

  std::string guess(std::string host, std::string_view job) const {
    return Address{std::move(host), first_guessed_port + static_cast<int>(hash_of(job) % guessed_ports)}.to_string();
  }

  std::optional<SourceSettings> torchrun() const {
    SourceSettings out{"torchrun's variables"};
    out.size = number("WORLD_SIZE");
    const std::string host = variable_("MASTER_ADDR");
    if (!out.size && host.empty()) return {};  // see lone_rank
    out.rank = number("RANK");
    if (host.empty()) return out;
    auto port = number("MASTER_PORT");
    require(port.has_value(), "MASTER_ADDR is ", host, ", but MASTER_PORT is not set: set it to a free port of rank 0");
    require(*port >= 1 && *port <= 65'534, "MASTER_PORT is ", *port, ", expected 1 .. 65534");
    const std::string own_store = variable_("TORCHELASTIC_USE_AGENT_STORE");
    if (own_store == "True" || own_store == "1") ++*port;  // torchrun itself sits at the port
    out.meeting = Address{host, *port}.to_string();
    return out;
  }

  std::optional<SourceSettings> open_mpi() const {
    SourceSettings out{"Open MPI's variables", number("OMPI_COMM_WORLD_RANK"), number("OMPI_COMM_WORLD_SIZE")};
    if (!out.rank || !out.size) return {};
    const std::string uri = variable_("OMPI_MCA_orte_hnp_uri");  // JOB;tcp://IP[,IP]:PORT of mpirun, before version 5
    std::string job = variable_("PMIX_NAMESPACE");
    if (job.empty()) job = uri.substr(0, uri.find(';'));
    out.is_guessed = true;
    if (number("OMPI_COMM_WORLD_LOCAL_SIZE") == out.size && !job.empty()) {
      out.meeting = guess("127.0.0.1", job);
    } else if (const auto start = uri.find("tcp://"); start != std::string::npos) {
      const std::string host = uri.substr(start + 6, uri.find_first_of(",:", start + 6) - start - 6);
      if (!host.empty()) out.meeting = guess(host, job);
    }
    return out;
  }

  std::optional<SourceSettings> mpich() const {
    SourceSettings out{"MPICH's variables (PMI)", number("PMI_RANK"), number("PMI_SIZE")};
    if (!out.rank || !out.size) return {};
    const std::string place = variable_("PMI_PORT");  // of the launcher, in its form by TCP
    out.is_guessed = true;
    if (const auto colon = place.rfind(':'); colon != std::string::npos && colon > 0)
      out.meeting = guess(number("MPI_LOCALNRANKS") == out.size ? "127.0.0.1" : place.substr(0, colon), place);
    return out;
  }

  /// For a step that srun has started; a script of sbatch and its shell are one process.
  std::optional<SourceSettings> slurm() const {
    SourceSettings out{"Slurm's variables", number("SLURM_PROCID"), number("SLURM_STEP_NUM_TASKS")};
    if (!out.rank || !out.size || *out.size == 1) return {};
    std::string nodes = variable_("SLURM_STEP_NODELIST");
    if (nodes.empty()) nodes = variable_("SLURM_JOB_NODELIST");
    const std::string host = number("SLURM_STEP_NUM_NODES") == 1 ? "127.0.0.1" : first_host(nodes);
    out.is_guessed = true;
    if (!host.empty()) out.meeting = guess(host, variable_("SLURM_JOB_ID") + "." + variable_("SLURM_STEP_ID"));
    return out;
  }

  const EnvironmentLookup& variable_;
};

// ---------------------------------------------------------------- joining them

void compare(const SourceSettings& a, const SourceSettings& b) {
  const auto differ = [&](std::string_view what, const auto& first, const auto& second) {
    throw InvalidArgument(text("Cluster::from_environment: ", a.source, " and ", b.source, " disagree: ", what, " is ",
                               first, " by the first and ", second, " by the second: unset what does not hold"));
  };
  if (a.rank && b.rank && *a.rank != *b.rank) differ("this rank", *a.rank, *b.rank);
  if (a.size && b.size && *a.size != *b.size) differ("the number of ranks", *a.size, *b.size);
  if (!a.is_guessed && !b.is_guessed && !a.meeting.empty() && !b.meeting.empty() && a.meeting != b.meeting)
    differ("the meeting point", a.meeting, b.meeting);
}

/// The settings of a cluster from JSON, for comparison with other sources.
SourceSettings said_by(const Cluster& cluster, bool has_rank) {
  SourceSettings out{cluster.source};
  const bool trains = cluster.task == TaskType::worker || cluster.task == TaskType::chief;
  if (trains && has_rank) out.rank = cluster.rank;
  if (cluster.ranks() > 0) out.size = cluster.ranks();
  if (!cluster.meeting_point.empty() || !cluster.workers.empty()) out.meeting = cluster.meeting().to_string();
  return out;
}

void compare_servers(const Cluster& own, const Cluster& tensorflow) {
  require(own.parameter_servers == tensorflow.parameter_servers || own.parameter_servers.empty(),
          "Cluster::from_environment: GRADUS_CLUSTER and TF_CONFIG disagree: they name other parameter servers: unset "
          "what does not hold");
}

template <class Value, class Member>
std::optional<Value> first_of(const std::vector<SourceSettings>& all, Member member) {
  for (const SourceSettings& each : all)
    if (each.*member) return each.*member;
  return {};
}

std::string meeting_of(const std::vector<SourceSettings>& all) {
  for (const bool guessed : {false, true})  // named points take precedence over guessed ones
    for (const SourceSettings& each : all)
      if (each.is_guessed == guessed && !each.meeting.empty()) return each.meeting;
  return {};
}

void take_credentials(Credentials& out, const EnvironmentLookup& variable) {
  const auto take = [&](std::string& field, std::string_view name) {
    if (field.empty()) field = variable(name);
  };
  take(out.token, "GRADUS_TOKEN");
  take(out.certificate, "GRADUS_CERTIFICATE");
  take(out.key, "GRADUS_KEY");
  take(out.authority, "GRADUS_AUTHORITY");
}

void take_launchers(Cluster& made, const std::vector<SourceSettings>& all) {
  if (made.ranks() == 0) made.size = first_of<int>(all, &SourceSettings::size).value_or(0);
  if (made.meeting_point.empty()) made.meeting_point = meeting_of(all);
  if (made.task == TaskType::parameter_server || made.task == TaskType::evaluator) return;
  if (const auto rank = first_of<int>(all, &SourceSettings::rank)) made.rank = *rank;
  else
    require(made.ranks() <= 1, "Cluster::from_environment: ", all[0].source, " says ", made.ranks(),
            " ranks, and nothing says which of them this is: set RANK, or `rank` in GRADUS_CLUSTER");
  require(made.ranks() > 0, "Cluster::from_environment: ", all[0].source,
          " says nothing of how many ranks there are: set ", all[0].missing.empty() ? "WORLD_SIZE" : all[0].missing,
          ", or `size` in GRADUS_CLUSTER",
          all[0].missing.empty() ? std::string() : text("; for one process alone unset the variable"));
}

std::string joined_sources(const std::vector<SourceSettings>& all) {
  std::string out;
  for (const SourceSettings& each : all) out += (out.empty() ? "" : ", ") + each.source;
  return out;
}

}  // namespace

std::string first_host(std::string_view list) {
  const std::size_t bracket = list.find_first_of("[,");
  if (bracket == std::string_view::npos || list[bracket] == ',') return std::string(list.substr(0, bracket));
  const std::string_view numbers = list.substr(bracket + 1);
  const std::size_t end = numbers.find_first_of("-,]");
  if (end == std::string_view::npos || end == 0) return {};
  const std::size_t closing = numbers.find(']');
  if (closing == std::string_view::npos) return {};
  std::string_view tail = numbers.substr(closing + 1);
  tail = tail.substr(0, tail.find(','));
  if (tail.find('[') != std::string_view::npos) return {};  // lists within lists, which no site was seen to have
  return text(list.substr(0, bracket), numbers.substr(0, end), tail);
}

Cluster cluster_of_json(std::string_view written) {
  Cluster made = read_own(written).cluster;
  if (made.ranks() == 0) made.size = 1;
  made.check();
  return made;
}

Cluster cluster_of(const EnvironmentLookup& variable) {
  std::vector<SourceSettings> said;
  Cluster made;
  if (const std::string own = variable("GRADUS_CLUSTER"); !own.empty()) {
    OwnJson read = read_own(own);
    made = std::move(read.cluster);
    said.push_back(said_by(made, read.has_rank));
  }
  if (const std::string config = variable("TF_CONFIG"); !config.empty()) {
    if (auto tensorflow = read_tensorflow(config)) {
      said.push_back(said_by(*tensorflow, true));
      if (said.size() == 1) made = std::move(*tensorflow);
      else compare_servers(made, *tensorflow);
    }
  }
  const bool have_rank = std::ranges::any_of(said, [](const SourceSettings& each) { return each.rank.has_value(); });
  for (SourceSettings& each : Launchers(variable).all(have_rank)) said.push_back(std::move(each));
  for (std::size_t b = 1; b < said.size(); ++b)
    for (std::size_t a = 0; a < b; ++a) compare(said[a], said[b]);
  take_credentials(made.credentials, variable);
  if (said.empty()) made.size = 1;
  else take_launchers(made, said);
  made.source = joined_sources(said);
  made.check();
  return made;
}

Cluster Cluster::from_environment() {
  tell_launcher(LauncherNote::asks_rank);
  return cluster_of([](std::string_view name) {
    const char* value = std::getenv(std::string(name).c_str());
    return std::string(value != nullptr ? value : "");
  });
}

}  // namespace gradus
