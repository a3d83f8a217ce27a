/// Normalizers of tokenizers: how a text is changed before it is taken apart.
#pragma once
#include <functional>
#include <string>
#include "gradus/text/tokenizer_json.h"

namespace gradus {

/// A text while it is changed.
struct NormalText {
  std::u32string characters;
  bool keeps_start = true;  // its first character was not cut off
};
using Normalizer = std::function<void(NormalText&)>;

/// The normalizer of a tokenizer.json. DataError names one that is not supported.
Normalizer normalizer_of(const TokenizerPart& part);

}  // namespace gradus
