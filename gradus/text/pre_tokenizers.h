/// Pre-tokenizers: how a normalized text is taken apart before a model sees its pieces.
#pragma once
#include <functional>
#include <string>
#include <vector>
#include "gradus/text/tokenizer_json.h"

namespace gradus {

/// A piece of a text, in UTF-8.
struct TextPiece {
  std::string text;
  bool at_start = false;  // the whole text begins with it
};
using TextPieces = std::vector<TextPiece>;
using PreTokenizer = std::function<TextPieces(TextPieces)>;

/// The pre-tokenizer of a tokenizer.json. DataError names one that is not supported.
PreTokenizer pre_tokenizer_of(const TokenizerPart& part);

/// The options of Metaspace, which is a decoder, too.
struct Metaspace {
  enum class Prepend { always, first, never };
  std::string replacement;  // one character
  Prepend prepend = Prepend::always;
  bool split = true;
  static Metaspace of(const TokenizerPart& part);
};

}  // namespace gradus
