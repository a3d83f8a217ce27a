/// Any text is a configuration or a ConfigError; a configuration written back reads the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include "apps/gradus/config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string resolved;
  try {
    resolved = gradus::command::to_toml(
        gradus::command::parse_config(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz.toml"));
  } catch (const gradus::command::ConfigError&) { return 0; }
  if (gradus::command::to_toml(gradus::command::parse_config(resolved, "resolved.toml")) != resolved) std::abort();
  return 0;
}
