/// `gradus run` and `gradus onnx-test` on small models: what they write, print and give back.
#include <gtest/gtest.h>
#include <filesystem>
#include <fstream>
#include "apps/gradus/commands.h"
#include "apps/gradus/config.h"
#include "gradus/formats/npy.h"
#include "gradus/onnx/export.h"
#include "gradus/onnx/model_file.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "tests/apps/command_fixture.h"

namespace gradus::command::onnx_command_test {
namespace {
namespace fs = std::filesystem;

class OnnxCommand : public CommandTest {
 protected:
  void SetUp() override { write_case("good", 6); }

  /// A directory of the suite whose model doubles x = 3.
  void write_case(const std::string& name, double wanted) {
    fs::create_directories(root_ / "suite" / name / "test_data_set_0");
    export_onnx(root_ / "suite" / name / "model.onnx", [](auto in) { return Tensors{in[0] + in[0]}; }, {{f32, {}}});
    write_tensor(name, "input_0.pb", 3);
    write_tensor(name, "output_0.pb", wanted);
  }
  void write_tensor(const std::string& name, const char* file, double value) {
    const float number = static_cast<float>(value);
    std::string message("\x10\x01\x4a\x04", 4);  // data_type: float; raw_data: 4 bytes
    message.append(reinterpret_cast<const char*>(&number), 4);
    std::ofstream(root_ / "suite" / name / "test_data_set_0" / file, std::ios::binary) << message;
  }
  /// Lines without control characters, in UTF-8 those of two bytes, too.
  static void expect_tame(const std::string& lines) {
    for (const char c : lines) EXPECT_TRUE(c == '\n' || (static_cast<unsigned char>(c) >= ' ' && c != '\x7f')) << lines;
    EXPECT_EQ(lines.find("\xc2\x9b"), std::string::npos) << lines;
  }
  std::string suite(ExitStatus expected) {
    testing::internal::CaptureStdout();
    EXPECT_EQ(onnx_test({{root_ / "suite"}}), expected);
    return testing::internal::GetCapturedStdout();
  }
  std::string verdict(const std::string& word, const std::string& name) {
    return word + " " + (root_ / "suite" / name).string();
  }
};

TEST_F(OnnxCommand, SuiteThatPasses) {
  EXPECT_EQ(suite(ok), verdict("PASS", "good") + "\n1 passed, 0 failed, 0 skipped\n");
}

TEST_F(OnnxCommand, SuiteWithFailures) {
  write_case("off", 6.1);
  write_case("broken", 6);
  std::ofstream(root_ / "suite" / "broken" / "model.onnx") << "not a model";
  const std::string said = suite(failed);
  EXPECT_NE(said.find(verdict("FAIL", "broken") + ": "), std::string::npos) << said;
  EXPECT_NE(said.find(verdict("FAIL", "off") + ": test_data_set_0, output 0 `y`: 1 of 1 elements differ"),
            std::string::npos)
      << said;
  EXPECT_NE(said.find("\n1 passed, 2 failed, 0 skipped\n"), std::string::npos) << said;
}

TEST_F(OnnxCommand, ToleranceComesFromTheDirectory) {
  write_case("near", 6.1);
  std::ofstream(root_ / "suite" / "near" / "data.json") << R"({"rtol": 0.1, "atol": 0})";
  EXPECT_NE(suite(ok).find("2 passed"), std::string::npos);
}

TEST_F(OnnxCommand, OpsThatAreNotToBeHad) {
  write_case("other", 6);
  const fs::path path = root_ / "suite" / "other" / "model.onnx";
  onnx::ModelFile file = onnx::read_model(path);
  file.graph.nodes[0].op = "Foo";
  std::ofstream(path, std::ios::binary) << onnx::written(file, "other");
  const std::string said = suite(ok);
  EXPECT_NE(said.find(verdict("UNSUPPORTED", "other") + ": " + path.string() + ": there is no op Foo-23 of node `"),
            std::string::npos)
      << said;
  EXPECT_NE(said.find("1 passed, 0 failed, 1 skipped"), std::string::npos);
}

TEST_F(OnnxCommand, RunWritesEachOutput) {
  save_npy(root_ / "x.npy", constant(4.0));
  const RunArguments arguments{.model = root_ / "suite" / "good" / "model.onnx",
                               .output = root_ / "results",
                               .inputs = {"x=" + (root_ / "x.npy").string()}};
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_model(arguments), ok);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "y f32[] " + (root_ / "results" / "y.npy").string() + "\n");
  EXPECT_EQ(load_npy(root_ / "results" / "y.npy").item(), 8);
  RunArguments wrong = arguments;
  wrong.inputs = {"x"};
  EXPECT_THROW(run_model(wrong), ConfigError);
  wrong.inputs = {};
  EXPECT_THROW(run_model(wrong), InvalidArgument);
}

// Files may not be named as values may: neither is lost where both would be called "a_b".
TEST_F(OnnxCommand, RunKeepsOutputsWhoseFilesWouldBeOne) {
  write_case("two", 6);
  const fs::path path = root_ / "suite" / "two" / "model.onnx";
  onnx::ModelFile file = onnx::read_model(path);
  const onnx::ValueInfo y = file.graph.outputs[0];
  file.graph.nodes.push_back({.op = "Identity", .inputs = {y.name}, .outputs = {"a/b"}});
  file.graph.nodes.push_back({.op = "Neg", .inputs = {y.name}, .outputs = {"a_b"}});
  file.graph.outputs = {y, y};
  file.graph.outputs[0].name = "a/b";
  file.graph.outputs[1].name = "a_b";
  std::ofstream(path, std::ios::binary) << onnx::written(file, "two");
  save_npy(root_ / "x.npy", constant(4.0));
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_model({.model = path, .output = root_ / "results", .inputs = {"x=" + (root_ / "x.npy").string()}}), ok);
  testing::internal::GetCapturedStdout();
  EXPECT_EQ(load_npy(root_ / "results" / "a_b.npy").item(), -8);
  EXPECT_EQ(load_npy(root_ / "results" / "a_b_2.npy").item(), 8);
}

// Names of a file are no commands to a terminal, and no places elsewhere.
TEST_F(OnnxCommand, NamesOfOutputsAreTame) {
  const std::string names[] = {"a\x1b[2J\r\nb",
                               "../../up",
                               "\x7f",
                               "",
                               std::string(5000, 'x'),
                               std::string(5000, 'x') + "y",
                               "\xc2\x9b"
                               "31m",
                               std::string(199, 'u') + "\xc3\xa4\xc3\xa4"};
  write_case("named", 6);
  const fs::path path = root_ / "suite" / "named" / "model.onnx";
  onnx::ModelFile file = onnx::read_model(path);
  const onnx::ValueInfo y = file.graph.outputs[0];
  file.graph.outputs.clear();
  for (const std::string& name : names) {
    if (name.empty()) continue;
    file.graph.nodes.push_back({.op = "Identity", .inputs = {y.name}, .outputs = {name}});
    file.graph.outputs.push_back(y);
    file.graph.outputs.back().name = name;
  }
  std::ofstream(path, std::ios::binary) << onnx::written(file, "named");
  save_npy(root_ / "x.npy", constant(4.0));
  ASSERT_EQ(
      status_of([&] {
        return run_model({.model = path, .output = root_ / "results", .inputs = {"x=" + (root_ / "x.npy").string()}});
      }),
      ok)
      << errors_;
  expect_tame(output_);
  EXPECT_EQ(std::ranges::count(output_, '\n'), 7);
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root_ / "results")) {
    expect_tame(entry.path().filename().string() + "\n");
    EXPECT_EQ(load_npy(entry.path()).item(), 8);
    ++files;
  }
  EXPECT_EQ(files, 7);
  ASSERT_EQ(status_of([&] { return inspect({.path = path, .graph = true}); }), ok);
  expect_tame(output_);
}

}  // namespace
}  // namespace gradus::command::onnx_command_test
