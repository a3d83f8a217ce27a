/// Tables and arrays become slices. Lines and records are read by their number.
#include "gradus/data/files.h"
#include <algorithm>
#include <cstring>
#include <limits>
#include "gradus/base/nearest.h"
#include "gradus/base/hash.h"
#include "gradus/base/rooms.h"
#include "gradus/data/stage.h"
#include "gradus/formats/byte_stream.h"
#include "gradus/formats/gzip.h"
#include "gradus/formats/npy.h"
#include "gradus/formats/npz.h"
#include "gradus/formats/tfrecord.h"

namespace gradus {
namespace {

class LinesStage : public Stage {
 public:
  explicit LinesStage(std::vector<std::byte> text) : Stage({{u8, {any_size}}}), text_(std::move(text)) {
    const std::size_t size = text_.size();
    for (std::size_t begin = 0; begin < size;) {
      const auto end = static_cast<std::size_t>(
          std::find(text_.begin() + static_cast<std::ptrdiff_t>(begin), text_.end(), std::byte{'\n'}) - text_.begin());
      const bool carriage_return = end > begin && end < size && text_[end - 1] == std::byte{'\r'};
      lines_.push_back({begin, end - begin - carriage_return});
      begin = end + 1;
    }
  }
  std::string name() const override { return "from_text_lines"; }
  std::uint64_t identity() const override { return hash_of_bytes(text_); }
  std::uint64_t fingerprint() const override {
    std::uint64_t hash = mix(text_.size(), lines_.size());
    if (lines_.empty()) return hash;
    for (const Line& line : {lines_.front(), lines_.back()})
      hash = hash_of_bytes(std::span(text_).subspan(line.begin, line.bytes), hash);
    return hash;
  }
  std::string_view remedy() const override { return rows_of_source; }
  std::int64_t length(std::int64_t) const override { return std::ssize(lines_); }

 protected:
  std::unique_ptr<Pass> make_pass(std::int64_t) const override { return std::make_unique<LinesPass>(*this); }

 private:
  struct Line {
    std::size_t begin, bytes;
  };
  struct LinesPass : Pass {
    explicit LinesPass(const LinesStage& s) : stage(s) {}
    Tensors at(std::int64_t index) override {
      const Line line = stage.lines_[static_cast<std::size_t>(index)];
      Ref<Buffer> bytes = Buffer::allocate(static_cast<std::int64_t>(line.bytes), "line of a text");
      if (line.bytes > 0) std::memcpy(bytes->data(), stage.text_.data() + line.begin, line.bytes);
      return {Tensor::of_buffer({u8, {static_cast<std::int64_t>(line.bytes)}}, std::move(bytes))};
    }
    const LinesStage& stage;
  };
  const std::vector<std::byte> text_;
  std::vector<Line> lines_;
};

/// Numbers of a label as i32.
Tensor as_label(const Tensor& x, const std::string& place) {
  if (x.dtype() != i64) return x;
  const std::int64_t n = x.shape().size();
  Ref<Buffer> label = Buffer::allocate(n * size_of(i32), "label");
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t value = x.host<std::int64_t>()[i];
    require<DataError>(value == static_cast<std::int32_t>(value), place, ": the label ", value, " is no i32");
    label->data<std::int32_t>()[i] = static_cast<std::int32_t>(value);
  }
  return Tensor::of_buffer({i32, x.shape()}, std::move(label));
}

class RecordsStage : public Stage {
 public:
  RecordsStage(std::shared_ptr<const TfrecordFile> file, std::array<std::string, 2> names)
      : Stage(specs_of(*file, names)), file_(std::move(file)), names_(std::move(names)) {}
  std::string name() const override { return "from_tfrecord"; }
  std::uint64_t identity() const override {
    return mix(file_->checksum(), hash_of(std::string_view(names_[0] + ' ' + names_[1])));
  }
  std::string_view remedy() const override { return rows_of_source; }
  std::int64_t length(std::int64_t) const override { return file_->size(); }

 protected:
  std::unique_ptr<Pass> make_pass(std::int64_t) const override { return std::make_unique<RecordsPass>(*this); }

 private:
  struct RecordsPass : Pass {
    explicit RecordsPass(const RecordsStage& s) : stage(s) {}
    Tensors at(std::int64_t index) override {
      Tensors element = read(*stage.file_, index, stage.names_);
      for (std::size_t field = 0; field < element.size(); ++field)  // scalars are read as [1]
        if (stage.specs()[field].shape.rank() == 0)
          element[field] = Tensor::of_buffer(stage.specs()[field], element[field].host_buffer());
      return element;
    }
    const RecordsStage& stage;
  };

  static Tensors read(const TfrecordFile& file, std::int64_t index, const std::array<std::string, 2>& names) {
    const std::string place = "from_tfrecord: " + file.place_of(index);
    const auto features = parse_example(file.record(index), place);
    Tensors element;
    for (const std::string& name : names) {
      const auto found = features.find(name);
      if (found == features.end()) {
        std::vector<std::string> known;
        for (const auto& [other, x] : features) known.push_back(other);
        throw DataError(text(place, ": there is no feature `", name, "`", did_you_mean(name, known)));
      }
      element.push_back(found->second);
    }
    element[1] = as_label(element[1], place);
    return element;
  }
  /// Sizes that all records share; lists of one number in all of them are scalars.
  static std::vector<Spec> specs_of(const TfrecordFile& file, const std::array<std::string, 2>& names) {
    require<DataError>(file.size() > 0, "from_tfrecord: ", file.name(),
                       ": the file holds no record, so its features are not known");
    std::vector<Spec> specs;
    for (std::int64_t i = 0; i < file.size(); ++i) {
      const Tensors element = read(file, i, names);
      for (std::size_t field = 0; field < element.size(); ++field) {
        const Spec& found = element[field].spec();
        if (i == 0) specs.push_back(found);
        Spec& known = specs[field];
        require<DataError>(found.dtype == known.dtype, "from_tfrecord: ", file.place_of(i), ": feature `", names[field],
                           "` is ", found.dtype, ", in record 0 ", known.dtype);
        if (found.shape != known.shape) known.shape.set(0, any_size);
      }
    }
    for (Spec& spec : specs)
      if (spec.dtype != u8 && spec.shape[0] == 1) spec.shape.erase(0);
    return specs;
  }
  const std::shared_ptr<const TfrecordFile> file_;
  const std::array<std::string, 2> names_;
};

}  // namespace

namespace data {

Dataset<2> from_csv(const std::filesystem::path& file, CsvOptions options) {
  const CsvTable table = load_csv(file, options);
  return from_tensor_slices(table.features, table.label);
}

Pipeline npy_slices(const std::vector<std::filesystem::path>& files) {
  Tensors arrays;
  for (const auto& file : files) arrays.push_back(load_npy(file));
  return slices(arrays);
}

Pipeline npz_slices(const std::filesystem::path& file, const std::vector<std::string>& names) {
  const NamedTensors arrays = load_npz(file);
  std::vector<std::string> known;
  for (const auto& [name, array] : arrays) known.push_back(name);
  Tensors wanted;
  for (const std::string& name : names) {
    const auto found = std::ranges::find(known, name);
    require<DataError>(found != known.end(), "from_npz: ", file.string(), ": there is no array `", name, "`",
                       did_you_mean(name, known));
    wanted.push_back(arrays[static_cast<std::size_t>(found - known.begin())].second);
  }
  return slices(wanted);
}

Dataset<1> from_text_lines(const std::filesystem::path& file) {
  const auto stream = gunzip_if_compressed(open_file(file));
  return Dataset<1>(Pipeline(std::make_shared<LinesStage>(read_to_end(*stream))));
}

Dataset<2> from_tfrecord(const std::filesystem::path& file, std::string_view features, std::string_view label) {
  return Dataset<2>(Pipeline(std::make_shared<RecordsStage>(std::make_shared<const TfrecordFile>(file),
                                                            std::array{std::string(features), std::string(label)})));
}

}  // namespace data
}  // namespace gradus
