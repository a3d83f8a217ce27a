/// Each function of a plugin fails, when it is loaded and when it is used; runs that begin well and fail later.
#include "tests/test_directory.h"
#include "tests/xla/failing_plugin.h"
#include "gradus/base/rooms.h"

namespace gradus::failing_functions_test {
namespace {

using testing_plugin::FailingPlugin;
using testing_plugin::Model;
using testing_plugin::the_processor_works;

// ---------------------------------------------------------------- as it is loaded

using PluginsAtLoading = testing_plugin::WithPlugin;
class PluginFunctionsAtLoading : public PluginsAtLoading, public ::testing::WithParamInterface<const char*> {};

TEST_P(PluginFunctionsAtLoading, ThatFailAreTold) {
  const std::string function = GetParam(), name = "loading_" + function;
  const FailingPlugin plugin(name, "functions:" + function);
  expect_error<Unavailable>([&] { plugin.load(); }, {name.c_str(), (function + " is made to fail").c_str()});
  EXPECT_EQ(plugin.calls_of(function), 1);
  bool is_listed = false;
  for (const PluginInfo& each : plugins()) is_listed = is_listed || (each.name == name && !each.problem.empty());
  EXPECT_TRUE(is_listed);
  if (function != "description_id") return;  // the last one: the second try is as the first one
  setenv("GRADUS_FAILING_PLUGIN", "", 1);
  const Model model(plugin.load().front());
  model();
  EXPECT_EQ(model.count(), 1);
}
INSTANTIATE_TEST_SUITE_P(Functions, PluginFunctionsAtLoading,
                         ::testing::Values("plugin_initialize", "client_create", "client_platform_name",
                                           "client_platform_version", "client_addressable_devices",
                                           "device_get_description", "description_id"),
                         [](const auto& info) { return std::string(info.param); });

TEST_F(PluginsAtLoading, MayKeepTheirMemoryToThemselves) {
  const FailingPlugin plugin("loading_memory", "functions:device_memory_stats");
  const Device there = plugin.load().front();
  EXPECT_GT(plugin.calls_of("device_memory_stats"), 0);
  EXPECT_EQ(memory_use(there).limit_bytes, 0U);
  const Model model(there);
  model();
  EXPECT_EQ(model.count(), 1);
}

// ---------------------------------------------------------------- as it is used

/// Functions that fail at each call, and whether somebody has to be told.
struct Failing {
  const char* functions;
  bool is_told = false;
};

class PluginFunctions : public testing_plugin::WithPlugin, public ::testing::WithParamInterface<Failing> {
 protected:
  void TearDown() override { unsetenv("GRADUS_XLA_CACHE"); }
  static std::string first_of(const std::string& functions) { return functions.substr(0, functions.find(',')); }
  static const FailingPlugin& plugin() {
    static const FailingPlugin only("of_functions");
    return only;
  }
  /// Of a program that nobody has compiled before.
  static double new_rate() {
    static int made = 0;
    return 1.0 / (16 + ++made);
  }
};

/// Runs of a program, what is read and copied, code that is kept in files and read from them.
void use(Device first, Device second, double rate) {
  for (const Device& device : {first, second}) {
    const Model model(device, rate);
    for (int i = 0; i < 2; ++i) model();
    EXPECT_EQ(model.count(), 2);
    model.values();
  }
  const Tensor there = fill({5}, 3.0, f32).to(first);
  EXPECT_EQ((there.to(second) + 1).to_vector<float>()[4], 4);
  synchronize();
}

TEST_P(PluginFunctions, ThatFailAreToldOrDoNotMatter) {
  const auto& [functions, is_told] = GetParam();
  const std::string watched = first_of(functions);
  const EmptyTestDirectory folder;
  setenv("GRADUS_XLA_CACHE", folder.path().c_str(), 1);
  const std::vector<Device> all = plugin().load();
  const double stored = new_rate();
  use(device(0), device(1), stored);  // the files of this program are there
  plugin().fail_functions(functions);
  bool was_told = false;
  try {
    use(all[0], all[1], stored);
    use(all[0], all[1], new_rate());
    plugins();
  } catch (const Unavailable& error) {
    was_told = true;
    expect_says(error.what(), "of_functions");
  }
  EXPECT_EQ(was_told, is_told);
  EXPECT_GT(plugin().calls_of(watched), 0);
  plugin().fail_functions("");
  EXPECT_TRUE(the_processor_works());
  use(all[0], all[1], new_rate());
}

const Failing used_functions[] = {
    {"buffer_copy_to_device", true},
    {"buffer_destroy"},
    {"buffer_from_host_buffer", true},
    {"buffer_is_deleted,loaded_executable_execute", true},
    {"buffer_ready_event"},
    {"buffer_to_host_buffer", true},
    {"client_compile", true},
    {"description_kind"},
    {"error_get_code,client_compile", true},
    {"event_await", true},
    {"event_destroy"},
    {"event_on_ready"},
    {"executable_deserialize_and_load"},
    {"executable_destroy"},
    {"executable_memory_stats"},
    {"executable_serialize"},
    {"loaded_executable_destroy"},
    {"loaded_executable_execute", true},
    {"loaded_executable_get_executable"},
};
INSTANTIATE_TEST_SUITE_P(Functions, PluginFunctions, ::testing::ValuesIn(used_functions), [](const auto& info) {
  const std::string functions = info.param.functions;
  return functions.substr(0, functions.find(','));
});

// ---------------------------------------------------------------- programs

using UncompiledPrograms = testing_plugin::WithPlugin;

TEST_F(UncompiledPrograms, ChangeNothing) {
  const FailingPlugin plugin("uncompiled");
  const Device there = plugin.load().front();
  const Model model(there);
  plugin.fail_functions("client_compile");
  for (int i = 0; i < 2; ++i)
    expect_error<Unavailable>([&] { model(); },
                              {text(there).c_str(), "does not compile", "client_compile is made to fail"});
  EXPECT_GE(plugin.calls_of("client_compile"), 2) << "what has failed is no code";
  plugin.fail_functions("client_compile", 8);
  expect_error<ResourceExhausted>([&] { model(); }, {text(there).c_str(), "client_compile is made to fail"});
  EXPECT_EQ(model.values(), std::vector<float>(32, 0.5f));
  EXPECT_EQ(model.count(), 0);
  EXPECT_TRUE(the_processor_works());
  plugin.fail_functions("");
  model();
  EXPECT_EQ(model.count(), 1);
}

/// Who asks first after the run that failed.
struct Asking {
  const char* name;
  void (*ask)(const Model& model, const Tensor& result);
};

/// synchronize() tells what nobody has asked for.
void forget_runs() {
  try {
    synchronize();
  } catch (const Unavailable&) {}
}

class FailingPrograms : public testing_plugin::WithPlugin {
 protected:
  void TearDown() override { forget_runs(); }
  static const FailingPlugin& plugin() {
    static const FailingPlugin only("poisoned");
    return only;
  }
};

class PoisonedRuns : public FailingPrograms, public ::testing::WithParamInterface<Asking> {};

TEST_P(PoisonedRuns, LoseWhatTheyWereToMake) {
  const Device there = plugin().load().front();
  const std::string name = text(there);
  const Tensor kept = fill({4}, 7.0, f32).to(there);
  Model model(there);
  const Model other(there);
  for (int i = 0; i < 2; ++i) model(), other();
  plugin().poison_run();
  const Tensor result = model();
  model();
  expect_error<Unavailable>([&] { GetParam().ask(model, result); }, {"the run has failed on the device"});
  for (int i = 0; i < 2; ++i) {
    expect_error<Unavailable>([&] { model.values(); },
                              {name.c_str(), "has lost f32[8,4]", "the run has failed", "load a checkpoint"});
    expect_error<Unavailable>([&] { model.count(); }, {name.c_str(), "has lost f32[]", "load a checkpoint"});
    expect_error<Unavailable>([&] { model(); }, {name.c_str(), "load a checkpoint"});
  }
  EXPECT_EQ(kept.to_vector<float>()[3], 7);
  other();
  EXPECT_EQ(other.count(), 3) << "another model on the device goes on";
  EXPECT_TRUE(the_processor_works());
  model.reset();
  model();
  EXPECT_EQ(model.count(), 1);
  EXPECT_NE(model.values(), std::vector<float>(32, 0.5f));
}

const Asking askings[] = {
    {"result", [](const Model&, const Tensor& result) { result.item(); }},
    {"variable", [](const Model& model, const Tensor&) { model.values(); }},
    {"synchronize", [](const Model&, const Tensor&) { synchronize(); }},
    {"copy", [](const Model& model, const Tensor&) { model.counter->value().to(cpu(0)).item(); }},
};
INSTANTIATE_TEST_SUITE_P(Ways, PoisonedRuns, ::testing::ValuesIn(askings),
                         [](const auto& info) { return std::string(info.param.name); });

/// The plugin refuses the next run, which tells of the one before, too.
TEST_F(FailingPrograms, AfterAPoisonedRunTellOfWhatIsLost) {
  const Device there = plugin().load().front();
  const Model model(there);
  for (int i = 0; i < 2; ++i) model();
  plugin().poison_run();
  model();
  plugin().fail_functions("loaded_executable_execute");
  expect_error<Unavailable>([&] { model(); }, {text(there).c_str(), "the device is lost"});
  plugin().fail_functions("");
  expect_error<Unavailable>([&] { model.values(); }, {"has lost f32[8,4]", "load a checkpoint"});
  expect_error<Unavailable>([&] { model(); }, {"load a checkpoint"});
}

TEST_F(FailingPrograms, WithoutMemoryNameTheHolders) {
  const Device there = plugin().load().front();
  const Tensor large = fill({512, 1024}, 1.0, f32).to(there);
  const Model model(there);
  for (int i = 0; i < 2; ++i) model();
  plugin().poison_run(0, 8);
  model();
  expect_error<ResourceExhausted>([&] { model.values(); }, {text(there).c_str(), "f32[512,1024]"});
  expect_error<Unavailable>([&] { model.values(); }, {"has lost f32[8,4]", "load a checkpoint"});
}

/// A run of several devices.
TEST_F(FailingPrograms, OfReplicasLoseWhatTheyWereToMake) {
  const std::vector<Device> all = plugin().load();
  const MirroredStrategy strategy({.devices = {all[0], all[1]}});
  const Tensor x = random::normal({8, 8}, {.seed = 4});
  Variable w(fill({8}, 0.5, f32), "w");
  const auto step = function([&](Tensor rows) {
    w.assign(w.value() * 0.5 + all_reduce_sum(reduce_sum(rows)) * 0.01);
    return all_reduce_sum(reduce_sum(rows));
  });
  for (int i = 0; i < 2; ++i) strategy.run(step, x);
  const std::vector<float> before = w.value().to_vector<float>();
  plugin().poison_run();
  strategy.run(step, x);
  expect_error<Unavailable>([&] { w.value().to_vector<float>(); }, {"has lost f32[8]", "load a checkpoint"});
  expect_error<Unavailable>([&] { strategy.run(step, x); }, {"has lost f32[8]", "load a checkpoint"});
  w.assign(from_values(before, {8}));
  strategy.run(step, x);
  EXPECT_NE(w.value().to_vector<float>(), before);
  EXPECT_TRUE(the_processor_works());
}

}  // namespace
}  // namespace gradus::failing_functions_test
