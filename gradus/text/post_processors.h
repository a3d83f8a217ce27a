/// Post-processors: the special tokens that a tokenizer puts around the tokens of a text, or of a pair.
#pragma once
#include <functional>
#include <string>
#include <vector>
#include "gradus/base/rooms.h"
#include "gradus/text/text_encoding.h"
#include "gradus/text/tokenizer_json.h"

namespace gradus {

/// A part of a result: a special token, or the tokens of a text.
struct TemplatePiece {
  int text = -1;                  // 0 or 1; -1: special tokens
  std::vector<std::int32_t> ids;  // of special tokens
  std::vector<std::string> tokens;
  std::int32_t type = 0;
};

/// The parts for a text, and for a pair of texts.
struct PostProcessor {
  std::vector<TemplatePiece> single{{.text = 0}}, pair{{.text = 0}, {.text = 1, .type = 1}};

  /// The post-processor of a tokenizer.json. DataError names one that is not supported.
  static PostProcessor of(const TokenizerPart& part);
  /// The number of special tokens.
  std::int64_t added(bool is_pair) const;
  /// The tokens of one or two texts in their places.
  TextEncoding apply(const std::vector<TextEncoding>& texts, bool add_special_tokens) const;
};

}  // namespace gradus
