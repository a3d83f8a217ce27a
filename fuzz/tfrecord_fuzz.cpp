/// Any bytes are records, and any record an example, or a DataError. Checksums would stop nearly every input, so the
/// bytes are parsed as an example by themselves, too.
#include <cstddef>
#include <cstdint>
#include <span>
#include "gradus/base/error.h"
#include "gradus/formats/tfrecord.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  try {
    for (const auto& record : gradus::parse_tfrecord(bytes, "fuzzed")) gradus::parse_example(record, "fuzzed");
  } catch (const gradus::Error&) {}
  try {
    gradus::parse_example(bytes, "fuzzed");
  } catch (const gradus::Error&) {}
  return 0;
}
