/// Any bytes are a WAV file or a DataError: never a crash, never memory that the bytes do not pay for.
#include <cstddef>
#include <cstdint>
#include <span>
#include "gradus/base/error.h"
#include "gradus/formats/wav.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const gradus::Wav wav = gradus::decode_wav(std::as_bytes(std::span(data, size)));
    gradus::encode_wav(wav.audio, 1);
  } catch (const gradus::Error&) {}
  return 0;
}
