/// Fuzz target: tokenizer.json. A file works, on a text of several scripts and on its own, or is refused by an Error;
/// what is encoded has ids of tokens that decode.
#include <cstdint>
#include <cstdlib>
#include "gradus/base/error.h"
#include "gradus/text/tokenizer.h"
#include "gradus/text/unicode.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  try {
    const gradus::Tokenizer tokenizer = gradus::Tokenizer::from_json(json, "fuzzed");
    for (const std::string& text : {std::string("The river, Größe 春天 12 <s>  a"), gradus::unicode::repaired(json)}) {
      const gradus::detail::TextEncoding made = tokenizer.encode(text);
      for (std::size_t i = 0; i < made.ids.size(); ++i)
        if (made.special[i] == 0 && tokenizer.id_to_token(made.ids[i]) != made.tokens[i]) std::abort();
      (void)tokenizer.decode(made.ids, false);
    }
  } catch (const gradus::Error&) {}
  return 0;
}
