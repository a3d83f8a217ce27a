/// A plugin that fails as it is told, plugins/failing_plugin.cpp, and a model on a device of it.
#pragma once
#include <dlfcn.h>
#include <unistd.h>
#include <filesystem>
#include <string>
#include "tests/errors.h"
#include "tests/xla/plugin.h"
#include "gradus/base/rooms.h"

namespace gradus::testing_plugin {

/// A copy of the plugin, with a state of its own.
class FailingPlugin {
 public:
  explicit FailingPlugin(const std::string& name, const std::string& way = "")
      : name_(name), file_(folder() / (name_ + ".so")) {
    namespace fs = std::filesystem;
    fs::copy_file(GRADUS_FAILING_PLUGIN, file_, fs::copy_options::overwrite_existing);
    setenv("GRADUS_REAL_PLUGIN", testing_plugin::file().c_str(), 1);
    setenv("GRADUS_FAILING_PLUGIN", way.c_str(), 1);
  }
  std::vector<Device> load() const { return load_plugin(file_.string(), name_); }
  void fail(long call, int code = 14, bool for_good = false, bool takes = false) const {
    symbol<void(long, int, bool, bool)>("fail_call")(call, code, for_good, takes);
  }
  long calls() const { return symbol<long()>("calls_so_far")(); }
  /// All calls of these: "client_compile,error_get_code". None: "".
  void fail_functions(const std::string& names, int code = 14) const {
    symbol<void(const char*, int)>("fail_functions")(names.c_str(), code);
  }
  long calls_of(const std::string& function) const {
    return symbol<long(const char*)>("calls_of_function")(function.c_str());
  }
  /// A run begins well, and what it makes fails later.
  void poison_run(long after = 0, int code = 14) const { symbol<void(long, int)>("poison_run")(after, code); }

 private:
  static std::filesystem::path folder() {
    static const std::filesystem::path made = [] {
      const std::filesystem::path path = std::filesystem::temp_directory_path() / text("gradus_plugins_", getpid());
      std::filesystem::create_directories(path);
      return path;
    }();
    return made;
  }
  template <class F> F* symbol(const char* name) const {
    void* const library = dlopen(file_.c_str(), RTLD_NOW | RTLD_LOCAL);
    return reinterpret_cast<F*>(dlsym(library, name));
  }
  const std::string name_;
  const std::filesystem::path file_;
};

inline bool the_processor_works() { return (constant({1.0f, 2.0f}).to(cpu(0)) + 1).to_vector<float>()[1] == 3; }

/// A model on a plugin, and what it is to hold. With another `rate` it is another program.
struct Model {
  explicit Model(Device on, double rate_of_step = 0.01) : device(on), rate(rate_of_step) { reset(); }
  /// As a checkpoint would do it.
  void reset() {
    const DeviceScope scope(device);
    const Tensor start = fill({8, 4}, 0.5, f32), none = fill({}, 0, f32);
    if (weights) {
      weights->assign(start);
      counter->assign(none);
      return;
    }
    weights = std::make_unique<Variable>(start, "weights");
    counter = std::make_unique<Variable>(none, "counter");
  }
  Tensor operator()() const {
    const DeviceScope scope(device);
    return step(x);
  }
  std::vector<float> values() const { return weights->value().to_vector<float>(); }
  double count() const { return counter->value().item(); }

  Device device;
  double rate;
  Tensor x = random::normal({6, 8}, {.seed = 4});
  std::unique_ptr<Variable> weights, counter;
  struct Step {
    const Model& of;
    Tensor operator()(Tensor features) const {
      of.weights->assign(of.weights->value() * 0.5 + reduce_sum(matmul(features, *of.weights)) * of.rate);
      of.counter->assign_add(reduce_sum(features) * 0 + 1);  // of the same program, not the processor's
      return reduce_sum(*of.weights);
    }
  };
  Function<Step> step = function(Step{*this});
};

}  // namespace gradus::testing_plugin
