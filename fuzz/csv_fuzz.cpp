/// Any text is a table or an Error: never a crash, never memory that the bytes do not pay for.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include "gradus/base/error.h"
#include "gradus/formats/csv.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    gradus::parse_csv(text, "fuzzed", {.label = "c", .missing_value = 0, .categories = {{"b", {}}, {"c", {}}}});
  } catch (const gradus::Error&) {}
  try {
    gradus::parse_csv(text, "fuzzed", {.label = "0", .header = false, .separator = ';'});
  } catch (const gradus::Error&) {}
  return 0;
}
