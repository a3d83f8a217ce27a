/// Fashion-MNIST from its files, as the peers read it: FASHION_MNIST_DIR, or the folder of Debian's package.
#pragma once
#include <cstdlib>
#include <filesystem>
#include "gradus/data/dataset.h"
#include "gradus/ops/elementwise.h"

namespace gradus::bench {

/// u8 [28, 28] and i32 scalars; `part`: train or t10k.
inline Dataset<2> fashion_mnist(const std::string& part) {
  const char* given = std::getenv("FASHION_MNIST_DIR");
  const std::filesystem::path directory = given ? given : "/usr/share/datasets/fashion-mnist";
  return data::from_idx(directory / (part + "-images-idx3-ubyte.gz"), directory / (part + "-labels-idx1-ubyte.gz"));
}

inline Tensor normalized(const Tensor& images) { return (cast(images, f32) * (1 / 255.0) - 0.2860) * (1 / 0.3530); }

}  // namespace gradus::bench
