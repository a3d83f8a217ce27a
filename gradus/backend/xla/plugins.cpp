/// Loading, when a device is first asked for, and the list of devices.
#include "gradus/backend/xla/plugins.h"
#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <filesystem>
#include "gradus/backend/backend.h"
#include "gradus/backend/xla/client_options.h"
#include "gradus/backend/xla/plugin_files.h"
#include "gradus/backend/xla/xla_backend.h"
#include "gradus/tensor/device_finder.h"

namespace gradus::xla {
namespace {

constexpr std::size_t kinds = device_kinds.size();
std::size_t number_of(DeviceKind kind) { return static_cast<std::size_t>(kind); }

/// Where a plugin with this platform's devices lists them.
DeviceKind kind_of_platform(const std::string& platform, const std::string& name) {
  if (platform == "cuda" || platform == "rocm" || platform == "gpu" || platform == "CUDA" || platform == "ROCM")
    return DeviceKind::gpu;
  if (platform == "tpu") return DeviceKind::tpu;
  return platform == "cpu" || platform == "Host" ? DeviceKind::plugin : kind_of_name(name);
}

/// A plugin, or why it is none.
struct Known {
  std::string name, path, problem;
  std::vector<std::string> other_names = {};  // further names under which it was loaded
  bool is_named(std::string_view asked) const {
    return name == asked || std::ranges::find(other_names, asked) != other_names.end();
  }
  std::unique_ptr<const pjrt::Plugin> plugin;
  std::unique_ptr<const pjrt::Session> session;
  std::vector<Device> devices;
};

std::string model_of(const PluginDevice& device) try {
  return device.session.description_of(device.handle);
} catch (const pjrt::Refused&) { return "unknown"; }

class Registry final : public DeviceFinder {
 public:
  static Registry& all() {
    static auto* only = new Registry;
    return *only;
  }

  /// The plugin of this file; loads it unless that was done. It is known by every name under which it was loaded.
  const Known& load(const std::string& name, const std::string& path) {
    const std::lock_guard lock(guard_);
    for (const auto& known : known_)
      require(!known->is_named(name) || !known->problem.empty() || is_file_of(*known, path), "load_plugin: `", name,
              "` is the name of another plugin, ", known->path, ": take another name for ", path);
    const Known& loaded = load_now(name, path);
    if (loaded.is_named(name)) return loaded;
    for (const auto& known : known_)
      if (known.get() == &loaded) known->other_names.push_back(name);
    return loaded;
  }

  void find(DeviceKind kind) override {
    const std::lock_guard lock(guard_);
    look_for_files();
    // The plugin that GRADUS_DEVICE names comes first, since the default device is its first one.
    std::ranges::stable_partition(files_, [](const PluginFile& file) { return file.name == asked_device().name; });
    for (const PluginFile& file : files_)
      if (kind_of_name(file.name) == kind || is_named_by_user(file)) load_if_first_of_name(file);
  }
  /// Every plugin that can be found.
  void find_all() {
    for (const DeviceKind kind : device_kinds)
      if (kind != DeviceKind::cpu) find_devices(kind);
    const std::lock_guard lock(guard_);
    look_for_files();
    for (const PluginFile& file : files_) load_if_first_of_name(file);
  }
  /// The plugin of this name, if there is one; loads it.
  const Known* named(std::string_view name) {
    const std::lock_guard lock(guard_);
    look_for_files();
    for (const PluginFile& file : files_)
      if (file.name == name) load_if_first_of_name(file);
    const Known* found = nullptr;
    for (const auto& known : known_)
      if (known->is_named(name) && (!found || !found->problem.empty())) found = known.get();
    return found;
  }
  std::vector<std::string> names() {
    const std::lock_guard lock(guard_);
    look_for_files();
    std::vector<std::string> all;
    for (const PluginFile& file : files_) all.push_back(file.name);
    for (const auto& known : known_) {
      all.push_back(known->name);
      all.insert(all.end(), known->other_names.begin(), known->other_names.end());
    }
    std::ranges::sort(all);
    all.erase(std::ranges::unique(all).begin(), all.end());
    return all;
  }

  std::string problems(DeviceKind kind) const override {
    const std::lock_guard lock(guard_);
    std::string all;
    for (const auto& known : known_)
      if (!known->problem.empty() && (kind_of_name(known->name) == kind || known->name == asked_device().name))
        all += "; " + known->problem;
    const std::string& asked = asked_device().name;
    if (const std::string_view first = std::string_view(asked).substr(0, asked.find(':')); first.size() < asked.size())
      return all + text("; GRADUS_DEVICE is `", asked, "`: behind ", first, ": stands the number of a device, 0 to ",
                        Device::most - 1);
    if (kind != DeviceKind::plugin || asked.empty()) {
      const bool is_known =
          std::ranges::any_of(known_, [&](const auto& known) { return kind_of_name(known->name) == kind; });
      return is_known
                 ? all
                 : text(all, "; no plugin for it was found: install one (docs/accelerators.md says which",
                        kind == DeviceKind::gpu ? "; for NVIDIA `pip install \"jax[cuda13]\"`" : "",
                        "), or name its file in PJRT_NAMES_AND_LIBRARY_PATHS; `gradus devices` lists what was found");
    }
    const auto found = std::ranges::find_if(known_, [&](const auto& known) { return known->is_named(asked); });
    if (found == known_.end()) {
      all += text("; GRADUS_DEVICE names `", asked, "`, which is neither a device nor a plugin that was found",
                  known_.empty() ? "" : ": these are ");
      for (std::size_t k = 0; k < known_.size(); ++k) all += text(k ? ", " : "", known_[k]->name);
    } else if (!(*found)->devices.empty() && (*found)->devices.front().kind != DeviceKind::plugin) {
      all += text("; GRADUS_DEVICE names `", asked, "`, whose devices are of another kind: write ",
                  (*found)->devices.front());
    }
    return all;
  }

  MemoryUse memory_use(const Device& device) override {
    MemoryUse use = device_of_plugin(device).account.use();
    return use;
  }
  void reset_peak_memory(const Device& device) override { device_of_plugin(device).account.reset_peak(); }
  void set_memory_limit(const Device& device, std::size_t bytes) override {
    device_of_plugin(device).account.set_limit(bytes);
  }

  PluginDevice* device(const Device& device) const {
    if (device.index < 0 || device.index >= Device::most) return nullptr;
    return devices_[number_of(device.kind)][static_cast<std::size_t>(device.index)].load(std::memory_order_acquire);
  }
  std::vector<PluginInfo> list() const {
    const std::lock_guard lock(guard_);
    std::vector<PluginInfo> all;
    for (const auto& known : known_) {
      PluginInfo info{.name = known->name, .path = known->path, .problem = known->problem};
      if (known->plugin) info.api_version = known->plugin->api_version();
      if (known->session) {
        info.platform = known->session->platform();
        info.platform_version = known->session->platform_version();
      }
      for (const Device& each : known->devices) {
        PluginDevice& there = *device(each);
        info.devices.push_back({each, model_of(there), there.account.use().limit_bytes});
      }
      all.push_back(std::move(info));
    }
    return all;
  }

 private:
  Registry() { set_device_finder(*this); }

  void look_for_files() {
    if (std::exchange(has_looked_, true)) return;
    files_ = plugin_files();
  }
  static bool is_named_by_user(const PluginFile& file) {
    return file.found_in == "PJRT_NAMES_AND_LIBRARY_PATHS" && kind_of_name(file.name) == DeviceKind::plugin;
  }
  /// One of two files of one name is used, as those of CUDA 12 and 13.
  void load_if_first_of_name(const PluginFile& file) {
    for (const auto& known : known_)
      if (known->is_named(file.name) && (known->problem.empty() || known->path == file.path.string())) return;
    if (file.problem.empty()) {
      load_now(file.name, file.path.string());
      return;
    }
    auto wrong = std::make_unique<Known>();
    wrong->name = file.name;
    wrong->path = file.path.string();
    wrong->problem = file.problem;
    known_.push_back(std::move(wrong));
  }

  static bool is_file_of(const Known& known, const std::string& path) {
    std::error_code ignored;
    return known.path == path || std::filesystem::equivalent(known.path, path, ignored);
  }
  const Known& load_now(const std::string& name, const std::string& path) {
    const auto found = std::ranges::find_if(known_, [&](const auto& known) { return is_file_of(*known, path); });
    if (found != known_.end() && (*found)->problem.empty()) return **found;
    auto made = std::make_unique<Known>();
    made->name = name;
    made->path = path;
    try {
      start(*made);
    } catch (const Error& error) { made->problem = error.what(); }
    Known& kept = *made;
    if (found != known_.end()) *found = std::move(made);  // it failed before
    else known_.push_back(std::move(made));
    return kept;
  }

  void start(Known& known) {
    before_loading(known.name, known.path);
    known.plugin = std::make_unique<const pjrt::Plugin>(known.name, known.path);
    known.session = make_session(*known.plugin);
    const std::vector<pjrt::Option> flags = compilation_flags(known.path);
    const DeviceKind kind = kind_of_platform(known.session->platform(), known.name);
    require<Unavailable>(!known.session->devices().empty(), "plugin ", known.name, ": it has no devices");
    std::vector<std::unique_ptr<PluginDevice>> made;  // all of them, or the plugin is none
    int& count = counts_[number_of(kind)];
    for (pjrt::Device* const handle : known.session->devices())
      if (const int index = count + static_cast<int>(made.size()); index < Device::most)
        made.push_back(std::make_unique<PluginDevice>(Device{kind, index}, *known.session, handle, flags));
    require<Unavailable>(!made.empty(), "plugin ", known.name, ": there are ", count, " devices of kind ", kind,
                         " already, of which a process has at most ", Device::most);
    for (std::unique_ptr<PluginDevice>& each : made) {
      known.devices.push_back(each->device);
      devices_[number_of(kind)][static_cast<std::size_t>(count++)].store(each.release(), std::memory_order_release);
    }
    register_backend(kind, backend_of_kind(kind), count);
  }

  mutable std::recursive_mutex guard_;  // guards the members below except devices_
  bool has_looked_ = false;
  std::vector<PluginFile> files_;
  std::vector<std::unique_ptr<Known>> known_;
  std::array<int, kinds> counts_{};
  std::array<std::array<std::atomic<PluginDevice*>, Device::most>, kinds> devices_{};
};

const bool has_registry = (Registry::all(), true);

}  // namespace

PluginDevice& device_of_plugin(const Device& device) {
  PluginDevice* const found = Registry::all().device(device);
  if (!found) [[unlikely]] {
    require_present(device);
    throw Unavailable(text("device ", device, ": it is no device of a plugin"));
  }
  return *found;
}

std::vector<PluginDevice*> devices_of_plugins(DeviceKind kind) {
  std::vector<PluginDevice*> all;
  for (int i = 0; i < Device::most; ++i) {
    PluginDevice* const there = Registry::all().device({kind, i});
    if (!there) break;
    all.push_back(there);
  }
  return all;
}

}  // namespace gradus::xla

namespace gradus {

std::vector<Device> load_plugin(const std::string& path, const std::string& name) {
  require(!name.empty() && name.find_first_of(":,") == std::string::npos, "load_plugin: `", name,
          "` is no name: write letters and digits, as in xla");
  for (const DeviceKind kind : device_kinds)
    require(name != text(kind) && name != "cuda", "load_plugin: `", name, "` is the name of a kind of devices");
  const xla::Known& known = xla::Registry::all().load(name, path);
  require<Unavailable>(known.problem.empty(), known.problem);
  return known.devices;
}

Device device_named(std::string_view name) {
  const std::size_t colon = name.find(':');
  const std::string first(name.substr(0, colon));
  int index = 0;
  if (colon != std::string_view::npos) {
    const std::string_view number = name.substr(colon + 1);
    const auto [end, problem] = std::from_chars(number.data(), number.data() + number.size(), index);
    require(problem == std::errc() && end == number.data() + number.size() && index >= 0 && index < Device::most, "`",
            name, "` is not the name of a device, such as gpu:0");
  }
  for (const DeviceKind kind : device_kinds) {
    if (first != text(kind) && !(first == "cuda" && kind == DeviceKind::gpu)) continue;
    const Device device{kind, index};
    require_present(device);
    return device;
  }
  const xla::Known* const known = xla::Registry::all().named(first);
  if (!known) {
    std::string names;
    for (const std::string& each : xla::Registry::all().names()) names += ", " + each;
    throw InvalidArgument(text("`", name,
                               "` is neither a device, such as gpu:0, nor a plugin; known are cpu, gpu, tpu, "
                               "plugin",
                               names));
  }
  require<Unavailable>(known->problem.empty(), known->problem);
  require<Unavailable>(static_cast<std::size_t>(index) < known->devices.size(), "device ", name, ": plugin ", first,
                       " has ", known->devices.size(), " devices");
  return known->devices[static_cast<std::size_t>(index)];
}

std::vector<Device> devices(std::string_view name) {
  const Device first = device_named(name);
  if (name.find(':') != std::string_view::npos) return {first};
  for (const DeviceKind kind : device_kinds)
    if (name == text(kind) || (name == "cuda" && kind == DeviceKind::gpu)) return devices(kind);
  return xla::Registry::all().named(std::string(name))->devices;
}

std::vector<PluginInfo> plugins() {
  xla::Registry::all().find_all();
  return xla::Registry::all().list();
}

}  // namespace gradus
