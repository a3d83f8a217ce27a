/// A text is checked as a whole before anything changes, as variables are.
#include "gradus/train/model_texts.h"
#include <cstring>
#include <map>
#include <set>
#include "gradus/nn/layer.h"
#include "gradus/text/vocabulary_file.h"

namespace gradus {
namespace {

NamedArray array_of(std::string name, const std::string& text) {
  const auto bytes = static_cast<std::int64_t>(text.size());
  Ref<Buffer> data = Buffer::allocate(bytes, "vocabulary");
  std::memcpy(data->data<char>(), text.data(), text.size());
  return {std::move(name), {u8, {bytes}}, std::move(data)};
}

}  // namespace

std::vector<ModelText> texts_of(const Module& model) {
  std::vector<ModelText> texts;
  std::set<const SavedText*> met;
  std::map<std::string, int> seen;
  const Layer& layer = model.layer_behind();
  const std::string path = layer.has_own_name() ? layer.name() + '/' : std::string();
  layer.visit_texts(path, [&](const std::string& name, const SavedText& text) {
    if (!met.insert(&text).second) return;
    const int count = ++seen[name];
    texts.push_back({count == 1 ? name : name + '#' + std::to_string(count), &const_cast<SavedText&>(text)});
  });
  return texts;
}

std::vector<NamedArray> text_arrays(const Module& model) {
  std::vector<NamedArray> arrays;
  for (const ModelText& each : texts_of(model))
    if (const std::string saved = each.text->saved_text(); !saved.empty()) arrays.push_back(array_of(each.name, saved));
  return arrays;
}

std::string LoadedTexts::read(const ModelText& text, const NamedArray& array) {
  const std::string source = where_ + text.name;
  require<DataError>(array.spec.dtype == u8 && array.spec.shape.rank() == 1, source,
                     ": expected a text as u8 [bytes], ", "the file has ", array.spec);
  const std::int64_t bytes = array.spec.shape[0];
  require<DataError>(bytes <= most_vocabulary_bytes, source, ": it has ", bytes, " bytes; a vocabulary has at most ",
                     most_vocabulary_bytes);
  const std::string_view saved(array.data->data<const char>(), static_cast<std::size_t>(bytes));
  if (saved == text.text->saved_text()) return {};
  SavedText::Loading loading = text.text->loading(saved, source);
  if (loading.unlike.empty()) takes_.push_back(std::move(loading.take));
  return std::move(loading.unlike);
}

void LoadedTexts::take() const {
  for (const auto& each : takes_) each();
  if (!takes_.empty()) model_.layer_behind().note_change_within("was loaded with another vocabulary");
}

}  // namespace gradus
