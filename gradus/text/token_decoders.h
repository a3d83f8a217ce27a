/// Decoders: how tokens become a text again.
#pragma once
#include <functional>
#include <string>
#include <vector>
#include "gradus/text/tokenizer_json.h"

namespace gradus {

/// Changes a list of tokens, whose parts are then put together.
using TokenDecoder = std::function<std::vector<std::string>(std::vector<std::string>)>;

/// The decoder of a tokenizer.json. DataError names one that is not supported.
TokenDecoder token_decoder_of(const TokenizerPart& part);

}  // namespace gradus
