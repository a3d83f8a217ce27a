// Contents of files: images, sound, records.
#include "gradus/formats/png_writer.h"
#include "python/src/binding.h"

namespace gradus::python {
namespace {

std::span<const std::byte> bytes_of(const nb::bytes& given) {
  return {static_cast<const std::byte*>(given.data()), given.size()};
}
nb::bytes object_of(std::span<const std::byte> bytes) {
  return nb::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

nb::tuple wav_of(const nb::bytes& contents, std::int64_t channels, std::int64_t samples) {
  const Wav found = without_gil([&] {
    return decode_wav(bytes_of(contents), {.desired_channels = channels, .desired_samples = samples}, "decode_wav");
  });
  return nb::make_tuple(found.audio, found.sample_rate);
}

nb::list records_of(const std::string& file) {
  const TfrecordFile records(file);
  nb::list all;
  for (std::int64_t i = 0; i < records.size(); ++i) all.append(object_of(records.record(i)));
  return all;
}

}  // namespace

void bind_files(nb::module_& module) {
  module.def(
      "_decode_image",
      [](const nb::bytes& contents, int channels) {
        return without_gil([&] { return decode_image(bytes_of(contents), "decode_image", channels); });
      },
      "contents"_a, "channels"_a, "The image, uint8 [height, width, channels], of the bytes of a JPEG or PNG file.");
  module.def(
      "_encode_png",
      [](const TensorArg& image) {
        const std::string made = encode_png(image.tensor(), "encode_png");
        return nb::bytes(made.data(), made.size());
      },
      "image"_a);
  module.def("_decode_wav", wav_of, "contents"_a, "channels"_a, "samples"_a);
  module.def(
      "_encode_wav",
      [](const TensorArg& audio, std::int64_t rate) { return object_of(encode_wav(audio.tensor(), rate)); }, "audio"_a,
      "sample_rate"_a);
  module.def("_records", records_of, "file"_a, "The records of a TFRecord file.");
  module.def(
      "_write_records",
      [](const std::string& file, const nb::list& records) {
        std::vector<std::string> all;
        for (const nb::handle each : records) {
          const nb::bytes record = nb::cast<nb::bytes>(each);
          all.emplace_back(record.c_str(), record.size());
        }
        without_gil([&] { write_tfrecord(file, all); });
      },
      "file"_a, "records"_a);
}

}  // namespace gradus::python
