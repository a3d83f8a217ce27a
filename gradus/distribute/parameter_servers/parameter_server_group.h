/// ParameterServerGroup: the implementation of a ParameterServerStrategy in the process of a worker, or in a simulated
/// cluster. The thread of the program schedules; each worker is a thread that takes steps, pulls, computes and pushes.
///
/// This is the first header of parameter_servers/. In flow scheduled steps, each with its batch; out flow the loss of
/// each step, and the new values of Variables at the servers. At rank 0 a StepDesk hands out steps; a StepProgram is a
/// step, cut into the part of a worker and the part of a server; a ParameterStore is a server's Variables.
#pragma once
#include <condition_variable>
#include <deque>
#include <exception>
#include <set>
#include "gradus/distribute/cluster/launcher_reports.h"
#include "gradus/distribute/mirrored/replica_group.h"
#include "gradus/distribute/parameter_server.h"
#include "gradus/distribute/parameter_servers/parameter_client.h"
#include "gradus/distribute/parameter_servers/parameter_layout.h"
#include "gradus/distribute/parameter_servers/parameter_store.h"
#include "gradus/distribute/parameter_servers/step_desk.h"
#include "gradus/distribute/parameter_servers/step_member.h"
#include "gradus/distribute/parameter_servers/step_program.h"

namespace gradus::detail {

/// A step's program as workers and servers have it.
struct InstalledProgram {
  struct AtServer {
    std::vector<std::size_t> pulls;  // places in reads()
    std::vector<int> pushes;         // places in pushes()
  };
  std::shared_ptr<const StepProgram> step;
  std::uint64_t number = 0;  // by which servers know it
  std::vector<AtServer> servers;
};

/// A scheduled step.
struct ScheduledStep {
  std::uint64_t number, version, fingerprint;
  std::shared_ptr<const InstalledProgram> program;
  std::vector<Ref<Buffer>> arguments;
  Ref<Buffer> key;
};

class ParameterServerGroup final : public ReplicaGroup {
 public:
  ParameterServerGroup(const Cluster& cluster, const ParameterServerOptions& options);
  ~ParameterServerGroup() override;

  /// Settings that all processes of a training have to share.
  static std::string fingerprint_of(const Cluster& cluster, int max_staleness);
  static ParameterStore::Options options_of_store(const ParameterServerOptions& options, int server);
  void schedule(const StepIdentity& identity, In batch, const StaticArguments& statics, const Body& body);
  StepLoss join();

  int rank() const override { return cluster_.in_process ? 0 : cluster_.rank; }
  int ranks() const override { return cluster_.in_process ? 1 : cluster_.ranks(); }
  /// In step, on every rank: all compute it, and get its results.
  StepResults run(const StepIdentity& identity, In global, StaticArguments statics, const Body& body) override;
  Explanation explain(const StepIdentity& identity) override;
  std::vector<std::uint64_t> all_gather(std::uint64_t mine, std::string_view question) override;
  bool keeps_variables() const override { return false; }  // they are the servers'
  std::string name_of(int rank) const override;
  void report_failure(const std::string& why) noexcept override;

 private:
  using Clients = std::vector<ParameterClient>;
  /// The compiled variants of a function.
  struct Known {
    struct Variant {
      std::string signature;
      std::shared_ptr<const InstalledProgram> program;
    };
    std::weak_ptr<const void> identity;
    std::vector<Variant> programs = {};  // newest last
    std::int64_t calls = 0;
  };

  void meet();
  Clients clients(const std::string& sender) const;
  void work(StepMember& member, Clients servers);
  void compute(const ScheduledStep& step, StepMember& member, Clients& servers);
  StepProgram::Outcome pull_and_run(const ScheduledStep& step, Clients& servers) const;
  void push(const ScheduledStep& step, const StepProgram::Outcome& outcome, Clients& servers) const;
  /// A step's program, which servers may not have yet.
  struct Traced {
    std::shared_ptr<const InstalledProgram> known = nullptr;  // or
    std::shared_ptr<const StepProgram> fresh = nullptr;
    Known* function = nullptr;  // null: no caller can call it again
    std::string signature = {};
    std::size_t most_variants = 0;
  };
  Traced traced(const StepIdentity& identity, In batch, const StaticArguments& statics, const Body& body,
                bool is_in_step);
  std::shared_ptr<const InstalledProgram> installed(const Traced& traced);
  std::shared_ptr<const InstalledProgram> install(std::shared_ptr<const StepProgram> program);
  ScheduledStep prepared(const Traced& traced, In batch, bool is_in_step);
  void send_new_cells(std::size_t first);
  /// Assignments of the program since the last step take effect at the next one.
  void send_assigned();
  void take_values();
  void await_room();
  void wait_for_all() { note_committed(main_->round(scheduled_, scheduled_).committed); }
  void note_committed(std::uint64_t committed);
  /// The first one counts; but why rank 0 is gone the thread that beats hears (StepDesk::note_told).
  void note_failure(const std::exception_ptr& error);
  void check_usable(std::string_view what);
  template <class Work> auto attempt(Work work);
  void end() override;

  const Cluster cluster_;
  const ParameterServerOptions options_;
  const std::uint64_t lag_;
  const std::string incarnation_;
  LauncherReports reports_;
  const int exceptions_before_ = std::uncaught_exceptions();
  std::unique_ptr<StepDesk> desk_;                       // of rank 0
  std::unique_ptr<RpcServer> desk_server_;               // the same, for other processes
  std::vector<std::unique_ptr<ParameterStore>> stores_;  // of a simulated cluster
  std::vector<std::shared_ptr<const ParameterServerPlace>> places_;
  std::unique_ptr<StepMember> main_;
  std::vector<std::unique_ptr<StepMember>> members_;  // of workers
  Clients servers_;                                   // of the program's thread
  ParameterLayout layout_;
  std::map<const void*, Known> known_;
  std::set<std::uint64_t> sent_;   // programs that servers have
  std::size_t known_here_ = 0;     // Variables, by number, whose values have come from the servers
  std::uint64_t seen_ = 0;         // after how many steps
  std::uint64_t base_ = 0;         // steps from here on see all before it
  std::uint64_t round_begin_ = 0;  // the first step of the round that join() ends

  std::mutex mutex_;
  std::condition_variable changed_;                           // notifies of changes of the members below
  std::deque<std::shared_ptr<const ScheduledStep>> waiting_;  // not known to be done, by number
  std::uint64_t scheduled_ = 0;
  std::uint64_t history_ = 0;  // a fingerprint of the steps scheduled since the last join
  std::exception_ptr error_;
  std::string failure_;  // the message of the failure; empty: none
  bool is_over_ = false;
  bool is_beating_ = false;  // a thread says that this process lives
  std::vector<std::thread> threads_;
};

}  // namespace gradus::detail
