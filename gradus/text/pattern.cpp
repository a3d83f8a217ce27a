#include "gradus/text/pattern.h"
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <algorithm>
#include <array>
#include <new>
#include "gradus/base/error.h"
#include "gradus/text/unicode.h"

namespace gradus {
namespace {

/// Steps of one search. A pattern of a tokenizer takes a few per character; one that takes more is built to hang.
constexpr std::uint32_t most_steps = 10'000'000;
constexpr std::uint32_t most_kibibytes = 64 * 1024;

using MatchData = std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)>;

PCRE2_SPTR units_of(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

std::string reason_of(int code) {
  std::array<PCRE2_UCHAR, 256> message{};
  pcre2_get_error_message(code, message.data(), message.size());
  return reinterpret_cast<const char*>(message.data());
}

/// \w as Oniguruma has it, for which the expressions of tokenizers are written: with marks and letters in circles,
/// which PCRE2 10.42 leaves out, and of other numbers those of Latin-1 alone.
constexpr std::string_view word_class =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE}\x{24B6}-\x{24E9}\x{1F130}-\x{1F149})"
    R"(\x{1F150}-\x{1F169}\x{1F170}-\x{1F189})";

/// The expression with Oniguruma's meaning of escapes. DataError for those that mean something else in PCRE2.
std::string with_words(const std::string& written, std::string_view where) {
  std::string out;
  bool is_in_class = false;
  for (std::size_t i = 0; i < written.size(); ++i) {
    const char c = written[i];
    if (c == '\\' && i + 1 < written.size()) {
      const char escaped = written[++i];
      const bool differs = std::string_view("bBhHRXNKGyY").find(escaped) != std::string_view::npos;
      require<DataError>(!differs && !(escaped == 'W' && is_in_class), where, ": the regular expression `", written,
                         "` has \\", escaped, ", which is not supported", is_in_class ? " in a class" : "");
      if (escaped == 'w' || escaped == 'W')
        out += text(is_in_class ? "" : escaped == 'w' ? "[" : "[^", word_class, is_in_class ? "" : "]");
      else (out += c) += escaped;
      continue;
    }
    if (c == '[') is_in_class = true;
    if (c == ']') is_in_class = false;
    out += c;
  }
  return out;
}

}  // namespace

struct Pattern::Compiled {
  std::unique_ptr<pcre2_code, decltype(&pcre2_code_free)> code{nullptr, &pcre2_code_free};
  std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)> limits{pcre2_match_context_create(nullptr),
                                                                                   &pcre2_match_context_free};
  std::string written;

  /// The first match from `from` on; false if there is none.
  bool find(std::string_view text, std::size_t from, pcre2_match_data* data) const {
    const int found =
        pcre2_match(code.get(), units_of(text), text.size(), from, PCRE2_NO_UTF_CHECK, data, limits.get());
    if (found == PCRE2_ERROR_NOMATCH) return false;
    require<ResourceExhausted>(found > 0, "tokenizer: the pattern `", written,
                               "` does not come to an end with this text: ", reason_of(found));
    return true;
  }
};

Pattern Pattern::literal(std::string text, std::string_view where) {
  require<DataError>(!text.empty(), where, ": the pattern is empty");
  Pattern pattern;
  pattern.literal_ = std::move(text);
  return pattern;
}

Pattern Pattern::expression(const std::string& written, std::string_view where) {
  unicode::check(written, where);
  int code = 0;
  std::size_t at = 0;
  auto compiled = std::make_shared<Compiled>();
  const std::string expression = with_words(written, where);
  compiled->code.reset(pcre2_compile(units_of(expression), expression.size(),
                                     PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &code, &at, nullptr));
  require<DataError>(compiled->code != nullptr, where, ": the regular expression `", written, "`, byte ", at, ": ",
                     reason_of(code));
  if (!compiled->limits) throw std::bad_alloc();
  pcre2_set_match_limit(compiled->limits.get(), most_steps);
  pcre2_set_heap_limit(compiled->limits.get(), most_kibibytes);
  compiled->written = written;
  Pattern pattern;
  pattern.compiled_ = std::move(compiled);
  return pattern;
}

std::vector<TextRange> Pattern::matches(std::string_view text) const {
  std::vector<TextRange> found;
  if (!compiled_) {
    for (std::size_t at = 0; (at = text.find(literal_, at)) != std::string_view::npos; at += literal_.size())
      found.push_back({at, at + literal_.size()});
    return found;
  }
  const MatchData data(pcre2_match_data_create(1, nullptr), &pcre2_match_data_free);
  if (!data) throw std::bad_alloc();
  for (std::size_t from = 0; from <= text.size() && compiled_->find(text, from, data.get());) {
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(data.get());
    const std::size_t begin = std::max(ends[0], from), end = std::max(ends[1], begin);  // \K may set begin past end
    if (end > begin) found.push_back({begin, end});
    from = end;
    if (end == begin) from += end < text.size() ? unicode::length_of(text[end]) : 1;
  }
  return found;
}

std::string replaced(std::string_view text, const std::vector<TextRange>& matches, std::string_view with) {
  std::string out;
  std::size_t done = 0;
  for (const TextRange& match : matches) {
    out += text.substr(done, match.begin - done);
    out += with;
    done = match.end;
  }
  return out += text.substr(done);
}

}  // namespace gradus
