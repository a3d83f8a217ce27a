/// Any bytes are records of CIFAR or a DataError. The first byte tells which kind; the longest input holds one record.
#include <cstddef>
#include <cstdint>
#include <span>
#include "gradus/base/error.h"
#include "gradus/formats/cifar.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  constexpr gradus::CifarFormat formats[] = {gradus::cifar10_format, gradus::cifar100_format,
                                             gradus::cifar100_coarse_format};
  try {
    gradus::parse_cifar(std::as_bytes(std::span(data, size)).subspan(1), formats[data[0] % 3]);
  } catch (const gradus::Error&) {}
  return 0;
}
