/// The options of `gradus launch` on the command line.
#include <CLI/CLI.hpp>
#include <string_view>
#include "apps/gradus/launch.h"
#include "apps/gradus/ranges.h"

namespace gradus::command {

CLI::App* add_launch(CLI::App& app, LaunchArguments& a) {
  CLI::App* command =
      app.add_subcommand("launch", "Run a program as several ranks on this machine: -- PROGRAM ARGS...");
  command->add_option("-n,--ranks", a.ranks, "How many processes; required")->check(whole_number(1, 1024));
  command->add_option("--servers", a.servers, "How many parameter servers beside them (0)")
      ->check(whole_number(0, 1024));
  command->add_option("--restarts", a.restarts, "How often all are started again at most after one has failed (0)")
      ->check(count_range);
  command->add_option("--elastic", a.elastic, "Each restart takes a rank less, down to so many (default: as many)")
      ->check(whole_number(1, 1024));
  command->add_option("--port", a.port, "Of 127.0.0.1, where the ranks meet (default: a free one)")
      ->check(whole_number(1, 65'535));
  command->prefix_command()->callback([command, &a] { a.extras = command->remaining(); });  // launch() refuses them
  command->footer(
      "The program and its arguments stand after --, as in: gradus launch -n 4 -- ./trainer --epochs 3\n"
      "Each rank finds in GRADUS_CLUSTER who it is. One that fails ends the others.");
  return command;
}

std::vector<std::string> program_of_launch(int& count, char** arguments) {
  if (count < 2 || std::string_view(arguments[1]) != "launch") return {};
  char** const end = arguments + count;
  char** const mark = std::find_if(arguments, end, [](const char* each) { return std::string_view(each) == "--"; });
  if (mark == end) return {};
  count = static_cast<int>(mark - arguments);
  return {mark + 1, end};
}

}  // namespace gradus::command
