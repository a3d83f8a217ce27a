/// The command on a device of a plugin, of the processor's own where it is there, and on devices that there are not.
#include <gtest/gtest.h>
#include <algorithm>
#include "gradus/formats/json.h"
#include "tests/apps/command_process.h"
#include "tests/environment_variables.h"

namespace gradus::command::device_command_test {
namespace {

namespace fs = std::filesystem;

std::string plugin_of_the_processor() {
#if defined(__SANITIZE_THREAD__)
  return "";  // ThreadSanitizer does not see how the plugin's threads synchronize
#endif
  const char* const given = std::getenv("GRADUS_TEST_PLUGIN");
  const std::string path = given && *given ? given : GRADUS_PLUGIN_OF_THE_PROCESSOR;
  return fs::exists(path) ? path : "";
}

/// No plugin of the machine is found: no variable names one, and no Python has packages.
class DeviceCommand : public CommandProcessTest {
 protected:
  void SetUp() override {
    write_images("train", 200, 4);
    write_images("test", 50, 4);
    write_config("");
  }
  void write_config(const std::string& lines) const {
    write("config.toml", "seed = 3\n" + dense_training("0.5", 2) + lines);
  }
  /// `gradus train` into `folder`.
  int train(const std::string& folder, std::vector<std::string> more = {}) {
    std::vector<std::string> all{"train", (root_ / "config.toml").string(), "--output", (root_ / folder).string(),
                                 "--quiet"};
    all.insert(all.end(), more.begin(), more.end());
    return run(all);
  }
  /// The losses of a run, epoch by epoch.
  std::vector<double> losses(const std::string& folder) const {
    std::vector<double> all;
    std::istringstream lines(contents(root_ / folder / "metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) all.push_back(nlohmann::json::parse(line).at("loss"));
    return all;
  }
  const VariablesOfTest no_plugins_{{"GRADUS_DEVICE", std::nullopt},
                                    {"PJRT_NAMES_AND_LIBRARY_PATHS", std::nullopt},
                                    {"TPU_LIBRARY_PATH", std::nullopt},
                                    {"PATH", (root_ / "nowhere").string()}};
};

/// The processor, on a machine with plugins, too; then the machines that objects can be made for.
TEST_F(DeviceCommand, NamesTheProcessorAloneWithoutPlugins) {
  EXPECT_EQ(run({"devices"}), ok) << errors_;
  std::istringstream lines(output_);
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_TRUE(line.starts_with("cpu:0  ")) << output_;
  while (std::getline(lines, line)) EXPECT_TRUE(line.starts_with("target ")) << output_;
}

TEST_F(DeviceCommand, OfAnUnknownDeviceEndsWithAnError) {
  EXPECT_NE(train("run", {"--device", "gpu:0"}), ok);
  expect_error("gpu:0");
  EXPECT_FALSE(fs::exists(root_ / "run"));
  EXPECT_NE(train("run", {"--device", "nonsense"}), ok);
  expect_error("`nonsense` is neither a device, such as gpu:0, nor a plugin");
  write_config("device = \"tpu:1\"\n");
  EXPECT_NE(train("run"), ok);
  expect_error("tpu:1");
  EXPECT_EQ(train("run", {"--device", "cpu:0"}), ok) << errors_;  // the option goes before the key
  const VariablesOfTest device{{"GRADUS_DEVICE", "nonsense"}};
  write_config("");
  EXPECT_NE(train("again"), ok);
  expect_error("GRADUS_DEVICE names `nonsense`, which is neither a device nor a plugin that was found");
}

TEST_F(DeviceCommand, SaysWhatToInstallForADeviceThatThereIsNot) {
  struct Row {
    const char *device, *says;
  };
  for (const Row& row : {Row{"gpu", "device of kind gpu: there is none; there are those of kind cpu"},
                         {"gpu",
                          "no plugin for it was found: install one (docs/accelerators.md says which; for NVIDIA "
                          "`pip install \"jax[cuda13]\"`)"},
                         {"tpu:0", "no plugin for it was found: install one (docs/accelerators.md says which)"},
                         {"cuda", "`gradus devices` lists what was found"},
                         {"cpu:99", "GRADUS_DEVICE is `cpu:99`: behind cpu: stands the number of a device, 0 to 62"},
                         {"gpu:x", "GRADUS_DEVICE is `gpu:x`: behind gpu: stands the number of a device, 0 to 62"}}) {
    const VariablesOfTest device{{"GRADUS_DEVICE", row.device}};
    EXPECT_NE(train("run"), ok);
    expect_error(row.says);
  }
}

/// A file as an interrupted download leaves it; the other devices are listed all the same.
TEST_F(DeviceCommand, TellsOfAPluginThatIsCutOff) {
  const fs::path cut = root_ / "cut.so";
  fs::copy_file(GRADUS_COMMAND, cut);
  fs::resize_file(cut, fs::file_size(cut) / 2);
  const VariablesOfTest plugins{
      {"PJRT_NAMES_AND_LIBRARY_PATHS", "first:" + cut.string() + ",second:/nowhere/plugin.so"}};
  EXPECT_EQ(run({"devices"}), ok) << errors_;
  expect_output("cpu:0  ");
  expect_output("plugin first  cannot be used: plugin first: " + cut.string() + " is cut off: it has ");
  expect_output("/nowhere/plugin.so: No such file");
}

TEST_F(DeviceCommand, TellsOfPluginsThatCannotBeUsed) {
  const VariablesOfTest plugins{{"PJRT_NAMES_AND_LIBRARY_PATHS", "first,second:/nowhere/plugin.so"}};
  EXPECT_EQ(run({"devices"}), ok) << errors_;
  expect_output("PJRT_NAMES_AND_LIBRARY_PATHS: `first` is not name:path");
  expect_output("/nowhere/plugin.so: No such file");
  expect_output("cpu:0");
  const VariablesOfTest clears{{"PJRT_NAMES_AND_LIBRARY_PATHS", "a\x1b[2Jb,c\x1b[2Jd:/nowhere/\x1b[2J.so"}};
  EXPECT_EQ(run({"devices"}), ok) << errors_;
  expect_output("plugin a\\x1b[2Jb  cannot be used");
  EXPECT_EQ(output_.find('\x1b'), std::string::npos) << output_;
}

/// The losses are the processor's, and the device has run them: named in each of the ways.
TEST_F(DeviceCommand, TrainsOnAPlugin) {
  const std::string plugin = plugin_of_the_processor();
  if (plugin.empty()) GTEST_SKIP() << "NOT TESTED: there is no PJRT plugin for the processor";
  ASSERT_EQ(train("here"), ok) << errors_;
  const std::vector<double> here = losses("here");
  ASSERT_EQ(here.size(), 2U);
  const VariablesOfTest plugins{{"PJRT_NAMES_AND_LIBRARY_PATHS", "xla:" + plugin}};
  const auto expect_there = [&](const std::string& folder) {
    const std::vector<double> there = losses(folder);
    ASSERT_EQ(there.size(), here.size());
    for (std::size_t i = 0; i < here.size(); ++i) EXPECT_NEAR(there[i], here[i], 1e-4 * here[i]) << folder;
    // Code that a plugin has compiled is in the folder.
    EXPECT_FALSE(fs::is_empty(root_ / "code")) << folder;
    fs::remove_all(root_ / "code");
  };
  fs::create_directory(root_ / "code");
  const VariablesOfTest cache{{"GRADUS_XLA_CACHE", (root_ / "code").string()}};
  ASSERT_EQ(train("option", {"--device", "xla:1"}), ok) << errors_;
  expect_there("option");
  {
    const VariablesOfTest device{{"GRADUS_DEVICE", "xla"}};
    ASSERT_EQ(train("variable"), ok) << errors_;
    expect_there("variable");
  }
  write_config("device = \"xla\"\n");
  ASSERT_EQ(train("key"), ok) << errors_;
  expect_there("key");
  EXPECT_NE(contents(root_ / "key" / "config.toml").find("device = \"xla\""), std::string::npos);
  ASSERT_EQ(run({"eval", (root_ / "key").string()}), ok) << errors_;
  ASSERT_EQ(train("missing", {"--device", "xla:9"}), failed);
  expect_error("xla:9");
}

}  // namespace
}  // namespace gradus::command::device_command_test
