/// Sources: rows of tensors, numbers, IDX files.
#include <algorithm>
#include <cstring>
#include <limits>
#include "gradus/base/rooms.h"
#include "gradus/data/dataset.h"
#include "gradus/data/rows.h"
#include "gradus/data/stage.h"
#include "gradus/formats/idx.h"

namespace gradus {
namespace {

class SlicesPass : public Pass {
 public:
  explicit SlicesPass(const std::vector<Rows>& arrays) : arrays_(arrays) {}
  Tensors at(std::int64_t index) override {
    Tensors element;
    for (const Rows& rows : arrays_) element.push_back(rows.at(index));
    return element;
  }
  void write(std::span<const std::int64_t> indices, std::span<std::byte* const> out) override {
    for (std::size_t field = 0; field < arrays_.size(); ++field) arrays_[field].gather(indices, out[field]);
  }
  std::optional<ChosenRows> chosen(std::span<const std::int64_t> indices) override {
    ChosenRows chosen{.arrays = {}, .rows = {indices.begin(), indices.end()}};
    for (const Rows& rows : arrays_) chosen.arrays.push_back(rows.array());
    return chosen;
  }
  /// The rows of elements that are batches made by hand.
  std::optional<std::int64_t> rows_of(std::int64_t) override {
    std::optional<std::int64_t> all;
    for (const Rows& rows : arrays_) {
      const Shape& shape = rows.row_spec().shape;
      if (shape.rank() == 0 || (all && *all != shape[0])) return {};
      all = shape[0];
    }
    return all;
  }
  std::optional<Tensors> rows_at(std::int64_t index, RowRange range) override {
    Tensors element;
    for (const Rows& rows : arrays_) {
      Spec spec = rows.row_spec();
      const std::int64_t bytes = bytes_of(spec) / spec.shape[0];
      spec.shape.set(0, range.count());
      Ref<Buffer> copy = Buffer::allocate(bytes_of(spec), "element of a dataset");
      std::memcpy(copy->data(), rows.row(index) + range.begin * bytes, static_cast<std::size_t>(bytes_of(spec)));
      element.push_back(Tensor::of_buffer(spec, std::move(copy)));
    }
    return element;
  }

 private:
  const std::vector<Rows>& arrays_;
};

class SlicesStage : public Stage {
 public:
  explicit SlicesStage(std::vector<Rows> arrays) : Stage(specs_of(arrays)), arrays_(std::move(arrays)) {}
  std::string name() const override { return "from_tensor_slices"; }
  std::uint64_t identity() const override {
    std::uint64_t hash = 0;
    for (const Rows& rows : arrays_) hash = rows.hash(hash);
    return hash;
  }
  /// Hashes the first and the last row only, since there may be many.
  std::uint64_t fingerprint() const override {
    std::uint64_t hash = static_cast<std::uint64_t>(arrays_[0].count());
    for (const Rows& rows : arrays_) hash = rows.hash_of_ends(hash);
    return hash;
  }
  std::string_view remedy() const override { return rows_of_source; }
  std::int64_t length(std::int64_t) const override { return arrays_[0].count(); }
  std::int64_t held_bytes() const override {
    std::int64_t bytes = 0;
    for (const Rows& rows : arrays_) bytes += static_cast<std::int64_t>(rows.array().bytes());
    return bytes;
  }
  std::unique_ptr<Pass> make_pass(std::int64_t) const override { return std::make_unique<SlicesPass>(arrays_); }

 private:
  static std::vector<Spec> specs_of(const std::vector<Rows>& arrays) {
    std::vector<Spec> specs;
    for (const Rows& rows : arrays) specs.push_back(rows.row_spec());
    return specs;
  }
  const std::vector<Rows> arrays_;
};

class RangePass : public Pass {
 public:
  Tensors at(std::int64_t index) override {
    Ref<Buffer> number = Buffer::allocate(sizeof(std::int32_t));
    *number->data<std::int32_t>() = static_cast<std::int32_t>(index);
    return {Tensor::of_buffer({i32, {}}, std::move(number))};
  }
  void write(std::span<const std::int64_t> indices, std::span<std::byte* const> out) override {
    auto* numbers = reinterpret_cast<std::int32_t*>(out[0]);
    for (const std::int64_t index : indices) *numbers++ = static_cast<std::int32_t>(index);
  }
};

class RangeStage : public Stage {
 public:
  explicit RangeStage(std::int64_t n) : Stage({{i32, {}}}), n_(n) {}
  std::string name() const override { return text("range(", n_, ")"); }
  std::int64_t length(std::int64_t) const override { return n_; }
  std::unique_ptr<Pass> make_pass(std::int64_t) const override { return std::make_unique<RangePass>(); }

 private:
  const std::int64_t n_;
};

Tensor tensor_of(IdxArray array) {
  return Tensor::of_buffer({array.dtype, Shape(std::span<const std::int64_t>(array.dims))}, std::move(array.data));
}

/// Integers of any type as i32.
Tensor labels_of(const IdxArray& array, const std::filesystem::path& file) {
  require<DataError>(array.dims.size() == 1 && is_integer(array.dtype), "from_idx: ", file.string(),
                     ": expected labels, integers in one dimension, found ", array.dtype, brackets(Shape(array.dims)),
                     array.dims.size() > 1 ? "; are images and labels exchanged?" : "");
  const std::int64_t count = array.dims[0];
  Ref<Buffer> labels = Buffer::allocate(count * size_of(i32), "labels");
  with_type(array.dtype, [&]<class T>(T) {
    std::ranges::transform(std::span(array.data->data<T>(), static_cast<std::size_t>(count)),
                           labels->data<std::int32_t>(), [](T label) { return static_cast<std::int32_t>(label); });
  });
  return Tensor::of_buffer({i32, {count}}, std::move(labels));
}

}  // namespace

namespace data {

Pipeline slices(const Tensors& tensors) {
  std::vector<Rows> arrays;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i];
    require(tensor.shape().rank() > 0, "from_tensor_slices: tensor ", i, " is a scalar ", tensor.spec(),
            ": it has no rows along axis 0");
    require(tensor.shape()[0] == tensors[0].shape()[0], "from_tensor_slices: tensor ", i, " has ", tensor.shape()[0],
            " rows, tensor 0 has ", tensors[0].shape()[0], ": ", tensor.spec(), " and ", tensors[0].spec());
    arrays.emplace_back(tensor);
  }
  return Pipeline(std::make_shared<SlicesStage>(std::move(arrays)));
}

Dataset<1> range(std::int64_t n) {
  constexpr std::int64_t largest = std::int64_t{std::numeric_limits<std::int32_t>::max()} + 1;
  require(n >= 0 && n <= largest, "range: expected 0 to ", largest, " numbers, which are i32, got ", n);
  return Dataset<1>(Pipeline(std::make_shared<RangeStage>(n)));
}

Dataset<2> from_idx(const std::filesystem::path& images, const std::filesystem::path& labels) {
  IdxArray pictures = read_idx(images);
  require<DataError>(pictures.dims.size() >= 2, "from_idx: ", images.string(),
                     ": expected images, such as u8[60000,28,28], found ", pictures.dtype,
                     brackets(Shape(pictures.dims)), "; are images and labels exchanged?");
  const Tensor classes = labels_of(read_idx(labels), labels);
  require<DataError>(pictures.dims[0] == classes.shape()[0], "from_idx: ", images.string(), " has ", pictures.dims[0],
                     " images, ", labels.string(), " has ", classes.shape()[0], " labels");
  return from_tensor_slices(tensor_of(std::move(pictures)), classes);
}

}  // namespace data
}  // namespace gradus
