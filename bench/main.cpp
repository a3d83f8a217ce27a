/// gradus_bench WORKLOAD: runs one workload of WORKLOADS.md and prints one JSON line.
#include <CLI/CLI.hpp>
#include <iostream>
#include "bench/inputs.h"
#include "bench/object_step.h"
#include "bench/profile.h"
#include "bench/ranks.h"
#include "bench/workloads.h"
#include "gradus/base/error.h"
#include "gradus/base/threads.h"
#include "gradus/compiler/pipeline.h"

int main(int argc, char** argv) {
  using namespace gradus::bench;
  Workloads workloads;
  add_mlp(workloads);
  add_updates(workloads);
  add_derivatives(workloads);
  add_chain(workloads);
  add_cnn(workloads);
  add_gpt(workloads);
  add_generate(workloads);
  add_recurrent(workloads);
  add_pipeline(workloads);
  add_images(workloads);
  add_fit(workloads);
  add_smaller(workloads);
  add_limits(workloads);
  add_ops(workloads);

  CLI::App app{"Runs one workload of bench/WORKLOADS.md and prints its figures as a JSON line."};
  std::string workload;
  int threads = 2;
  bool list = false, list_passes = false;
  app.add_option("workload", workload, "which one")->type_name("WORKLOAD");
  app.add_option("--threads", threads, "threads that compute")->capture_default_str()->type_name("N");
  app.add_flag("--object", measures_object,
               "the step as an object file against the library's, with --threads 1: ratio and losses");
  app.add_option("--stablehlo", stablehlo_file, "write the step as StableHLO there, and measure nothing")
      ->type_name("FILE");
  app.add_option("--disable", function_options.disable, "compiler passes that are left out, to see their worth")
      ->delimiter(',')
      ->type_name("PASS,...");
  app.add_option("--inputs", inputs_file, "data and weights that inputs.py wrote; without it they are drawn")
      ->check(CLI::ExistingFile)
      ->type_name("FILE");
  std::string share;
  int micro_shards = 0;
  app.add_option("--ranks", share,
                 "one of several processes, started by gradus launch, that share the workload's batch "
                 "(strong), have a batch each (weak), or do so without any exchange (alone)")
      ->check(CLI::IsMember({"strong", "weak", "alone"}));
  app.add_option("--micro-shards", micro_shards, "in how many shards ranks divide a batch; 0: one each");
  app.add_flag("--profile", function_options.profile, "print where the time goes, instead of the figures");
  app.add_flag("--list", list, "list the workloads");
  app.add_flag("--passes", list_passes, "list the compiler passes that can be left out");
  CLI11_PARSE(app, argc, argv);
  if (list) {
    for (const auto& [name, run] : workloads) std::cout << name << '\n';
    return 0;
  }
  if (list_passes) {
    for (std::string_view name : gradus::pass_names()) std::cout << name << '\n';
    return 0;
  }
  const auto found = workloads.find(workload);
  if (found == workloads.end()) {
    std::cerr << "gradus_bench: " << (workload.empty() ? "say which workload" : "there is no workload " + workload)
              << "; --list names them\n";
    return 2;
  }
  try {
    gradus::set_num_threads(threads);
    if (!share.empty()) ranks.emplace(share, micro_shards);
    const Figures figures = found->second();
    if (function_options.profile) print_profile(workload, figures);
    else print_line(workload, figures);
    return 0;
  } catch (const gradus::Error& error) {
    std::cerr << "gradus_bench: " << error.what() << '\n';
    return 1;
  }
}
