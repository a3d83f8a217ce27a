/// Any bytes are an image or a DataError: never a crash, never memory past the bound on pixels.
#include <cstddef>
#include <cstdint>
#include <span>
#include "gradus/base/error.h"
#include "gradus/formats/image.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::int64_t most_pixels = 1 << 16;
  for (const int channels : {0, 3}) try {
      gradus::decode_image(std::as_bytes(std::span(data, size)), "fuzzed", channels, most_pixels);
    } catch (const gradus::Error&) {}
  return 0;
}
