/// Any bytes are a file of Keras or a DataError: never a crash, never memory that the bytes do not pay for. The first
/// byte says what the others are: an archive, its config.json alone, that of a graph, or its weights.
#include <cstddef>
#include <cstdint>
#include <span>
#include "gradus/base/error.h"
#include "gradus/formats/hdf5.h"
#include "gradus/train/keras_config.h"
#include "gradus/train/keras_files.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::span contents(data + 1, size - 1);
  try {
    if (data[0] == 'a') {
      gradus::parse_model(std::as_bytes(contents), "fuzzed");
    } else if (data[0] == 'c') {
      const std::string_view json(reinterpret_cast<const char*>(contents.data()), contents.size());
      gradus::ConfiguredModel read = gradus::model_of_config(json, "fuzzed", {});
      read.model.build(read.input);
    } else if (data[0] == 'g') {
      const std::string_view json(reinterpret_cast<const char*>(contents.data()), contents.size());
      const gradus::ConfiguredGraph read = gradus::graph_model_of_config(json, "fuzzed", {});
      read.layer->ensure_built(read.layer->graph().input_specs);
    } else {
      gradus::parse_hdf5(std::as_bytes(contents), "fuzzed");
    }
  } catch (const gradus::Error&) {}
  return 0;
}
