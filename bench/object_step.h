/// A training step as an object file, against the library's own on one thread: which takes longer, and whether both
/// have the same losses.
#pragma once
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>
#include "bench/measurement.h"
#include "gradus/function/object_files.h"
#include "gradus/graph/tensor.h"

namespace gradus::bench {

/// Set by the command line.
inline bool measures_object = false;
/// If not empty: the step is not measured, but written there as StableHLO.
inline std::string stablehlo_file;

/// The object, linked to a shared library and loaded.
class LoadedStep {
 public:
  explicit LoadedStep(const ObjectFiles& files) {
    const std::string library = files.object.string() + ".so";
    const std::string link = "ld -shared -z noexecstack -o " + library + " " + files.object.string() + " -lc";
    require<Unavailable>(std::system(link.c_str()) == 0, "bench: the object cannot be linked");
    handle_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    require<Unavailable>(handle_ != nullptr, "bench: ", library, " cannot be loaded");
    run_ = reinterpret_cast<Run*>(dlsym(handle_, "step"));
    state_ = std::aligned_alloc(std::size_t{2} << 20, most_bytes);
    require<ResourceExhausted>(state_ != nullptr, "bench: no memory for the state");
    madvise(state_, most_bytes, MADV_HUGEPAGE);  // as the library's own memory
    reinterpret_cast<void (*)(void*)>(dlsym(handle_, "step_init"))(state_);
  }
  LoadedStep(const LoadedStep&) = delete;
  ~LoadedStep() {
    std::free(state_);
    dlclose(handle_);
  }
  float operator()(const void* x, const void* y) const { return run_(state_, x, y); }

 private:
  static constexpr std::size_t most_bytes = std::size_t{1} << 30;  // only what is used is taken
  using Run = float(void*, const void*, const void*);
  void* handle_ = nullptr;
  Run* run_ = nullptr;
  void* state_ = nullptr;
};

/// A hundred steps of both, in pairs: medians.
Figures measure_object(const auto& step, const Tensor& x, const Tensor& y) {
  constexpr int steps = 100;
  const auto folder = std::filesystem::temp_directory_path() / ("gradus_bench_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const LoadedStep object(step.export_object(folder / "step", {x.spec(), y.spec()}));
  std::filesystem::remove_all(folder);
  const void *const rows = x.observed().host(), *const labels = y.observed().host();
  std::vector<double> library_s, object_s;
  bool same = true;
  for (int k = 0; k < steps; ++k) {
    const double start = seconds_now();
    const auto ours = static_cast<float>(step(x, y).item());
    const double between = seconds_now();
    const float theirs = object(rows, labels);
    const double end = seconds_now();
    library_s.push_back(between - start), object_s.push_back(end - between);
    same = same && std::memcmp(&ours, &theirs, sizeof ours) == 0;
  }
  const auto median = [](std::vector<double> all) {
    std::ranges::nth_element(all, all.begin() + std::ssize(all) / 2);
    return all[all.size() / 2];
  };
  Figures figures;
  figures.median_us = median(object_s) * 1e6, figures.min_us = std::ranges::min(object_s) * 1e6;
  figures.extra["library_us"] = median(library_s) * 1e6;
  figures.extra["library_min_us"] = std::ranges::min(library_s) * 1e6;
  figures.extra["ratio"] = median(object_s) / median(library_s);
  figures.extra["ratio_of_mins"] = std::ranges::min(object_s) / std::ranges::min(library_s);
  figures.extra["steps_with_the_same_loss"] = same ? steps : 0;
  return figures;
}

}  // namespace gradus::bench
