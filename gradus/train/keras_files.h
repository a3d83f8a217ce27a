/// Keras 3's files: `.weights.h5` of any model's weights, and `.keras` of a chain of layers.
///
///   keras:   model.save("net.keras")                    gradus:  Sequential model = load_model("net.keras");
///   gradus:  save_weights("net.weights.h5", model);     keras:   model.load_weights("net.weights.h5")
#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include "gradus/nn/layers.h"

namespace gradus {

/// The places of Keras: "layers/dense_1/vars/0" in a Sequential, counted by kind; of a Model those that a subclassed
/// keras.Model with attributes of the names of its fields has: "hidden/vars/0", and for names after "layers" in the
/// alphabet "layers/dense/vars/0", as Keras puts them. Elements of arrays are attributes "blocks_0", a Model within is
/// a keras.Layer. f16 stays, bf16 is written as f32. The name ends in ".weights.h5", as Keras asks; InvalidArgument
/// otherwise, for a model that is not built and where Keras's place is not known. The file appears whole or not at all.
void save_weights(const std::filesystem::path& file, const Module& model);
/// From `.weights.h5` or `.keras`, of the built `model`. Shapes must match; floats are cast to the variable's type.
/// What else Keras keeps there, such as an optimizer's state, is passed over. InvalidArgument lists all that does not
/// fit, and nothing changes; DataError for a broken file, Unavailable if it cannot be read.
void load_weights(const std::filesystem::path& file, Module& model);

struct LoadModelOptions {
  /// What acts in training alone and is not known may be there: constraints, regularizers but L1 and L2, recurrent
  /// dropout, frozen batch normalizations.
  bool inference_only = false;
};

/// Layers, their options and policies, which of them are trained, and weights; neither initializers nor optimizer, loss
/// and metrics. `model` is a built Sequential; the name ends in ".keras". InvalidArgument lists all layers and options
/// that Keras does not have. An activation is written by the name of the one that computes the same.
void save_model(const std::filesystem::path& file, const Module& model);
/// A built Sequential, of one or of a Functional whose layers are a chain, each called once with what the one before it
/// gives. What was compiled with it (optimizer, loss, metrics) is passed over. DataError lists every layer and every
/// option of the file that this library does not have; another model has to be written as a Model, whose weights
/// load_weights reads.
Sequential load_model(const std::filesystem::path& file, LoadModelOptions options = {});
/// The same of bytes in memory; `name` stands for the file in messages.
Sequential parse_model(std::span<const std::byte> bytes, const std::string& name, LoadModelOptions options = {});

}  // namespace gradus
