/// Any bytes are an idx array or a DataError, plain or gzip: never a crash, never memory that the bytes do not pay for.
#include <cstddef>
#include <cstdint>
#include <span>
#include "gradus/base/error.h"
#include "gradus/formats/idx.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    gradus::parse_idx(std::as_bytes(std::span(data, size)));
  } catch (const gradus::Error&) {}
  return 0;
}
