/// Code of plugins, cached by text: in the process, and in the folder GRADUS_XLA_CACHE if that is set.
#pragma once
#include "gradus/backend/xla/plugin_device.h"

namespace gradus::xla {

struct CompiledCode {
  std::shared_ptr<const StableHloModule> module;
  std::unique_ptr<const pjrt::Loaded> loaded;
  std::int64_t temporary_bytes = 0;
};

/// Code of `module` for these devices. Unavailable, with the plugin's message, if it does not compile.
std::shared_ptr<const CompiledCode> compiled_code(const DeviceGroup& on, std::shared_ptr<const StableHloModule> module);

}  // namespace gradus::xla
