/// Keras 3's files: `.weights.h5` for any model's weights, and `.keras` for whole models.
///
///   keras:   model.save("net.keras")                    gradus:  Sequential model = load_model("net.keras");
///   gradus:  save_weights("net.weights.h5", model);     keras:   model.load_weights("net.weights.h5")
#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include "gradus/nn/functional.h"
#include "gradus/nn/layers.h"

namespace gradus {

/// Writes weights at Keras's paths. For a Sequential they are "layers/dense_1/vars/0", counted by kind. For a Model
/// they are those of a subclassed keras.Model whose attributes have the names of its fields: "hidden/vars/0", and for
/// names after "layers" in the alphabet "layers/dense/vars/0", as Keras puts them. Elements of arrays are attributes
/// "blocks_0"; a nested Model is a keras.Layer. f16 stays, bf16 is written as f32. The name ends in ".weights.h5", as
/// Keras requires. InvalidArgument for another name, for a model that is not built, and if Keras's path is not known.
/// The file appears whole or not at all.
void save_weights(const std::filesystem::path& file, const Module& model);
/// Reads weights from `.weights.h5` or `.keras` into the built `model`. Shapes must match; floats are cast to the
/// variable's dtype. Other contents, such as an optimizer's state, are ignored. InvalidArgument lists everything that
/// does not fit, and nothing changes. DataError for a broken file, Unavailable if it cannot be read.
void load_weights(const std::filesystem::path& file, Module& model);

/// Options of load_model.
struct LoadModelOptions {
  /// Accepts unknown parts that matter in training alone: constraints, regularizers other than L1 and L2, recurrent
  /// dropout, frozen batch normalizations.
  bool inference_only = false;
};

/// Writes layers, their options and policies, which of them are trained, and weights; neither initializers nor
/// optimizer, loss and metrics. `model` is a built Sequential; the name ends in ".keras". InvalidArgument lists all
/// layers and options that Keras does not have. An activation is written under the name of the one that computes the
/// same.
void save_model(const std::filesystem::path& file, const Module& model);
/// Reads a built Sequential, from a Sequential or from a Functional whose layers are a chain, each called once with the
/// result of the one before. Optimizer, loss and metrics are ignored. DataError lists every layer and every option of
/// the file that this library does not have. load_functional reads every other Functional; a model that is neither has
/// to be written as a Model, whose weights load_weights reads.
Sequential load_model(const std::filesystem::path& file, LoadModelOptions options = {});
/// Reads a built Functional: layers in any graph, shared layers, several inputs and outputs, ops of keras.ops, models
/// within the model. A Sequential is read as a Functional of one layer. DataError as of load_model. A Lambda is code of
/// Python, which is never run: it is an error.
///
///   Functional model = load_functional("net.keras");
///   Tensors scores = model({words, numbers});
Functional load_functional(const std::filesystem::path& file, LoadModelOptions options = {});
/// load_functional for bytes in memory; `name` stands for the file in messages.
Functional parse_functional(std::span<const std::byte> bytes, const std::string& name, LoadModelOptions options = {});
/// load_model for bytes in memory; `name` stands for the file in messages.
Sequential parse_model(std::span<const std::byte> bytes, const std::string& name, LoadModelOptions options = {});

}  // namespace gradus
