/// Any bytes are a file of named arrays or a DataError: never a crash, never memory that the bytes do not pay for.
#include <cstddef>
#include <cstdint>
#include <span>
#include "gradus/base/error.h"
#include "gradus/formats/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    gradus::parse_safetensors(std::as_bytes(std::span(data, size)), "fuzzed");
  } catch (const gradus::Error&) {}
  return 0;
}
