/// The command line of `gradus profile`.
#include <CLI/CLI.hpp>
#include "apps/gradus/profile.h"
#include "apps/gradus/ranges.h"

namespace gradus::command {

CLI::App* add_profile(CLI::App& app, ProfileArguments& a) {
  CLI::App* command = app.add_subcommand("profile", "Say where the time of a training goes, and what to change");
  command->add_option("config", a.config, "TOML file; see configs/ and docs/configuration.md")->required();
  command->add_option("--steps", a.steps, "Steps that are trained (50)")->check(size_range);
  command->add_option("--trace", a.trace, "File for Perfetto and chrome://tracing");
  command->add_option("--xplane", a.xplane, "Directory for TensorBoard's profile plugin");
  command->add_option("--output", a.output, "Directory of report.html (default: runs/<name>-profile-<time>)");
  command->add_option("--data-dir", a.data_directory, "Directory of the data")->envname("GRADUS_DATA_DIR");
  command->add_option("--set", a.settings, "KEY=VALUE in place of what the file says, such as train.batch_size=256");
  command->add_option("--threads", a.threads, "Computing threads (0: all cores)")
      ->envname("GRADUS_NUM_THREADS")
      ->check(threads_range);
  command->add_flag("--json", a.json, "The report as one JSON line");
  return command;
}

}  // namespace gradus::command
