/// Weights of modules, to and from files.
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <vector>
#include "gradus/formats/npz.h"
#include "gradus/formats/safetensors.h"
#include "gradus/nn/module.h"

namespace gradus {

/// A map from names of arrays in a file to names in the model: a function, or a list of pairs. A name that ends in "/"
/// or "." stands for all that begin with it; the longest match counts. Others keep their names.
class Renaming {
 public:
  Renaming() = default;
  template <class F>
    requires std::is_invocable_r_v<std::string, const F&, const std::string&>
  Renaming(F f) : f_(std::move(f)) {}
  Renaming(std::map<std::string, std::string> names);
  Renaming(std::initializer_list<std::pair<const std::string, std::string>> names)
      : Renaming(std::map<std::string, std::string>(names)) {}
  /// The name in the model.
  std::string operator()(const std::string& name) const { return f_ ? f_(name) : name; }

 private:
  std::function<std::string(const std::string&)> f_;
};

/// Options of loading weights.
struct LoadWeightsOptions {
  bool strict = true;    // false: variables and arrays that do not match are left alone, and reported
  Renaming rename = {};  // names in the model
};
/// Report of loading weights, by the names of the model; arrays without a variable have those of the file.
struct LoadedWeights {
  std::vector<std::string> loaded;     // variables and vocabularies
  std::vector<std::string> missing;    // variables without an array in the file
  std::vector<std::string> unmatched;  // arrays without a variable in the model
  std::vector<std::string> unlike;     // "dense/kernel: expected f32 (3, 4), the file has f32 (4, 4)"
  /// True if everything matched.
  bool is_complete() const { return missing.empty() && unmatched.empty() && unlike.empty(); }
  /// Prints the lists.
  friend std::ostream& operator<<(std::ostream& out, const LoadedWeights& weights);
};

/// Writes all variables by name, and the vocabularies and tokenizers that are fields of the model, as u8 [bytes] named
/// "words/vocabulary.json". The file appears whole or not at all. InvalidArgument if two have the same name,
/// Unavailable where it may not be written, ResourceExhausted on a full disk.
void save_safetensors(const std::filesystem::path& file, const Module& module);
/// Reads all variables by name. Names and shapes must match those of the module, which is built. Dtypes must match,
/// too, but floats are cast. Vocabularies in the file replace those of the model, whose options must be the same; a
/// file without them leaves the model's own. InvalidArgument if it is not built, or lists what does not match, and
/// nothing changes. `strict = false` skips and reports that, unless nothing matches. DataError for a broken file or
/// vocabulary, Unavailable if it cannot be read.
///
///   const LoadedWeights told =
///       load_safetensors("encoder.safetensors", model, {.strict = false, .rename = {{"bert.", "encoder/"}}});
LoadedWeights load_safetensors(const std::filesystem::path& file, Module& module, LoadWeightsOptions options = {});

/// Gives a model the vocabularies and tokenizers of a file of save_safetensors or save_npz before it is built, where
/// the sizes of its variables follow from them. InvalidArgument if the file has none for it or the options differ,
/// DataError for a broken one, Unavailable if it cannot be read.
///
///   load_vocabularies("model.safetensors", model);
///   model.build({i32, {any_size}});
///   load_safetensors("model.safetensors", model);
void load_vocabularies(const std::filesystem::path& file, Module& module);

/// save_safetensors as an archive of NumPy: np.load(file)["dense/kernel"].
void save_npz(const std::filesystem::path& file, const Module& module);
/// load_safetensors from an archive of NumPy.
LoadedWeights load_npz(const std::filesystem::path& file, Module& module, LoadWeightsOptions options = {});

}  // namespace gradus
