/// Contents of the files: an archive of config.json and model.weights.h5, or the latter alone.
#include "gradus/train/keras_files.h"
#include <array>
#include "gradus/base/floating_point_state.h"
#include "gradus/base/notice.h"
#include "gradus/formats/atomic_file.h"
#include "gradus/formats/hdf5.h"
#include "gradus/base/input_file.h"
#include "gradus/formats/zip.h"
#include "gradus/function/pending.h"
#include "gradus/graph/context.h"
#include "gradus/train/keras_config.h"
#include "gradus/train/keras_weights.h"
#include "gradus/train/model_texts.h"

namespace gradus {
namespace {

using Bytes = std::span<const std::byte>;
constexpr std::string_view weights_part = "model.weights.h5", config_part = "config.json";

void check_ending(std::string_view op, const std::filesystem::path& file, std::string_view ending) {
  require(file.string().ends_with(ending), op, ": ", file.string(), ": Keras reads it only if its name ends in \"",
          ending, "\"");
}

/// The weights as the pieces of a file.
struct WrittenWeights {
  explicit WrittenWeights(const Module& model, std::string_view op)
      : arrays(keras_arrays(model, op)), header(hdf5_header(arrays)) {
    pieces.push_back(std::as_bytes(std::span(header)));
    for (const NamedArray& array : arrays)
      pieces.emplace_back(array.data->data<const std::byte>(), static_cast<std::size_t>(bytes_of(array.spec)));
  }
  WrittenWeights(const WrittenWeights&) = delete;
  std::vector<NamedArray> arrays;
  std::string header;
  std::vector<Bytes> pieces;
};

constexpr std::string_view kind = "model of Keras";

bool is_archive(const PlacedBytes& bytes) {
  std::array<std::byte, 2> first{};
  if (bytes.size >= first.size()) bytes.read(0, first);
  return first == std::array{std::byte{'P'}, std::byte{'K'}};
}

// Zeros are packed a thousand to one, and JSON in memory takes many times its text: a small file could ask for
// gigabytes. Keras packs nothing, and weights that are packed by others, pruned ones too, become a few times smaller.
constexpr std::uint64_t most_config_bytes = std::uint64_t{16} << 20, most_ratio = 100, little = std::uint64_t{64} << 20;

/// A part of an archive, of at most `most` bytes.
std::vector<std::byte> part_of(const ZipReader& zip, std::string_view part, const std::string& name,
                               const std::function<std::uint64_t(const ZipEntry&)>& most) {
  for (const ZipEntry& entry : zip.entries()) {
    if (entry.name != part) continue;
    require<DataError>(entry.unpacked <= most(entry), name, ": `", part, "` has ", entry.packed, " bytes and would be ",
                       entry.unpacked, " unpacked; expected at most ", most(entry),
                       ": if that is what it holds, write it without compression");
    return zip.contents(entry);
  }
  throw DataError(text(name, ": no ", kind, ": `", part, "` is missing"));
}

std::vector<std::byte> config_in(const ZipReader& zip, const std::string& name) {
  return part_of(zip, config_part, name, [](const ZipEntry&) { return most_config_bytes; });
}

std::vector<NamedArray> weights_in(const ZipReader& zip, const std::string& name) {
  const auto most = [](const ZipEntry& entry) { return little + most_ratio * entry.packed; };
  return parse_hdf5(part_of(zip, weights_part, name, most), name + ", " + std::string(weights_part));
}

/// Whatever `work` finds wrong is the file's fault.
void by_the_file(const std::string& name, const std::function<void()>& work) {
  try {
    work();
  } catch (const InvalidArgument& error) {
    throw DataError(text(name, ": ", error.what()));
  } catch (const OutOfRange& error) { throw DataError(text(name, ": ", error.what())); }
}

}  // namespace

void save_weights(const std::filesystem::path& file, const Module& model) {
  const HostFloats floats;
  const Untraced outside;
  check_ending("save_weights", file, ".weights.h5");
  if (const auto texts = text_arrays(model); !texts.empty())
    notice(text("gradus: save_weights: Keras's files have no place for `", texts[0].name, "` of the model; ",
                "save_safetensors() writes it, too\n"));
  const WrittenWeights weights(model, "save_weights");
  AtomicFile out(file);
  for (const Bytes piece : weights.pieces) out.write(piece);
  out.commit();
}

void load_weights(const std::filesystem::path& file, Module& model) {
  const HostFloats floats;
  const Untraced outside;
  const PlacedBytes bytes = placed_bytes(file);
  const std::string& name = bytes.name;
  const std::vector<NamedArray> arrays =
      is_archive(bytes) ? weights_in(ZipReader(bytes, kind), name) : parse_hdf5(read_whole_file(file), name);
  assign_keras_arrays(model, arrays, "load_weights", name);
}

void save_model(const std::filesystem::path& file, const Module& model) {
  const HostFloats floats;
  const Untraced outside;
  check_ending("save_model", file, ".keras");
  const std::string config = config_of_model(model), metadata = R"({"keras_version": "3.0.0"})";
  const WrittenWeights weights(model, "save_model");
  AtomicFile out(file);
  ZipWriter zip(out);
  zip.add("metadata.json", std::array{std::as_bytes(std::span(metadata))});
  zip.add(std::string(config_part), std::array{std::as_bytes(std::span(config))});
  zip.add(std::string(weights_part), weights.pieces);
  zip.finish();
  out.commit();
}

namespace {

std::string config_text(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Sequential model_in(const ZipReader& zip, const std::string& name, const LoadModelOptions& options) {
  const HostFloats floats;
  const Untraced outside;
  ConfiguredModel read = model_of_config(config_text(config_in(zip, name)), name, options);
  const std::vector<NamedArray> arrays = weights_in(zip, name);
  by_the_file(name, [&] {
    read.model.build(read.input);
    assign_keras_arrays(read.model, arrays, "load_model", name);
    for (Layer* layer : read.frozen) layer->set_trainable(false);
  });
  return std::move(read.model);
}

Functional functional_in(const ZipReader& zip, const std::string& name, const LoadModelOptions& options) {
  const HostFloats floats;
  const Untraced outside;
  const ConfiguredGraph read = graph_model_of_config(config_text(config_in(zip, name)), name, options);
  const std::vector<NamedArray> arrays = weights_in(zip, name);
  Functional model(read.layer);
  by_the_file(name, [&] {
    read.layer->ensure_built(read.layer->graph().input_specs);
    const Module& whole = read.is_sequential ? std::get<Module>(read.layer->graph().layers[0].second) : model;
    assign_keras_arrays(whole, arrays, "load_functional", name);
    for (Layer* layer : read.frozen) layer->set_trainable(false);
  });
  return model;
}

}  // namespace

Sequential parse_model(std::span<const std::byte> bytes, const std::string& name, LoadModelOptions options) {
  return model_in(ZipReader(bytes, name, kind), name, options);
}

Functional parse_functional(std::span<const std::byte> bytes, const std::string& name, LoadModelOptions options) {
  return functional_in(ZipReader(bytes, name, kind), name, options);
}

Functional load_functional(const std::filesystem::path& file, LoadModelOptions options) {
  return functional_in(ZipReader(placed_bytes(file), kind), file.string(), options);
}

Sequential load_model(const std::filesystem::path& file, LoadModelOptions options) {
  return model_in(ZipReader(placed_bytes(file), kind), file.string(), options);
}

}  // namespace gradus
