#include "gradus/backend/xla/client_options.h"
#include <dlfcn.h>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>
#include "gradus/backend/xla/plugin_files.h"
#include "gradus/base/input_file.h"
#include "gradus/base/library_file.h"

namespace gradus::xla {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

/// site-packages/nvidia, for site-packages/jax_plugins/xla_cuda13/xla_cuda_plugin.so.
fs::path nvidia_packages(const std::string& plugin) {
  std::error_code ignored;
  const fs::path real = fs::weakly_canonical(plugin, ignored);
  const fs::path packages = real.parent_path().parent_path().parent_path() / "nvidia";
  return fs::is_directory(packages, ignored) ? packages : fs::path();
}

struct Libraries {
  const char* package;
  std::vector<const char*> files;
};
/// In the order of jax_plugins/xla_cuda*/__init__.py: later ones find earlier ones by name.
const Libraries of_nvidia[] = {
    {"cuda_runtime", {"libcudart.so.12"}},
    {"cu13", {"libcudart.so.13"}},
    {"cuda_nvrtc", {"libnvrtc.so.12"}},
    {"cu13", {"libnvrtc.so.13"}},
    {"cublas", {"libcublasLt.so.12", "libcublas.so.12"}},
    {"cu13", {"libcublasLt.so.13", "libcublas.so.13"}},
    {"nccl", {"libnccl.so.2"}},
    {"cuda_cupti", {"libcupti.so.12"}},
    {"cu13", {"libcupti.so.13"}},
    {"nvjitlink", {"libnvJitLink.so.12"}},
    {"cu13", {"libnvJitLink.so.13"}},
    {"cusparse", {"libcusparse.so.12"}},
    {"cu13", {"libcusparse.so.12"}},
    {"cusolver", {"libcusolver.so.11"}},
    {"cu13", {"libcusolver.so.12"}},
    {"cufft", {"libcufft.so.11"}},
    {"cu13", {"libcufft.so.12"}},
    {"nvshmem", {"libnvshmem_host.so.3"}},
    {"cudnn", {"libcudnn.so.9"}},
};

std::vector<pjrt::Option> options_of_gpus() {
  std::vector<pjrt::Option> options{{"platform_name", std::string("cuda")}};
  const std::string preallocate = environment("XLA_PYTHON_CLIENT_PREALLOCATE");
  options.push_back({"preallocate", preallocate == "1" || preallocate == "true" || preallocate == "True"});
  if (const std::string allocator = environment("XLA_PYTHON_CLIENT_ALLOCATOR"); !allocator.empty())
    options.push_back({"allocator", allocator});
  if (const std::string fraction = environment("XLA_CLIENT_MEM_FRACTION"); !fraction.empty()) {
    float share = 0;
    const auto [end, problem] = std::from_chars(fraction.data(), fraction.data() + fraction.size(), share);
    require<Unavailable>(problem == std::errc() && end == fraction.data() + fraction.size() && share > 0,
                         "XLA_CLIENT_MEM_FRACTION: `", fraction, "` is not a share of memory, such as 0.75");
    options.push_back({"memory_fraction", share});
  }
  return options;
}

/// libtpu asks for the machine's metadata, for minutes, where there is no TPU.
bool has_tpu() {
  constexpr std::string_view vendor = "0x1ae0";  // of PCI devices: Google
  std::error_code problem;
  for (fs::directory_iterator it("/sys/bus/pci/devices", problem), end; !problem && it != end; it.increment(problem))
    try {
      if (read_text_file(it->path() / "vendor").starts_with(vendor)) return true;
    } catch (const Error&) {}  // one that cannot be read
  return false;
}

constexpr int fewest_threads = 16;

/// The variable that says how many threads a client has.
const char* variable_of_threads() { return environment("PJRT_NPROC").empty() ? "NPROC" : "PJRT_NPROC"; }

}  // namespace

int threads_of_client() {
  const std::string written = environment(variable_of_threads());
  int threads = 0;
  std::from_chars(written.data(), written.data() + written.size(), threads);
  return threads > 0 ? threads : static_cast<int>(std::thread::hardware_concurrency());
}

void before_loading(const std::string& name, const std::string& path) {
  if (kind_of_name(name) == DeviceKind::tpu && is_file(path))
    require<Unavailable>(has_tpu() || !environment("TPU_SKIP_MDS_QUERY").empty(), "plugin ", name, ": ", path,
                         " is there, but this machine has no TPU");
  setenv("TF_CPP_MIN_LOG_LEVEL", "2", 0);  // else plugins log most of their calls
  // Replicas of a program wait for each other in threads of the client.
  if (threads_of_client() < fewest_threads && environment(variable_of_threads()).empty())
    setenv("PJRT_NPROC", std::to_string(fewest_threads).c_str(), 0);
  const fs::path packages = nvidia_packages(path);
  if (packages.empty()) return;
  for (const Libraries& each : of_nvidia)
    for (const char* file : each.files)
      if (const fs::path library = packages / each.package / "lib" / file; is_file(library)) {
        const std::string problem = why_cut_off(library);
        require<Unavailable>(problem.empty(), "plugin ", name, ": ", problem);
        dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);  // if it fails, the plugin names what it lacks
      }
}

std::unique_ptr<const pjrt::Session> make_session(const pjrt::Plugin& plugin) {
  std::vector<pjrt::Option> options;
  const auto start = [&] { return std::make_unique<const pjrt::Session>(plugin, options); };
  if (kind_of_name(plugin.name()) == DeviceKind::gpu || plugin.path().find("cuda") != std::string::npos)
    options = options_of_gpus();
  // Another version may not know an option: the least important ones go first.
  for (; !options.empty(); options.erase(options.begin())) try {
      return start();
    } catch (const pjrt::Refused& refused) {
      if (refused.code() != pjrt::Code::invalid_argument) throw;
    }
  return start();
}

std::vector<pjrt::Option> compilation_flags(const std::string& path) {
  const fs::path packages = nvidia_packages(path);
  if (packages.empty()) return {};
  for (const char* package : {"cu13", "cuda_nvcc"})
    if (is_file(packages / package / "nvvm" / "libdevice" / "libdevice.10.bc"))
      return {{"xla_gpu_cuda_data_dir", (packages / package).string()}};
  return {};
}

}  // namespace gradus::xla
