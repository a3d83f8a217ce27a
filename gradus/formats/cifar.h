/// The binary version of CIFAR-10 and CIFAR-100: records of labels, a byte each, and an image of 32 x 32 pixels, whose
/// colours lie one plane after the other.
#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>
#include "gradus/graph/tensor.h"

namespace gradus {

/// The labels of a record.
struct CifarFormat {
  std::int64_t labels = 1;    // number of labels in a record
  std::int64_t label = 0;     // which one is read
  std::int64_t classes = 10;  // bound of that label
};
/// CIFAR-10.
inline constexpr CifarFormat cifar10_format{};
/// CIFAR-100, whose first label is one of 20 superclasses, the second one of 100 classes.
inline constexpr CifarFormat cifar100_format{.labels = 2, .label = 1, .classes = 100};
/// CIFAR-100 with its superclasses.
inline constexpr CifarFormat cifar100_coarse_format{.labels = 2, .label = 0, .classes = 20};

/// The examples of some files.
struct LabelledImages {
  Tensor images;  // u8 [n, 32, 32, 3]
  Tensor labels;  // i32 [n]
};

/// Reads the records of several files, in order. DataError, with file and byte, if one does not hold whole records or
/// has a label that is no class. Unavailable if one cannot be read.
LabelledImages load_cifar(const std::vector<std::filesystem::path>& files, const CifarFormat& format = {});
/// load_cifar for bytes in memory; `name` stands for the file in messages.
LabelledImages parse_cifar(std::span<const std::byte> bytes, const CifarFormat& format = {},
                           const std::string& name = "cifar data");

}  // namespace gradus
