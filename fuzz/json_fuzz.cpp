/// Fuzz target: JSON. What is read is what the plain parser reads, comes back as it was written, and is not deep; all
/// else is a DataError.
#include <cstdint>
#include <cstdlib>
#include "gradus/base/error.h"
#include "gradus/formats/json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view written(reinterpret_cast<const char*>(data), size);
  try {
    const nlohmann::json read = gradus::parse_json(written, "fuzzed");
    if (read != nlohmann::json::parse(written)) std::abort();
    if (gradus::parse_json(read.dump(), "again") != read) std::abort();
  } catch (const gradus::DataError&) {}
  return 0;
}
