/// Plugins that fail: a typed error that says which and why, and a process that goes on.
#include <filesystem>
#include <fstream>
#include "gradus/backend/xla/pjrt_api.h"
#include "gradus/base/input_file.h"
#include "tests/test_directory.h"
#include "tests/xla/failing_plugin.h"

namespace gradus::plugins_test {
namespace {

namespace fs = std::filesystem;
using testing_plugin::FailingPlugin;
using testing_plugin::Model;
using testing_plugin::the_processor_works;
using Plugins = testing_plugin::WithPlugin;

TEST(PluginFiles, ThatAreNoneAreTold) {
  expect_error<Unavailable>([] { load_plugin("/nowhere/plugin.so", "none"); },
                            {"none", "/nowhere/plugin.so", "No such"});
  expect_error<Unavailable>([] { load_plugin("/tmp", "none"); }, {"none", "/tmp", "not a file"});
  const EmptyTestDirectory folder;
  const fs::path written = folder.path() / "text.so";
  std::ofstream(written) << "no library";
  expect_error<Unavailable>([&] { load_plugin(written.string(), "written"); }, {"written", "cannot load"});
  expect_error<Unavailable>([] { load_plugin("libm.so.6", "relative"); }, {"relative"});
  Dl_info here{};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&std::getenv), &here), 0);
  expect_error<Unavailable>([&] { load_plugin(here.dli_fname, "libc"); }, {"libc", "not a PJRT plugin", "GetPjrtApi"});
  expect_error<InvalidArgument>([] { load_plugin("/nowhere", "cpu"); }, {"cpu"});
  expect_error<InvalidArgument>([] { load_plugin("/nowhere", "a:b"); }, {"a:b"});
  expect_error<InvalidArgument>([] { device_named("no_such_plugin"); }, {"no_such_plugin", "gpu:0"});
  expect_error<InvalidArgument>([] { device_named("gpu:x"); }, {"gpu:x"});
  expect_error<Unavailable>([] { device_named("tpu:62"); }, {"tpu:62", "there is none"});
  EXPECT_EQ(device_named("cpu"), cpu(0));
  EXPECT_EQ(device_named("cpu:3"), cpu(3));
  EXPECT_TRUE(the_processor_works());
}

/// Files as an interrupted download leaves them, for which the loader would end the process with SIGBUS.
TEST(PluginFiles, ThatAreCutOffAreTold) {
  const EmptyTestDirectory folder;
  const std::string whole = read_text_file(GRADUS_HOLLOW_PLUGIN);
  const fs::path cut = folder.path() / "cut.so";
  for (std::size_t length = 0; length < whole.size() / 2; length += 1 + whole.size() / 40) {
    std::ofstream(cut, std::ios::binary) << whole.substr(0, length);
    const std::string message = error_of<Unavailable>([&] { load_plugin(cut.string(), "cut"); });
    expect_says(message, "plugin cut: ");
    expect_says(message, length < 64 ? "cannot load" : "cut.so is cut off: it has ");
  }
}

/// A copy of the plugin for each test.
std::string hollow(const fs::path& folder, const std::string& name, const std::string& way) {
  setenv("GRADUS_HOLLOW_PLUGIN", way.c_str(), 1);
  const fs::path file = folder / (name + ".so");
  fs::copy_file(GRADUS_HOLLOW_PLUGIN, file);
  return file.string();
}

TEST(PluginFiles, ThatLackFunctionsAreToldWhich) {
  const EmptyTestDirectory folder;
  expect_error<Unavailable>([&] { load_plugin(hollow(folder, "hollow", ""), "hollow"); },
                            {"plugin hollow: ", "version 0.80 of the PJRT C API, and is incomplete: its table lacks ",
                             "PJRT_Error_Destroy, PJRT_Error_Message", "PJRT_Buffer_ReadyEvent", "another build"});
  const auto place_of = [](auto function) {
    static const pjrt::Api table{};
    return (reinterpret_cast<const char*>(&(table.*function)) - reinterpret_cast<const char*>(&table.error_destroy)) /
           static_cast<std::ptrdiff_t>(sizeof(void*));
  };
  const std::pair<std::ptrdiff_t, const char*> rows[] = {
      {place_of(&pjrt::Api::error_destroy), "its table lacks PJRT_Error_Destroy: "},
      {place_of(&pjrt::Api::client_create), "its table lacks PJRT_Client_Create: "},
      {place_of(&pjrt::Api::loaded_executable_execute), "its table lacks PJRT_LoadedExecutable_Execute: "},
      {place_of(&pjrt::Api::buffer_ready_event), "its table lacks PJRT_Buffer_ReadyEvent: "}};
  for (const auto& [place, says] : rows) {
    const std::string name = text("but_", place);
    expect_error<Unavailable>([&] { load_plugin(hollow(folder, name, text("but:", place)), name); }, {says});
  }
}

/// A file has every name under which it was loaded, and a name has one file.
TEST_F(Plugins, HaveTheNamesUnderWhichTheyWereLoaded) {
  const std::vector<Device> all = load_plugin(testing_plugin::file(), "xla");
  EXPECT_EQ(load_plugin(testing_plugin::file(), "second_name"), all);
  EXPECT_EQ(device_named("second_name:1"), all[1]);
  EXPECT_EQ(devices("second_name"), all);
  EXPECT_EQ(device_named("xla"), all[0]);
  expect_error<InvalidArgument>([] { load_plugin("/nowhere/other.so", "xla"); },
                                {"`xla` is the name of another plugin, ", "take another name for /nowhere/other.so"});
  expect_error<InvalidArgument>([] { load_plugin("/nowhere/other.so", "second_name"); }, {"is the name of another"});
}

TEST_F(Plugins, OfAnotherVersionAreRefused) {
  expect_error<Unavailable>([] { FailingPlugin("newer", "version").load(); }, {"newer", "version 9.", "0."});
  expect_error<Unavailable>([] { FailingPlugin("older", "old").load(); }, {"older", "version 0.1", "0."});
  expect_error<Unavailable>([] { FailingPlugin("short", "table").load(); }, {"short"});
  expect_error<Unavailable>([] { FailingPlugin("clientless", "client").load(); }, {"clientless", "made to fail"});
  bool is_listed = false;
  for (const PluginInfo& plugin : plugins())
    is_listed = is_listed || (plugin.name == "clientless" && plugin.problem.find("made to fail") != std::string::npos);
  EXPECT_TRUE(is_listed);
  EXPECT_TRUE(the_processor_works());
}

TEST_F(Plugins, AreListedWithTheirDevices) {
  const std::vector<Device> all = load_plugin(testing_plugin::file(), "xla");
  EXPECT_EQ(all.size(), 4U);
  EXPECT_EQ(device_named("xla"), device(0));
  EXPECT_EQ(device_named("xla:3"), device(3));
  expect_error<Unavailable>([] { device_named("xla:4"); }, {"xla:4", "4 devices"});
  for (const PluginInfo& plugin : plugins()) {
    if (plugin.name != "xla") continue;
    EXPECT_EQ(plugin.platform, "cpu");
    EXPECT_EQ(plugin.problem, "");
    EXPECT_EQ(plugin.devices.size(), 4U);
    EXPECT_EQ(plugin.api_version.substr(0, 2), "0.");
  }
  EXPECT_GE(devices(DeviceKind::plugin).size(), 4U);
}

/// How many calls of the plugin a piece of work takes.
long calls_of(const FailingPlugin& plugin, const std::function<void()>& work) {
  plugin.fail(-1);
  work();
  return plugin.calls();
}

TEST_F(Plugins, AnyCallMayFail) {
  const FailingPlugin plugin("failing");
  const Device there = plugin.load().front();
  const auto used = [](const Model& model) {
    for (int i = 0; i < 3; ++i) model();
    model.values();
    synchronize();
  };
  Model first(there);
  first();
  first();
  const long calls = calls_of(plugin, [&] { used(first); });
  EXPECT_GT(calls, 20);
  int failed = 0;
  for (const bool takes : {false, true})
    for (long call = 0; call < calls; ++call) {
      plugin.fail(-1);
      Model model(there);
      model();
      model();
      plugin.fail(call, 14, false, takes);
      try {
        used(model);
      } catch (const Unavailable& error) {
        ++failed;
        EXPECT_NE(std::string(error.what()).find("failing"), std::string::npos) << error.what();
      }
      plugin.fail(-1);
      // Either it holds what it held after some step, or it says that it is lost.
      try {
        const double count = model.counter->value().item();
        EXPECT_TRUE(count >= 2 && count <= 5) << count;
        model();
        EXPECT_EQ(model.counter->value().item(), count + 1);
      } catch (const Unavailable& error) {
        EXPECT_TRUE(takes) << error.what();
        EXPECT_NE(std::string(error.what()).find("lost"), std::string::npos) << error.what();
      }
      ASSERT_TRUE(the_processor_works());
    }
  EXPECT_GT(failed, 10);
}

/// A model on two devices, which run its step together.
struct ReplicatedModel {
  explicit ReplicatedModel(const std::vector<Device>& all) : strategy({.devices = {all[0], all[1]}}) {
    for (int i = 0; i < 2; ++i) (*this)();
  }
  void operator()() const { strategy.run(step, x); }
  void used() const {
    for (int i = 0; i < 3; ++i) (*this)();
    weights->value().to_vector<float>();
    synchronize();
  }
  MirroredStrategy strategy;
  Tensor x = random::normal({7, 8}, {.seed = 4});
  std::unique_ptr<Variable> weights = std::make_unique<Variable>(fill({8, 4}, 0.5, f32), "weights");
  std::unique_ptr<Variable> counter = std::make_unique<Variable>(fill({}, 0, f32), "counter");
  struct Step {
    const ReplicatedModel& of;
    Tensor operator()(Tensor features) const {
      const Tensor sum = all_reduce_sum(reduce_sum(matmul(features, of.weights->value())));
      of.weights->assign(of.weights->value() * 0.5 + sum * 0.01);
      of.counter->assign_add(fill({}, 1, f32));
      return all_reduce_sum(reduce_sum(features));
    }
  };
  Function<Step> step = function(Step{*this});
};

/// Devices that run a program together: each call of the plugin fails in turn.
TEST_F(Plugins, AnyCallOfReplicasMayFail) {
  const FailingPlugin plugin("failing_replicas");
  const std::vector<Device> all = plugin.load();
  const ReplicatedModel first(all);
  const long calls = calls_of(plugin, [&] { first.used(); });
  EXPECT_GT(calls, 20);
  int failed = 0;
  for (const bool takes : {false, true})
    for (long call = 0; call < calls; ++call) {
      plugin.fail(-1);
      const ReplicatedModel model(all);
      EXPECT_EQ(model.counter->value().item(), 2);
      plugin.fail(call, 14, false, takes);
      try {
        model.used();
      } catch (const Unavailable& error) {
        ++failed;
        EXPECT_NE(std::string(error.what()).find("failing_replicas"), std::string::npos) << error.what();
      }
      plugin.fail(-1);
      try {
        const double count = model.counter->value().item();
        EXPECT_TRUE(count >= 2 && count <= 5) << count;
        model();
        EXPECT_EQ(model.counter->value().item(), count + 1);
      } catch (const Unavailable& error) {
        EXPECT_TRUE(takes) << error.what();
        EXPECT_NE(std::string(error.what()).find("lost"), std::string::npos) << error.what();
      }
      ASSERT_TRUE(the_processor_works());
    }
  EXPECT_GT(failed, 10);
}

TEST_F(Plugins, ALostDeviceLeavesTheProcessor) {
  const FailingPlugin plugin("lost");
  const Device there = plugin.load().front();
  const std::string name = text(there);
  Model model(there);
  model();
  plugin.fail(0, 14, true);
  expect_error<Unavailable>([&] { model(); }, {name.c_str(), "lost"});
  expect_error<Unavailable>([&] { fill({4}, 1.0, f32).to(there).to_vector<float>(); }, {"lost"});
  EXPECT_TRUE(the_processor_works());
  plugin.fail(-1);
}

TEST_F(Plugins, ADeviceWithoutMemoryNamesTheHolders) {
  const FailingPlugin plugin("full");
  const Device there = plugin.load().front();
  const std::string name = text(there);
  const Tensor large = fill({512, 1024}, 1.0, f32).to(there), larger = fill({1024, 1024}, 1.0, f32).to(there);
  plugin.fail(0, 8);
  expect_error<ResourceExhausted>([&] { fill({256, 1024}, 1.0, f32).to(there).to_vector<float>(); },
                                  {name.c_str(), "f32[1024,1024]", "f32[512,1024]", "set_memory_limit"});
  plugin.fail(-1);
  const std::size_t live = memory_use(there).live_bytes;
  EXPECT_GE(live, 6U * MiB);
  set_memory_limit(there, live + MiB);
  EXPECT_EQ(memory_use(there).limit_bytes, live + MiB);
  expect_error<ResourceExhausted>([&] { fill({2048, 1024}, 1.0, f32).to(there).to_vector<float>(); },
                                  {name.c_str(), "memory limit reached", "f32[1024,1024]"});
  expect_error<ResourceExhausted>(
      [&] {
        const DeviceScope scope(there);
        function([](Tensor x) { return x * 2; })(larger).to_vector<float>();
      },
      {name.c_str(), "memory limit reached"});
  set_memory_limit(there, 0);
  EXPECT_EQ(fill({2048, 1024}, 1.0, f32).to(there).to_vector<float>()[7], 1);
}

}  // namespace
}  // namespace gradus::plugins_test
