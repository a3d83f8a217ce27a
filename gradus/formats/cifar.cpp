/// Records are read one by one, so that an image exists only once.
#include "gradus/formats/cifar.h"
#include "gradus/base/error.h"
#include "gradus/base/rooms.h"
#include "gradus/formats/byte_stream.h"

namespace gradus {
namespace {

constexpr std::int64_t side = 32, colours = 3, pixels = side * side, image_bytes = pixels * colours;

/// The records of a file of `size` bytes.
std::int64_t records_in(std::int64_t size, const CifarFormat& format, const std::string& name) {
  const std::int64_t record = format.labels + image_bytes;
  require<DataError>(size > 0 && size % record == 0, name, ": ", size, " bytes are no whole records of ", record,
                     " bytes; expected the binary version of CIFAR-", format.labels == 1 ? "10" : "100",
                     ", not compressed");
  return size / record;
}

class CifarReader {
 public:
  CifarReader(std::int64_t count, const CifarFormat& format)
      : format_(format),
        record_(static_cast<std::size_t>(format.labels + image_bytes)),
        images_({u8, {count, side, side, colours}}),
        labels_({i32, {count}}),
        pixels_(Buffer::allocate(bytes_of(images_), "images of CIFAR")),
        classes_(Buffer::allocate(bytes_of(labels_), "labels of CIFAR")) {}

  void read(ByteStream& stream, std::int64_t count) {
    for (; count > 0; --count, ++made_) {
      const std::int64_t place = stream.position();
      require<DataError>(stream.read(record_) == record_.size(), stream.name(), ": ", stream.place(),
                         ": the file ends within a record");
      const auto label = std::to_integer<std::int32_t>(record_[static_cast<std::size_t>(format_.label)]);
      require<DataError>(label < format_.classes, stream.name(), ": ", stream.place_of(place + format_.label),
                         ": the label is ", label, ", but there are ", format_.classes, " classes");
      classes_->data<std::int32_t>()[made_] = label;
      interleave_planes(record_.data() + format_.labels, pixels_->data<std::byte>() + made_ * image_bytes);
    }
  }
  LabelledImages done() {
    return {Tensor::of_buffer(images_, std::move(pixels_)), Tensor::of_buffer(labels_, std::move(classes_))};
  }

 private:
  static void interleave_planes(const std::byte* planes, std::byte* out) {
    for (std::int64_t pixel = 0; pixel < pixels; ++pixel)
      for (std::int64_t colour = 0; colour < colours; ++colour) *out++ = planes[colour * pixels + pixel];
  }
  const CifarFormat format_;
  std::vector<std::byte> record_;
  const Spec images_, labels_;
  Ref<Buffer> pixels_, classes_;
  std::int64_t made_ = 0;
};

}  // namespace

LabelledImages load_cifar(const std::vector<std::filesystem::path>& files, const CifarFormat& format) {
  std::vector<std::unique_ptr<ByteStream>> streams;
  std::vector<std::int64_t> counts;
  std::int64_t all = 0;
  for (const auto& file : files) {
    streams.push_back(open_file(file));
    counts.push_back(records_in(streams.back()->likely_bytes(), format, streams.back()->name()));
    all += counts.back();
  }
  CifarReader reader(all, format);
  for (std::size_t i = 0; i < streams.size(); ++i) reader.read(*streams[i], counts[i]);
  return reader.done();
}

LabelledImages parse_cifar(std::span<const std::byte> bytes, const CifarFormat& format, const std::string& name) {
  const std::int64_t count = records_in(std::ssize(bytes), format, name);
  CifarReader reader(count, format);
  reader.read(*stream_of(bytes, name), count);
  return reader.done();
}

}  // namespace gradus
