/// Finds the files under the names that they were published with, and checks that they are what they are called.
#include "gradus/data/published.h"
#include <algorithm>
#include "gradus/base/nearest.h"
#include "gradus/base/rooms.h"
#include "gradus/formats/cifar.h"
#include "gradus/formats/idx.h"
#include "gradus/formats/npz.h"

namespace gradus::data {
namespace {

namespace fs = std::filesystem;

/// The first of these that is a file in `folder`; empty: none is.
fs::path find_first(const fs::path& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    std::error_code problem;
    if (fs::is_regular_file(folder / name, problem)) return folder / name;
  }
  return {};
}

fs::path require_file(std::string_view set, const fs::path& folder, const std::string& name,
                      const std::string& otherwise) {
  const fs::path found = find_first(folder, {name, name + ".gz"});
  require<Unavailable>(!found.empty(), set, ": ", folder.string(), " holds neither ", name, " nor ", otherwise);
  return found;
}

/// Integers of any type as i32 [n], each a class.
Tensor as_classes(std::string_view set, const Tensor& labels, std::int64_t classes, const std::string& file) {
  const Spec spec{labels.dtype(), labels.shape()};
  require<DataError>(spec.shape.rank() == 1 && is_integer(spec.dtype), set, ": ", file, ": expected labels, found ",
                     spec);
  Ref<Buffer> buffer = Buffer::allocate(spec.shape[0] * size_of(i32), "labels");
  with_type(spec.dtype, [&]<class T>(T) {
    for (std::int64_t i = 0; i < spec.shape[0]; ++i) {
      const auto label = static_cast<std::int64_t>(static_cast<const T*>(labels.host())[i]);
      require<DataError>(label >= 0 && label < classes, set, ": ", file, ": label ", i, " is ", label,
                         ", but there are ", classes, " classes");
      buffer->data<std::int32_t>()[i] = static_cast<std::int32_t>(label);
    }
  });
  return Tensor::of_buffer({i32, {spec.shape[0]}}, std::move(buffer));
}

/// Images of digits and their labels. `files` names where they are from.
Dataset<2> digits(std::string_view set, const Tensor& images, const Tensor& labels, const std::string& files) {
  const Spec spec{images.dtype(), images.shape()};
  require<DataError>(spec.dtype == u8 && spec.shape.rank() == 3 && spec.shape[1] == 28 && spec.shape[2] == 28, set,
                     ": ", files, ": expected images u8[n,28,28], found ", spec);
  const Tensor classes = as_classes(set, labels, 10, files);
  require<DataError>(classes.shape()[0] == spec.shape[0], set, ": ", files, ": ", spec.shape[0], " images and ",
                     classes.shape()[0], " labels");
  return from_tensor_slices(images, classes);
}

Dataset<2> digits_of_idx(std::string_view set, const fs::path& folder, const std::string& part,
                         const std::string& otherwise) {
  const fs::path images = require_file(set, folder, part + "-images-idx3-ubyte", otherwise);
  const fs::path labels = require_file(set, folder, part + "-labels-idx1-ubyte", otherwise);
  return digits(set, load_idx(images), load_idx(labels), images.string() + " and " + labels.filename().string());
}

const Tensor& array_of(std::string_view set, const NamedTensors& arrays, const std::string& name,
                       const fs::path& file) {
  std::vector<std::string> known;
  for (const auto& [other, array] : arrays) {
    if (other == name) return array;
    known.push_back(other);
  }
  throw DataError(text(set, ": ", file.string(), ": there is no array `", name, "`", did_you_mean(name, known)));
}

TrainAndTest digits_from(std::string_view set, const fs::path& folder, const std::string& archive) {
  if (const fs::path file = find_first(folder, {archive}); !file.empty()) {
    const NamedTensors arrays = load_npz(file);
    const auto part = [&](const std::string& name) {
      return digits(set, array_of(set, arrays, "x_" + name, file), array_of(set, arrays, "y_" + name, file),
                    file.string());
    };
    return {part("train"), part("test")};
  }
  return {digits_of_idx(set, folder, "train", archive), digits_of_idx(set, folder, "t10k", archive)};
}

Dataset<2> cifar(std::string_view set, const fs::path& folder, const std::string& inner,
                 const std::vector<std::string>& names, const CifarFormat& format) {
  std::vector<fs::path> files;
  for (const std::string& name : names) {
    const fs::path found = find_first(folder, {name, inner + "/" + name});
    require<Unavailable>(!found.empty(), set, ": ", folder.string(), " holds neither ", name, " nor ", inner, "/", name,
                         "; expected the files of the binary version");
    files.push_back(found);
  }
  const LabelledImages read = load_cifar(files, format);
  return from_tensor_slices(read.images, read.labels);
}

}  // namespace

TrainAndTest mnist(const fs::path& folder) { return digits_from("mnist", folder, "mnist.npz"); }
TrainAndTest fashion_mnist(const fs::path& folder) { return digits_from("fashion_mnist", folder, "fashion_mnist.npz"); }

TrainAndTest cifar10(const fs::path& folder) {
  std::vector<std::string> train;
  for (int i = 1; i <= 5; ++i) train.push_back(text("data_batch_", i, ".bin"));
  const std::string inner = "cifar-10-batches-bin";
  return {cifar("cifar10", folder, inner, train, cifar10_format),
          cifar("cifar10", folder, inner, {"test_batch.bin"}, cifar10_format)};
}

TrainAndTest cifar100(const fs::path& folder, Cifar100Labels labels) {
  const CifarFormat format = labels == Cifar100Labels::fine ? cifar100_format : cifar100_coarse_format;
  const std::string inner = "cifar-100-binary";
  return {cifar("cifar100", folder, inner, {"train.bin"}, format),
          cifar("cifar100", folder, inner, {"test.bin"}, format)};
}

}  // namespace gradus::data
