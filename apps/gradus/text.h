/// Text as training data: characters become numbers, and a text becomes windows of them.
#pragma once
#include <filesystem>
#include <string>
#include <vector>
#include "gradus/gradus.h"

namespace gradus::command {

/// The characters (Unicode) that a text has, in ascending order: character i is number i.
class Vocabulary {
 public:
  /// DataError if the text is not UTF-8 or empty.
  static Vocabulary of_text(const std::string& text, const std::string& source);
  /// As to_json() wrote it.
  static Vocabulary read(const std::filesystem::path& file);
  std::string to_json() const;

  std::int64_t size() const { return static_cast<std::int64_t>(characters_.size()); }
  /// DataError for a character that there is not.
  std::vector<std::int32_t> encode(const std::string& text, const std::string& source) const;
  /// The character, as UTF-8.
  const std::string& operator[](std::int64_t number) const { return characters_[static_cast<std::size_t>(number)]; }

 private:
  std::vector<std::string> characters_;  // in the order of their bytes, which is that of their numbers in Unicode
};

/// (x, y) of i32 [length] each, y one character on: windows that begin `stride` characters apart. DataError if the text
/// has not even one.
Dataset<2> windows(const std::vector<std::int32_t>& text, std::int64_t length, std::int64_t stride,
                   const std::string& source);

struct SamplingOptions {
  std::int64_t characters = 400;
  double temperature = 0.8;  // 0: always the likeliest
  std::uint64_t seed = 0;
  std::int64_t context = 0;  // how many characters the model looks back at
};
/// Continues `begin` (not empty) by the model; the result of a place must not depend on later ones. Calls `write` with
/// each character.
void sample(const Module& model, const std::vector<std::int32_t>& begin, const SamplingOptions& options,
            const std::function<void(std::int64_t)>& write);

}  // namespace gradus::command
