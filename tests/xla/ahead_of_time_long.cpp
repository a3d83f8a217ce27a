/// Training steps of the bench compile ahead of time for TPUs and an H100, with no such device: where libtpu
/// (TPU_LIBRARY_PATH) and XLA's CUDA plugin (GRADUS_CUDA_PLUGIN) are there, or installed for the Python on PATH. All
/// Variables are donated. Exit status 77: something was skipped, and nothing has failed.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <regex>
#include "gradus/backend/xla/pjrt_api.h"
#include "gradus/backend/xla/plugin_files.h"
#include "gradus/base/clock.h"
#include "gradus/base/error.h"
#include "tests/xla/donated_variables.h"
#include "tests/xla/replicated_step.h"

namespace gradus {
namespace {

// What the library does not use of the C API.
struct TopologyCreate {
  pjrt::Head head{sizeof(TopologyCreate), nullptr};
  const char* name = nullptr;
  std::size_t name_size = 0;
  const pjrt::NamedValue* options = nullptr;
  std::size_t num_options = 0;
  void* topology = nullptr;
};
struct Compile {
  pjrt::Head head{sizeof(Compile), nullptr};
  const void* topology = nullptr;
  const pjrt::Program* program = nullptr;
  const char* options = nullptr;
  std::size_t options_size = 0;
  pjrt::Client* client = nullptr;
  pjrt::Executable* executable = nullptr;
};

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A device that is only described.
struct Target {
  const char *name, *variable, *topology;  // the environment variable that names the plugin's file
  bool is_gpu = false;
};

/// The file of its plugin: what the variable names, or what is found as the library does it. Empty: there is none.
std::string plugin_of(const Target& target) {
  if (const std::string given = xla::environment(target.variable); !given.empty()) return given;
  const DeviceKind kind = target.is_gpu ? DeviceKind::gpu : DeviceKind::tpu;
  for (const xla::PluginFile& file : xla::plugin_files())
    if (file.problem.empty() && xla::kind_of_name(file.name) == kind && std::filesystem::exists(file.path))
      return file.path.string();
  return {};
}

std::string not_tested(const Target& target) {
  return text("NOT TESTED: there is no plugin for ", target.name,
              "; install its wheel for the python3 on PATH, or set ", target.variable, " to its file");
}

class Compiler {
 public:
  explicit Compiler(const Target& target) {
    setenv("TPU_SKIP_MDS_QUERY", "1", 1);          // no machine of a cloud is asked what it is
    setenv("ALLOW_MULTIPLE_LIBTPU_LOAD", "1", 1);  // no device is taken
    void* const library = dlopen(plugin_of(target).c_str(), RTLD_NOW | RTLD_LOCAL);
    require<Unavailable>(library, dlerror());
    api_ = reinterpret_cast<const pjrt::Api* (*)()>(dlsym(library, "GetPjrtApi"))();
    pjrt::PluginInitialize initialize{{sizeof initialize, nullptr}};
    check(api_->plugin_initialize(&initialize));
    const std::string description = contents(GRADUS_H100);
    const std::vector<pjrt::NamedValue> options{named("target_config", description), named("topology", four_)};
    TopologyCreate create{.name = target.topology, .name_size = std::string_view(target.topology).size()};
    if (target.is_gpu) create.options = options.data(), create.num_options = options.size();
    check(reinterpret_cast<pjrt::Error* (*)(TopologyCreate*)>(api_->topology_create)(&create));
    topology_ = create.topology;
  }

  pjrt::ExecutableMemoryStats compiled(std::string text, int replicas = 1) const {
    std::string options("\x1a\x04\x20\x01\x28\x01", 6);  // one replica, one partition
    options[3] = static_cast<char>(replicas);
    pjrt::Program program{{sizeof program, nullptr}, text.data(), text.size(), "mlir", 4};
    Compile call{.topology = topology_, .program = &program, .options = options.data(), .options_size = options.size()};
    check(reinterpret_cast<pjrt::Error* (*)(Compile*)>(api_->compile)(&call));
    pjrt::ExecutableMemoryStats all{};
    all.head.struct_size = sizeof all;
    all.executable = call.executable;
    check(api_->executable_memory_stats(&all));
    return all;
  }

 private:
  static pjrt::NamedValue named(std::string_view name, std::string_view value) {
    pjrt::NamedValue all{};
    all.head.struct_size = sizeof all;
    all.name = name.data(), all.name_size = name.size();
    all.type = pjrt::NamedValue::Type::text;
    all.text = value.data(), all.value_size = value.size();
    return all;
  }
  void check(pjrt::Error* error) const {
    if (!error) return;
    pjrt::ErrorMessage message{{sizeof message, nullptr}, error};
    api_->error_message(&message);
    throw Unavailable(std::string(message.message, message.message_size));
  }
  const pjrt::Api* api_ = nullptr;
  void* topology_ = nullptr;
  std::string four_ = "1x1x4";
};

/// The step of a workload as the bench writes it.
std::string step_of(const std::string& workload) {
  const auto file = std::filesystem::temp_directory_path() / ("gradus_" + workload + ".mlir");
  const std::string command = text(GRADUS_BENCH_PROGRAM, " ", workload, " --stablehlo ", file.string(), " > /dev/null");
  require<Unavailable>(std::system(command.c_str()) == 0, "the bench does not write ", workload);
  const std::string all = contents(file);
  std::filesystem::remove(file);
  return all;
}

/// Bytes of the arguments that results take over.
std::int64_t donated_bytes(const std::string& text) {
  const std::regex argument(R"(tensor<((?:\d+x)*)(f32|f64|i64|i32|bf16|ui32)> \{tf\.aliasing_output)");
  std::int64_t sum = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), argument), end; it != end; ++it) {
    std::int64_t bytes = (*it)[2] == "f64" || (*it)[2] == "i64" ? 8 : (*it)[2] == "bf16" ? 2 : 4;
    std::istringstream dims((*it)[1].str());
    for (std::int64_t d; dims >> d; dims.get()) bytes *= d;
    sum += bytes;
  }
  return sum;
}

const Target targets[] = {{"v5e", "TPU_LIBRARY_PATH", "v5e:2x2"},
                          {"v6e", "TPU_LIBRARY_PATH", "v6e:2x2"},
                          {"H100", "GRADUS_CUDA_PLUGIN", "", true}};
const char* const workloads[] = {"mlp_tiny", "lstm", "cnn", "dwsep", "gpt", "gpt_bf16"};

class AheadOfTime : public ::testing::TestWithParam<std::tuple<Target, const char*>> {};

TEST_P(AheadOfTime, ATrainingStepCompilesAndDonatesItsVariables) {
  const auto& [target, workload] = GetParam();
  if (plugin_of(target).empty()) GTEST_SKIP() << not_tested(target);
  const std::string step = step_of(workload);
  EXPECT_EQ(step, step_of(workload)) << "the text is another one in another process";
  const Compiler compiler(target);
  const double start = steady_seconds();
  const pjrt::ExecutableMemoryStats stats = compiler.compiled(step);
  std::cout << workload << " for " << target.name << ": " << steady_seconds() - start << " s, " << stats.alias_bytes
            << " bytes donated of " << stats.output_bytes << std::endl;
  EXPECT_GE(testing_plugin::expect_all_donated(step), 4) << "of two layers";
  EXPECT_EQ(step.find("\n// result "), std::string::npos) << "a step of training reads what it assigns";
  EXPECT_GT(donated_bytes(step), 0);
  EXPECT_GE(stats.alias_bytes, donated_bytes(step));  // tiles of a TPU may be padded
}
INSTANTIATE_TEST_SUITE_P(Steps, AheadOfTime,
                         ::testing::Combine(::testing::ValuesIn(targets), ::testing::ValuesIn(workloads)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) + "_" + std::get<1>(info.param);
                         });

class ReplicasAheadOfTime : public ::testing::TestWithParam<Target> {};

/// Four devices run it together: a shard each, two each, and with one that has none.
TEST_P(ReplicasAheadOfTime, AStepWithCollectivesCompilesAndDonatesItsVariable) {
  if (plugin_of(GetParam()).empty()) GTEST_SKIP() << not_tested(GetParam());
  const Compiler compiler(GetParam());
  for (const int shards : {4, 8, 3}) {
    const std::string step = testing_plugin::replicated_step(4, shards).text;
    EXPECT_GE(compiler.compiled(step, 4).alias_bytes, donated_bytes(step)) << shards << " shards";
  }
}
INSTANTIATE_TEST_SUITE_P(Targets, ReplicasAheadOfTime, ::testing::ValuesIn(targets),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace gradus

int main(int count, char** arguments) {
  testing::InitGoogleTest(&count, arguments);
  if (const int status = RUN_ALL_TESTS()) return status;
  return testing::UnitTest::GetInstance()->skipped_test_count() > 0 ? 77 : 0;
}
