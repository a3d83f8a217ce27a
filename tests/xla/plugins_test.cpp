/// Plugins that fail: a typed error that says which and why, and a process that goes on.
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include "tests/errors.h"
#include "tests/test_directory.h"
#include "tests/xla/plugin.h"

namespace gradus {
namespace {

namespace fs = std::filesystem;

/// A copy of the plugin that fails, with a state of its own.
class FailingPlugin {
 public:
  explicit FailingPlugin(const char* name, const char* way = "") : name_(name), file_(folder() / (name_ + ".so")) {
    fs::copy_file(GRADUS_FAILING_PLUGIN, file_, fs::copy_options::overwrite_existing);
    setenv("GRADUS_REAL_PLUGIN", testing_plugin::file().c_str(), 1);
    setenv("GRADUS_FAILING_PLUGIN", way, 1);
  }
  std::vector<Device> load() const { return load_plugin(file_.string(), name_); }
  void fail(long call, int code = 14, bool for_good = false, bool takes = false) const {
    symbol<void(long, int, bool, bool)>("fail_call")(call, code, for_good, takes);
  }
  long calls() const { return symbol<long()>("calls_so_far")(); }

 private:
  static fs::path folder() {
    static const fs::path made = [] {
      const fs::path path = fs::temp_directory_path() / text("gradus_plugins_", getpid());
      fs::create_directories(path);
      return path;
    }();
    return made;
  }
  template <class F> F* symbol(const char* name) const {
    void* const library = dlopen(file_.c_str(), RTLD_NOW | RTLD_LOCAL);
    return reinterpret_cast<F*>(dlsym(library, name));
  }
  const std::string name_;
  const fs::path file_;
};

using Plugins = testing_plugin::WithPlugin;

bool the_processor_works() { return (constant({1.0f, 2.0f}).to(cpu(0)) + 1).to_vector<float>()[1] == 3; }

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

/// A model on a plugin, and what it is to hold.
struct Model {
  explicit Model(Device on) : device(on) {
    const DeviceScope scope(device);
    weights = std::make_unique<Variable>(fill({8, 4}, 0.5, f32), "weights");
    counter = std::make_unique<Variable>(fill({}, 0, f32), "counter");
  }
  void operator()() const {
    const DeviceScope scope(device);
    step(x);
  }
  Device device;
  Tensor x = random::normal({6, 8}, {.seed = 4});
  std::unique_ptr<Variable> weights, counter;
  struct Step {
    const Model& of;
    Tensor operator()(Tensor features) const {
      of.weights->assign(of.weights->value() * 0.5 + reduce_sum(matmul(features, *of.weights)) * 0.01);
      of.counter->assign_add(fill({}, 1, f32));
      return reduce_sum(*of.weights);
    }
  };
  Function<Step> step = function(Step{*this});
};

TEST_F(Plugins, AnyCallMayFail) {
  const FailingPlugin plugin("failing");
  const Device there = plugin.load().front();
  int failed = 0;
  for (const bool takes : {false, true})
    for (long call = 0; call < 60; ++call) {
      plugin.fail(-1);
      Model model(there);
      model();
      model();
      const std::vector<float> before = model.weights->value().to_vector<float>();
      plugin.fail(call, 14, false, takes);
      bool has_failed = false;
      try {
        for (int i = 0; i < 3; ++i) model();
        model.weights->value().to_vector<float>();
        synchronize();
      } catch (const Unavailable& error) {
        has_failed = true;
        EXPECT_NE(std::string(error.what()).find("failing"), std::string::npos) << error.what();
      }
      failed += has_failed;
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

/// Devices that run a program together: each call of the plugin fails in turn.
TEST_F(Plugins, AnyCallOfReplicasMayFail) {
  const FailingPlugin plugin("failing_replicas");
  const std::vector<Device> all = plugin.load();
  const MirroredStrategy strategy({.devices = {all[0], all[1]}});
  const Tensor x = random::normal({7, 8}, {.seed = 4});
  int failed = 0;
  for (const bool takes : {false, true})
    for (long call = 0; call < 40; ++call) {
      plugin.fail(-1);
      Variable weights(fill({8, 4}, 0.5, f32), "weights"), counter(fill({}, 0, f32), "counter");
      const auto step = function([&](Tensor features) {
        weights.assign(weights.value() * 0.5 + all_reduce_sum(reduce_sum(matmul(features, weights.value()))) * 0.01);
        counter.assign_add(fill({}, 1, f32));
        return all_reduce_sum(reduce_sum(features));
      });
      for (int i = 0; i < 2; ++i) strategy.run(step, x);
      EXPECT_EQ(counter.value().item(), 2);
      plugin.fail(call, 14, false, takes);
      try {
        for (int i = 0; i < 3; ++i) strategy.run(step, x);
        weights.value().to_vector<float>();
        synchronize();
      } catch (const Unavailable& error) {
        ++failed;
        EXPECT_NE(std::string(error.what()).find("failing_replicas"), std::string::npos) << error.what();
      }
      plugin.fail(-1);
      try {
        const double count = counter.value().item();
        EXPECT_TRUE(count >= 2 && count <= 5) << count;
        strategy.run(step, x);
        EXPECT_EQ(counter.value().item(), count + 1);
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
}  // namespace gradus
