// Contents of files: images, sound, records, models of ONNX; hashes of strings.
#include <nanobind/stl/filesystem.h>
#include "gradus/formats/png_writer.h"
#include "gradus/text/string_hashes.h"
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

/// The hash of each of a list of bytes, in eight bytes: FarmHash's, or SipHash's with a key of two numbers.
nb::bytes hashes_of(const nb::list& strings, std::optional<std::array<std::uint64_t, 2>> key) {
  std::vector<std::uint64_t> all;
  for (const nb::handle each : strings) {
    const nb::bytes string = nb::cast<nb::bytes>(each);
    const std::string_view view(string.c_str(), string.size());
    all.push_back(key ? sip_hash(view, *key) : farm_fingerprint(view));
  }
  return object_of(std::as_bytes(std::span(all)));
}

// ---- ONNX

/// The inputs or outputs of a model as tuples of name, shape and dtype; None is an open size, and a shape of any rank.
nb::list ports_of(const std::vector<onnx::Port>& ports) {
  nb::list all;
  for (const onnx::Port& port : ports)
    all.append(nb::make_tuple(port.name, port.shape ? nb::cast(*port.shape) : nb::none(), port.dtype));
  return all;
}

nb::list variables_of(const Variables& variables) {
  nb::list all;
  for (const Variable& variable : variables) all.append(shared_variable(variable));
  return all;
}

/// First dimensions that are open are one size, that of a batch: the symbol that export_onnx gives the first of them.
std::vector<Spec> with_one_batch(std::vector<Spec> specs) {
  int before = 0;
  std::optional<std::int64_t> batch;
  for (Spec& spec : specs)
    for (int d = 0; d < spec.shape.rank(); ++d) {
      if (spec.shape[d] != any_size) continue;
      if (d == 0 && batch) spec.shape.set(0, *batch);
      else if (d == 0) batch = dimension::symbol(before++);
      else ++before;
    }
  return specs;
}

void export_onnx_file(const std::filesystem::path& file, const FunctionArg& f, std::vector<Spec> signature,
                      std::vector<std::string> input_names, std::vector<std::string> output_names, bool one_batch) {
  if (one_batch) signature = with_one_batch(std::move(signature));
  const auto body = [&](std::span<const Tensor> in) {
    return in_python([&] {
      nb::list given;
      for (const Tensor& x : in) given.append(x);
      Tensors all;
      for (const nb::handle each : nb::borrow<nb::sequence>(f.held.get()(*given))) all.push_back(tensor_of(each));
      return all;
    });
  };
  without_gil([&] {
    export_onnx(file, body, signature,
                {.input_names = std::move(input_names), .output_names = std::move(output_names)});
  });
}

void bind_onnx(nb::module_& module) {
  nb::class_<onnx::Model>(module, "_OnnxModel")
      .def_prop_ro("inputs", [](const onnx::Model& self) { return ports_of(self.inputs()); })
      .def_prop_ro("outputs", [](const onnx::Model& self) { return ports_of(self.outputs()); })
      .def_prop_ro("variables", [](const onnx::Model& self) { return variables_of(self.variables()); })
      .def_prop_ro("trainable_variables",
                   [](const onnx::Model& self) { return variables_of(self.trainable_variables()); })
      .def(
          "run",
          [](const onnx::Model& self, const TensorsArg& inputs) {
            const Tensors in = inputs.tensors();
            return without_gil([&] { return self(in); });
          },
          "inputs"_a, "The outputs for these inputs, in order.");
  module.def(
      "_load_onnx",
      [](const std::filesystem::path& file, bool trainable) {
        return without_gil([&] { return onnx::load(file, {.trainable = trainable}); });
      },
      "file"_a, "trainable"_a);
  module.def("_export_onnx", export_onnx_file, "file"_a, "f"_a, "input_signature"_a, "input_names"_a, "output_names"_a,
             "one_batch"_a, "Writes f, which gives a list of tensors, as an ONNX model.");
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
  module.def("_string_hashes", hashes_of, "strings"_a, "key"_a.none() = nb::none());
  bind_onnx(module);
}

}  // namespace gradus::python
