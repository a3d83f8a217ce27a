/// Any bytes are an ONNX model or an Error: never a crash, never memory that the bytes do not pay for.
#include <cstddef>
#include <cstdint>
#include <span>
#include "gradus/onnx/model.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    gradus::onnx::parse(std::as_bytes(std::span(data, size)), "fuzzed");
  } catch (const gradus::Error&) {}
  return 0;
}
