/// Vocabularies and tokenizers of a model in its files: arrays u8 [bytes], named "words/vocabulary.json" for the field
/// `words`.
#pragma once
#include <functional>
#include <string>
#include <vector>
#include "gradus/base/rooms.h"
#include "gradus/formats/safetensors.h"
#include "gradus/nn/module.h"
#include "gradus/text/saved_text.h"

namespace gradus {

struct ModelText {
  std::string name;
  SavedText* text;
};
/// The texts within a model, each object once; of several with one name the second is "name#2".
std::vector<ModelText> texts_of(const Module& model);
/// Arrays of those that have something to keep.
std::vector<NamedArray> text_arrays(const Module& model);

/// The texts of a file, which a model takes over when all else of the file was checked, too.
class LoadedTexts {
 public:
  /// `where` opens messages. Texts that the model has already are left alone.
  LoadedTexts(Module& model, std::string where) : model_(model), where_(std::move(where)) {}
  /// Reads the array for a text of the model. How its options differ; empty: they do not. DataError for an array that
  /// is no text, that is too large or damaged.
  std::string read(const ModelText& text, const NamedArray& array);
  /// Gives the model the texts; functions that met it are traced again.
  void take() const;

 private:
  Module& model_;
  std::string where_;
  std::vector<std::function<void()>> takes_;
};

}  // namespace gradus
