/// `gradus launch`: the ranks of one machine, for programs that ask Cluster::from_environment() for their rank.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace gradus::command {

struct LaunchArguments {
  std::int64_t ranks = 0;
  std::int64_t servers = 0;            // parameter servers beside them
  std::int64_t restarts = 0;           // how often all are started again at most
  std::int64_t elastic = 0;            // with how few ranks: each restart takes one less; 0: with all of them
  std::optional<std::int64_t> port;    // where rank 0 is met; nothing: a free one
  std::vector<std::string> program{};  // and its arguments
  std::vector<std::string> extras{};   // words before -- that are no options
};
/// Starts the program once a rank and once a parameter server, passes on the ranks' output, and waits for all. One that
/// fails ends the others. Gives the exit status, 128 and the signal after one that asked for the end.
int launch(const LaunchArguments& arguments);

/// The subcommand, which fills `arguments` but for the program.
CLI::App* add_launch(CLI::App& app, LaunchArguments& arguments);

/// The arguments after `launch ... --`: they are the program's alone. `count` becomes the number of arguments before
/// them.
std::vector<std::string> program_of_launch(int& count, char** arguments);

}  // namespace gradus::command
