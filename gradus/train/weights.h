/// Weights of modules to and from files.
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

/// What arrays of a file are called in the model: a function of a name, or names and their others. One that ends in "/"
/// or "." stands for all that begin with it; of several the longest holds. Others keep their names.
class Renaming {
 public:
  Renaming() = default;
  template <class F>
    requires std::is_invocable_r_v<std::string, const F&, const std::string&>
  Renaming(F f) : f_(std::move(f)) {}
  Renaming(std::map<std::string, std::string> names);
  Renaming(std::initializer_list<std::pair<const std::string, std::string>> names)
      : Renaming(std::map<std::string, std::string>(names)) {}
  std::string operator()(const std::string& name) const { return f_ ? f_(name) : name; }

 private:
  std::function<std::string(const std::string&)> f_;
};

struct LoadWeightsOptions {
  bool strict = true;  // false: what does not match is left as it is, and told
  Renaming rename = {};
};
/// What did not match, by the names of the model, and of arrays without a variable those of the file.
struct LoadedWeights {
  std::vector<std::string> loaded;     // variables
  std::vector<std::string> missing;    // variables of which the file has no array
  std::vector<std::string> unmatched;  // arrays of which the model has no variable
  std::vector<std::string> unlike;     // "dense/kernel: expected f32 (3, 4), the file has f32 (4, 4)"
  bool is_complete() const { return missing.empty() && unmatched.empty() && unlike.empty(); }
  friend std::ostream& operator<<(std::ostream& out, const LoadedWeights& weights);
};

/// All variables by name. The file appears whole or not at all. InvalidArgument if two have the same name, Unavailable
/// where it may not be written, ResourceExhausted on a full disk.
void save_safetensors(const std::filesystem::path& file, const Module& module);
/// Names and shapes must match those of the module, which is built, and types but that floats are cast:
/// InvalidArgument if it is not built, or lists what does not match, and nothing changes. `strict = false` passes that
/// over and tells it, unless nothing matches. DataError for a broken file, Unavailable if it cannot be read.
///
///   const LoadedWeights told =
///       load_safetensors("encoder.safetensors", model, {.strict = false, .rename = {{"bert.", "encoder/"}}});
LoadedWeights load_safetensors(const std::filesystem::path& file, Module& module, LoadWeightsOptions options = {});

/// The same as an archive of NumPy: np.load(file)["dense/kernel"].
void save_npz(const std::filesystem::path& file, const Module& module);
LoadedWeights load_npz(const std::filesystem::path& file, Module& module, LoadWeightsOptions options = {});

}  // namespace gradus
