/// Data sets that many papers use, from local copies in the formats in which they were published. Nothing is
/// downloaded.
#pragma once
#include <filesystem>
#include "gradus/data/dataset.h"

namespace gradus::data {

/// The two parts of a published data set.
struct TrainAndTest {
  Dataset<2> train;  // examples to train with
  Dataset<2> test;   // examples to test with
};

/// MNIST: 60,000 and 10,000 images of digits, u8 [28, 28], and their classes as i32 scalars. `folder` holds
/// train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, each plain or
/// as `.gz`, or Keras's mnist.npz. Unavailable, with the expected names, if the files are missing. DataError for a
/// damaged file, images of another size, and labels that are no class.
TrainAndTest mnist(const std::filesystem::path& folder);
/// Fashion-MNIST, whose files have the names of MNIST's.
TrainAndTest fashion_mnist(const std::filesystem::path& folder);

/// CIFAR-10: 50,000 and 10,000 images, u8 [32, 32, 3], and their classes as i32 scalars. `folder` holds the binary
/// version, data_batch_1.bin to data_batch_5.bin and test_batch.bin, or the folder cifar-10-batches-bin with them.
/// Errors as mnist. The Python version is not read: a pickle can run any code.
TrainAndTest cifar10(const std::filesystem::path& folder);

/// The two labels of an image of CIFAR-100.
enum class Cifar100Labels {
  fine,    // 100 classes
  coarse,  // 20 superclasses
};
/// CIFAR-100, as cifar10, from train.bin and test.bin, or the folder cifar-100-binary with them.
TrainAndTest cifar100(const std::filesystem::path& folder, Cifar100Labels labels = Cifar100Labels::fine);

}  // namespace gradus::data
