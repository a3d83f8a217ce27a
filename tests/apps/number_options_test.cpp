/// Numbers on the command line: what is out of range, or no number, is refused with the option's name and the range,
/// and nothing is written.
#include "tests/apps/command_process.h"

namespace gradus::command::number_options_test {
namespace {

class NumberOptions : public CommandProcessTest {};

struct Wrong {
  const char *option, *value;
};
constexpr Wrong wrong[] = {{"--seed", "-1"},
                           {"--seed", "9223372036854775808"},
                           {"--seed", "99999999999999999999999"},
                           {"--seed", "1.5"},
                           {"--seed", "one"},
                           {"--seed", ""},
                           {"--threads", "-1"},
                           {"--threads", "1025"},
                           {"--threads", "99999999999"},
                           {"--threads", "2.5"},
                           {"--epochs", "-3"},
                           {"--epochs", "1e3"},
                           {"--epochs", "4294967297000000000000"},
                           {"--batch-size", "-1"},
                           {"--batch-size", "0"},
                           {"--batch-size", "x"},
                           {"--fast-dev-run", "0"},
                           {"--fast-dev-run", "-2"}};

TEST_F(NumberOptions, OutOfRangeAreRefused) {
  write("config.toml", "[data]\nkind = \"csv\"\ntrain = \"none.csv\"\nlabel = \"y\"\n");
  for (const auto& [option, value] : wrong) {
    const int status =
        run({"train", (root_ / "config.toml").string(), option, value, "--output", (root_ / "r").string()});
    EXPECT_NE(status, ok) << option << ' ' << value;
    EXPECT_LT(status, 128) << option << ' ' << value;
    EXPECT_NE(errors_.find(option), std::string::npos) << option << ' ' << value << ": " << errors_;
    EXPECT_FALSE(std::filesystem::exists(root_ / "r")) << option << ' ' << value;
  }
}

TEST_F(NumberOptions, TheLargestAreTaken) {
  std::string table = "a,y\n";
  for (int i = 0; i < 32; ++i) table += text(i, ',', i % 2, '\n');
  write("train.csv", table);
  write("config.toml",
        "[data]\nkind = \"csv\"\ntrain = \"train.csv\"\nlabel = \"y\"\n[[layers]]\ntype = \"dense\"\nunits = 2\n"
        "[train]\nepochs = 1\n");
  EXPECT_EQ(run({"train", (root_ / "config.toml").string(), "--seed", "9223372036854775807", "--threads", "1024",
                 "--fast-dev-run", "1", "--quiet"}),
            ok)
      << errors_;
}

}  // namespace
}  // namespace gradus::command::number_options_test
