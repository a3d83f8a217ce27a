/// The module of an object file that is its own: the tables of the step, data, and the functions that programs call.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>
#include "gradus/backend/cpu/isa.h"
#include "gradus/backend/cpu/run/data_image.h"

namespace gradus::cpu_backend {

/// The return type of the function in C: that of its first result, or none.
enum class Returns { nothing, f32, f64 };

struct ObjectModule {
  struct Step {
    std::string name;  // of its function
    int pointers = 0;  // parameters behind the state
    Returns returns = Returns::nothing;
    std::shared_ptr<const DataImage> step = {};
  };
  std::string name;  // of NAME_init, NAME_supported
  std::vector<Step> steps;
  std::shared_ptr<const DataImage> init;
  std::map<std::string, std::shared_ptr<const DataImage>> named;  // that kernels know by these names
  std::function<std::string(KernelFunction)> symbol_of;
};

/// Its object file.
std::string object_of_module(const ObjectModule& made, Isa isa);

}  // namespace gradus::cpu_backend
