/// Clusters: what each source says, sources that agree and disagree, and every value that is none.
#include "gradus/distribute/cluster.h"
#include <gtest/gtest.h>
#include <map>
#include "gradus/base/error.h"
#include "tests/errors.h"

namespace gradus::cluster_test {
namespace {

using namespace std::chrono_literals;

using Variables = std::map<std::string, std::string, std::less<>>;

Cluster read(const Variables& set) {
  return cluster_of([&](std::string_view name) {
    const auto found = set.find(name);
    return found == set.end() ? std::string() : found->second;
  });
}

Variables operator+(Variables a, const Variables& b) {
  a.insert(b.begin(), b.end());
  return a;
}

const Variables token = {{"GRADUS_TOKEN", "secret"}};
const Variables open_mpi = {{"OMPI_COMM_WORLD_RANK", "1"},
                            {"OMPI_COMM_WORLD_SIZE", "4"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                            {"PMIX_NAMESPACE", "1234"}};
const Variables slurm = {{"SLURM_PROCID", "2"},
                         {"SLURM_STEP_NUM_TASKS", "4"},
                         {"SLURM_STEP_NODELIST", "node[03-05,9]"},
                         {"SLURM_STEP_NUM_NODES", "2"},
                         {"SLURM_JOB_ID", "77"}};
const Variables torchrun = {{"RANK", "3"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "29500"}};
const Variables tensorflow = {
    {"TF_CONFIG",
     R"({"cluster": {"worker": ["127.0.0.1:1", "127.0.0.1:2"]}, "task": {"type": "worker", "index": 1}})"}};

struct Row {
  const char* name;
  Variables set;
  TaskType task;
  int rank, ranks, servers;
  std::string meeting;  // a part of it
};

TEST(Cluster, SourcesSayWhoIsWhere) {
  const std::string chief_and_workers =
      R"({"cluster": {"chief": ["h0:2222"], "worker": ["h1:2222", "h2:2222"]}, "task": {"type": "worker", "index": 1}})";
  const std::string with_servers =
      R"({"cluster": {"chief": ["c:1"], "ps": ["p0:1", "p1:1"], "worker": ["w0:1"]}, "environment": "cloud",
          "task": {"type": "ps", "index": 1}})";
  const std::string evaluator =
      R"({"cluster": {"chief": ["c:1"], "worker": ["w0:1"]}, "task": {"type": "evaluator", "index": 0}})";
  const Row rows[] = {
      {"nothing", {}, TaskType::worker, 0, 1, 0, ""},
      {"own",
       {{"GRADUS_CLUSTER", R"({"workers": ["127.0.0.1:7000", "[::1]:7001"], "rank": 1})"}},
       TaskType::worker,
       1,
       2,
       0,
       "127.0.0.1:7000"},
      {"own server",
       {{"GRADUS_CLUSTER",
         R"({"workers": ["a:1"], "parameter_servers": ["b:1", "b:2"], "task": "ps", "rank": 1, "token": "x"})"}},
       TaskType::parameter_server,
       1,
       1,
       2,
       "a:1"},
      {"own and mpirun", open_mpi + Variables{{"GRADUS_CLUSTER", R"({"meeting_point": "127.0.0.1:9"})"}},
       TaskType::worker, 1, 4, 0, "127.0.0.1:9"},
      {"TF_CONFIG", tensorflow, TaskType::worker, 1, 2, 0, "127.0.0.1:1"},
      {"with a chief", token + Variables{{"TF_CONFIG", chief_and_workers}}, TaskType::worker, 2, 3, 0, "h0:2222"},
      {"a server", token + Variables{{"TF_CONFIG", with_servers}}, TaskType::parameter_server, 1, 2, 2, "c:1"},
      {"an evaluator", token + Variables{{"TF_CONFIG", evaluator}}, TaskType::evaluator, 0, 2, 0, "c:1"},
      {"TF_CONFIG without a cluster", {{"TF_CONFIG", "{}"}}, TaskType::worker, 0, 1, 0, ""},
      {"Open MPI on one machine", open_mpi, TaskType::worker, 1, 4, 0, "127.0.0.1:6"},
      {"Open MPI",
       token + Variables{{"OMPI_COMM_WORLD_RANK", "0"},
                         {"OMPI_COMM_WORLD_SIZE", "8"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                         {"OMPI_MCA_orte_hnp_uri", "99;tcp://10.0.0.7,172.17.0.1:40001"}},
       TaskType::worker, 0, 8, 0, "10.0.0.7:6"},
      {"MPICH", token + Variables{{"PMI_RANK", "5"}, {"PMI_SIZE", "6"}, {"PMI_PORT", "host4:1000"}}, TaskType::worker,
       5, 6, 0, "host4:6"},
      {"srun", token + slurm, TaskType::worker, 2, 4, 0, "node03:6"},
      {"a script of sbatch", {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}, TaskType::worker, 0, 1, 0, ""},
      {"mpirun within Slurm", token + open_mpi + slurm, TaskType::worker, 1, 4, 0, "127.0.0.1:6"},
      {"mpirun within Slurm, another count",
       token + slurm + Variables{{"OMPI_COMM_WORLD_RANK", "7"}, {"OMPI_COMM_WORLD_SIZE", "8"}}, TaskType::worker, 7, 8,
       0, "node03:6"},
      {"torchrun", torchrun, TaskType::worker, 3, 4, 0, "127.0.0.1:29500"},
      {"torchrun's own store", torchrun + Variables{{"TORCHELASTIC_USE_AGENT_STORE", "True"}}, TaskType::worker, 3, 4,
       0, "127.0.0.1:29501"},
      {"torchrun within Slurm", token + torchrun + slurm + Variables{{"TORCHELASTIC_RUN_ID", "1"}}, TaskType::worker, 3,
       4, 0, "127.0.0.1:29500"},
      {"a meeting point for srun", slurm + Variables{{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "5"}},
       TaskType::worker, 2, 4, 0, "127.0.0.1:5"},
      {"two that agree", torchrun + Variables{{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}}, TaskType::worker, 3, 4, 0,
       "127.0.0.1:29500"},
      {"RANK alone that is no number is anybody's", {{"RANK", "captain"}}, TaskType::worker, 0, 1, 0, ""},
      {"a script of sbatch", {{"SLURM_PROCID", "0"}}, TaskType::worker, 0, 1, 0, ""},
      {"RANK beside a size of another source",
       {{"RANK", "1"}, {"GRADUS_CLUSTER", R"({"size": 2, "meeting_point": "127.0.0.1:7000"})"}},
       TaskType::worker,
       1,
       2,
       0,
       "127.0.0.1:7000"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    try {
      const Cluster got = read(row.set);
      EXPECT_EQ(name_of(got.task), name_of(row.task));
      EXPECT_EQ(got.rank, row.rank);
      EXPECT_EQ(got.ranks(), row.ranks);
      EXPECT_EQ(got.servers(), row.servers);
      if (!row.meeting.empty()) {
        EXPECT_TRUE(got.meeting().to_string().starts_with(row.meeting)) << got.meeting().to_string();
      }
      EXPECT_FALSE(got.describe().empty());
    } catch (const Error& error) { ADD_FAILURE() << error.what(); }
  }
}

TEST(Cluster, SourcesThatDisagreeAreNamed) {
  const struct {
    Variables set;
    std::vector<std::string> says;
  } rows[] = {
      {torchrun + open_mpi, {"torchrun's variables and Open MPI's variables disagree", "this rank is 3", "and 1"}},
      {torchrun + Variables{{"PMI_RANK", "3"}, {"PMI_SIZE", "5"}},
       {"torchrun", "PMI", "number of ranks is 4", "and 5"}},
      {tensorflow + open_mpi, {"TF_CONFIG and Open MPI's", "number of ranks is 2", "and 4"}},
      {token + torchrun + slurm, {"torchrun's", "Slurm's", "this rank is 3", "and 2"}},
      {tensorflow + Variables{{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "9"}},
       {"TF_CONFIG and torchrun's", "meeting point is 127.0.0.1:1", "127.0.0.1:9"}},
      {tensorflow + Variables{{"GRADUS_CLUSTER", R"({"workers": ["127.0.0.1:1", "127.0.0.1:2"], "rank": 0})"}},
       {"GRADUS_CLUSTER and TF_CONFIG", "this rank is 0", "and 1"}},
      {open_mpi + Variables{{"GRADUS_CLUSTER", R"({"size": 3})"}}, {"GRADUS_CLUSTER and Open MPI's", "3", "4"}},
      {token + open_mpi + Variables{{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}, {"Open MPI's", "MPICH's", "4", "2"}},
      {Variables{{"GRADUS_CLUSTER", R"({"workers": ["127.0.0.1:1"], "parameter_servers": ["127.0.0.1:5"]})"},
                 {"TF_CONFIG", R"({"cluster": {"worker": ["127.0.0.1:1"], "ps": ["127.0.0.1:6"]},
                                   "task": {"type": "worker", "index": 0}})"}},
       {"GRADUS_CLUSTER and TF_CONFIG", "parameter servers"}},
  };
  for (const auto& row : rows) {
    const std::string message = error_of<InvalidArgument>([&] { read(row.set); });
    for (const std::string& part : row.says) expect_says(message, part);
  }
}

TEST(Cluster, WhatIsMissingIsNamed) {
  const struct {
    Variables set;
    std::string says;
  } rows[] = {
      {{{"WORLD_SIZE", "4"}}, "nothing says which of them this is: set RANK"},
      {{{"MASTER_ADDR", "h"}, {"MASTER_PORT", "1"}, {"RANK", "0"}}, "how many ranks there are: set WORLD_SIZE"},
      {{{"RANK", "1"}}, "RANK, set to 1, says nothing of how many ranks there are: set WORLD_SIZE"},
      {{{"RANK", "0"}}, "for one process alone unset the variable"},
      {{{"OMPI_COMM_WORLD_RANK", "1"}}, "how many ranks there are: set OMPI_COMM_WORLD_SIZE"},
      {{{"PMI_RANK", "2"}}, "how many ranks there are: set PMI_SIZE"},
      {{{"SLURM_PROCID", "1"}}, "how many ranks there are: set SLURM_STEP_NUM_TASKS"},
      {{{"MASTER_ADDR", "h"}}, "MASTER_PORT is not set"},
      {{{"GRADUS_CLUSTER", R"({"size": 2})"}}, "which of them this is"},
      {{{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}, "nothing says where the 2 ranks meet: set `meeting_point`"},
      {slurm, "beyond this machine, and nothing keeps strangers out: set `token`, or GRADUS_TOKEN"},
  };
  for (const auto& row : rows) expect_says(error_of<InvalidArgument>([&] { read(row.set); }), row.says);
}

TEST(Cluster, ValuesThatAreNoneAreNamed) {
  const auto own = [](std::string written) { return Variables{{"GRADUS_CLUSTER", std::move(written)}}; };
  const auto config = [](std::string written) { return Variables{{"TF_CONFIG", std::move(written)}}; };
  const struct {
    Variables set;
    std::string says;
  } rows[] = {
      {own("{"), "GRADUS_CLUSTER: byte 1: this is no JSON"},
      {own("[1]"), "GRADUS_CLUSTER: the value is a list, expected an object"},
      {own(R"({"rank": 0, "rank": 1})"), "the key `rank` stands twice"},
      {own(R"({"worker": []})"), "there is no key `worker`; did you mean `workers`?"},
      {own(R"({"rank": "0"})"), "`rank` is a string, expected an integer"},
      {own(R"({"rank": 1.5})"), "`rank` is a number, expected an integer"},
      {own(R"({"rank": 99999999999})"), "out of all bounds"},
      {own(R"({"rank": -9223372036854775808})"), "out of all bounds"},
      {own(R"({"rank": 3, "workers": ["127.0.0.1:1"]})"), "Cluster: `rank` is 3, expected 0 .. 0 for 1 worker"},
      {own(R"({"rank": -1, "size": 2, "meeting_point": "localhost:1"})"),
       "`rank` is -1, expected 0 .. 1 for 2 workers"},
      {own(R"({"size": 20000, "rank": 0})"), "`size` is 20000, expected 0 .. 16384"},
      {own(R"({"size": 3, "rank": 0, "workers": ["127.0.0.1:1", "127.0.0.1:2"]})"), "`workers` has 2 addresses"},
      {own(R"({"workers": "a:1"})"), "`workers` is a string, expected a list of host:port"},
      {own(R"({"workers": [1]})"), "`workers` is an integer, expected a string"},
      {own(R"({"workers": ["a"]})"),
       "`workers` 0: expected host:port, as node1:2222 or [::1]:2222, given \"a\": there"},
      {own(R"({"workers": ["a:0"]})"), "a port is 1 to 65535"},
      {own(R"({"workers": ["a:65536"]})"), "a port is 1 to 65535"},
      {own(R"({"workers": ["a:0000"]})"), "a port is 1 to 65535"},
      {own(R"({"workers": ["a:12b"]})"), "a port is 1 to 65535"},
      {own(R"({"workers": ["a b:1"]})"), "that is no host"},
      {own(R"({"workers": [":1"]})"), "that is no host"},
      {own(R"({"workers": ["::1:1"]})"), "an address of IPv6 stands in brackets"},
      {own(R"({"workers": ["[zz]:1"]})"), "that is no address of IPv6"},
      {own(R"({"workers": ["a:1", "b:1", "a:1"], "token": "x", "rank": 0})"),
       "`workers` 2: a:1 is that of `workers` 0, too"},
      {own(R"({"workers": ["a:1"], "parameter_servers": ["a:1"]})"),
       "`parameter_servers` 0: a:1 is that of `workers` 0"},
      {own(R"({"task": "boss"})"), "`task` is \"boss\", expected chief, worker, ps or evaluator"},
      {own(R"({"task": "ps", "workers": ["127.0.0.1:1"]})"), "there is no parameter server, but this process is one"},
      {own(R"({"task": "chief", "rank": 1, "size": 2, "meeting_point": "localhost:1"})"), "the chief has rank 0"},
      {own(R"({"timeout": 0})"), "`timeout` is 0 s, expected more than 0"},
      {own(R"({"timeout": "60"})"), "`timeout` is a string, expected a number of seconds"},
      {own(R"({"heartbeat": 1e9})"), "`heartbeat` is"},
      {own(R"({"heartbeat": 90, "size": 1, "rank": 0})"), "expected less than `timeout`"},
      {own(R"({"interface": "a/b", "size": 1, "rank": 0})"), "no name of a network interface"},
      {own(R"({"workers": ["127.0.0.1:1"], "parameter_servers": ["b:1"], "rank": 0})"),
       "a parameter server is at b:1, beyond this machine, and nothing keeps strangers out"},
      {own(R"({"certificate": "a", "size": 1, "rank": 0})"), "belong together"},
      {own(R"({"token": "a b", "size": 1, "rank": 0})"), "`token` has characters"},
      {own(R"({"meeting_point": "x", "size": 2, "rank": 0})"), "`meeting_point`: expected host:port"},
      {config("null"), "TF_CONFIG: the value is null, expected an object"},
      {config(R"({"cluster": []})"), "`cluster` is a list, expected an object of lists"},
      {config(R"({"cluster": {"worker": ["a:1"]}})"), "`task` is missing"},
      {config(R"({"cluster": {"worker": ["a:1"]}, "task": 1})"), "`task` is an integer, expected an object"},
      {config(R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker"}})"), "needs `type` and `index`"},
      {config(R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 1}})"),
       "`index` is 1, but the list of workers has 1 address"},
      {config(R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": -1}})"), "`index` is -1"},
      {config(R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": "0"}})"), "`index` is a string"},
      {config(R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "chief", "index": 0}})"), "list of chiefs has 0"},
      {config(R"({"cluster": {"chief": ["a:1", "b:1"]}, "task": {"type": "chief", "index": 0}})"), "2 chiefs"},
      {config(R"({"cluster": {"evaluator": ["a:1"]}, "task": {"type": "evaluator", "index": 0}})"),
       "for which no rank waits"},
      {config(R"({"sparseCluster": {}, "task": {}})"), "switch dynamic workers off"},
      {config(R"({"cluster": {"gpu": ["a:1"]}})"), "`cluster` is \"gpu\""},
      {config(R"({"cluster": {"worker": ["a:0000"]}, "task": {"type": "worker", "index": 0}})"),
       "a port is 1 to 65535"},
      {{{"OMPI_COMM_WORLD_RANK", "x"}, {"OMPI_COMM_WORLD_SIZE", "2"}}, "OMPI_COMM_WORLD_RANK is \"x\""},
      {{{"PMI_RANK", "0"}, {"PMI_SIZE", "-2"}}, "PMI_SIZE is \"-2\""},
      {{{"WORLD_SIZE", "2 "}}, "WORLD_SIZE is \"2 \""},
      {{{"WORLD_SIZE", "99999999999999"}}, "WORLD_SIZE is"},
      {torchrun + Variables{{"SLURM_PROCID", "a"}}, "SLURM_PROCID is \"a\""},
      {{{"MASTER_ADDR", "h"}, {"MASTER_PORT", "70000"}}, "MASTER_PORT is 70000"},
      {{{"RANK", "4"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "localhost"}, {"MASTER_PORT", "1"}}, "expected 0 .. 3"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.says);
    expect_says(error_of([&] { read(row.set); }), row.says);
  }
  expect_says(error_of<DataError>([&] { read(own(std::string(100'000, '['))); }), "nested more than 200 deep");
}

TEST(Cluster, FirstHostOfSlurmsLists) {
  const std::pair<const char*, const char*> rows[] = {{"node1", "node1"},
                                                      {"node1,node2", "node1"},
                                                      {"node[03-05,9],gpu1", "node03"},
                                                      {"n[7,9]x,b", "n7x"},
                                                      {"n[1-2]-ib,n9", "n1-ib"},
                                                      {"n[", ""},
                                                      {"n[]", ""},
                                                      {"n[1-2", ""},
                                                      {"", ""},
                                                      {"r[1-2]n[3-4]", ""}};
  for (const auto& [list, host] : rows) EXPECT_EQ(first_host(list), host) << list;
}

TEST(Cluster, OfTheProgram) {
  Cluster written{.workers = {"127.0.0.1:1"}, .rank = 3, .timeout = std::chrono::seconds(20)};
  EXPECT_EQ(error_of<InvalidArgument>([&] { written.check(); }), "Cluster: `rank` is 3, expected 0 .. 0 for 1 worker");
  written.rank = 0;
  written.check();
  EXPECT_TRUE(written.is_chief());
  const Cluster simulated = Cluster::simulated(3, 1);
  simulated.check();
  EXPECT_EQ(simulated.describe(),
            "cluster: chief 0 of 3 ranks and 1 parameter server, all in this process (Cluster::simulated)");
  expect_says(error_of<InvalidArgument>([] { Cluster::simulated(0); }), "`workers` is 0, expected 1 .. 1024");
  expect_says(error_of<InvalidArgument>([] { Cluster::simulated(1, -1); }), "`parameter_servers` is -1");
  EXPECT_EQ(cluster_of_json(R"({"timeout": 2.5, "heartbeat": 0.5})").timeout, std::chrono::milliseconds(2500));
  EXPECT_EQ(Address::parse("[::1]:7", "x").to_string(), "[::1]:7");
}

TEST(Cluster, AHeartbeatFollowsFromATimeoutThatIsNotLonger) {
  struct Row {
    std::chrono::milliseconds timeout, heartbeat, follows;
  };
  for (const Row& row : {Row{60s, Cluster::usual_heartbeat, 10s},
                         {11s, Cluster::usual_heartbeat, 10s},
                         {10s, Cluster::usual_heartbeat, 2500ms},
                         {8s, Cluster::usual_heartbeat, 2s},
                         {2ms, Cluster::usual_heartbeat, 1ms},
                         {8s, 3s, 3s}}) {
    const Cluster cluster{.timeout = row.timeout, .size = 1, .heartbeat = row.heartbeat};
    cluster.check();
    EXPECT_EQ(cluster.settled().heartbeat, row.follows) << row.timeout.count();
  }
  EXPECT_EQ(cluster_of_json(R"({"timeout": 8})").settled().heartbeat, 2s);
  const Cluster wrong{.timeout = 8s, .size = 1, .heartbeat = 9s};
  expect_says(error_of<InvalidArgument>([&] { wrong.check(); }), "leave it out, and it follows from `timeout`");
}

}  // namespace
}  // namespace gradus::cluster_test
