#include "gradus/text/tokenizer.h"
#include <algorithm>
#include "gradus/base/divide.h"
#include "gradus/base/ranges.h"
#include "gradus/formats/atomic_file.h"
#include "gradus/formats/json.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/text/added_tokens.h"
#include "gradus/text/post_processors.h"
#include "gradus/text/token_decoders.h"
#include "gradus/text/unicode.h"
#include "gradus/text/vocabulary_file.h"

namespace gradus {

struct Tokenizer::Parts {
  Normalizer normalizer;  // may be empty, as the next ones
  PreTokenizer pre_tokenizer;
  TokenDecoder decoder;
  std::unique_ptr<const TokenModel> model;
  PostProcessor post_processor;
  AddedTokens added;
  std::string json;  // of the file

  const std::string* token_of(std::int32_t id) const {
    const std::string* token = added.vocabulary().token_of(id);
    return token ? token : model->vocabulary().token_of(id);
  }
};

namespace {

TokenSide side_of(const TokenizerPart& part) {
  const std::string name = part.get<std::string>("direction", "Right");
  if (name != "Left" && name != "Right")
    part.fail("the direction `", name, "` is not supported; supported are Left and Right");
  return name == "Left" ? TokenSide::left : TokenSide::right;
}

TruncationOptions truncation_of(const TokenizerPart& part) {
  TruncationOptions options{.max_length = part.get<std::int64_t>("max_length"), .direction = side_of(part)};
  const std::string name = part.get<std::string>("strategy", "LongestFirst");
  if (name == "OnlyFirst") options.strategy = TruncationStrategy::only_first;
  else if (name == "OnlySecond") options.strategy = TruncationStrategy::only_second;
  else if (name != "LongestFirst")
    part.fail("the strategy `", name, "` is not supported; supported are LongestFirst, OnlyFirst and OnlySecond");
  return options;
}

TokenPaddingOptions padding_of(const TokenizerPart& part) {
  TokenPaddingOptions options{.direction = side_of(part)};
  const TokenizerPart strategy = part.at("strategy");
  if (strategy.json().is_object()) options.length = strategy.get<std::int64_t>("Fixed");
  else if (strategy.as<std::string>() != "BatchLongest") strategy.fail("expected BatchLongest, or {\"Fixed\": length}");
  if (part.has("pad_to_multiple_of")) options.pad_to_multiple_of = part.get<std::int64_t>("pad_to_multiple_of");
  if (part.has("pad_id")) options.pad_id = part.id("pad_id");
  if (part.has("pad_type_id")) options.pad_type_id = part.id("pad_type_id");
  options.pad_token = part.get<std::string>("pad_token", "[PAD]");
  return options;
}

void fill_in(TextEncoding& encoding, std::int64_t length, const TokenPaddingOptions& options) {
  if (encoding.size() >= length) return;
  TextEncoding padding;
  for (std::int64_t i = encoding.size(); i < length; ++i)
    padding.add(options.pad_id, options.pad_token, options.pad_type_id, true);
  std::ranges::fill(padding.attention_mask, 0);
  if (options.direction == TokenSide::left) std::swap(encoding, padding);
  encoding.append(padding);
}

/// To one length.
void fill_in(std::span<TextEncoding> encodings, const TokenPaddingOptions& options) {
  std::int64_t length = options.length.value_or(0);
  for (const TextEncoding& encoding : encodings)
    if (!options.length) length = std::max(length, encoding.size());
  if (const std::int64_t unit = options.pad_to_multiple_of.value_or(0); unit > 0) length = round_up(length, unit);
  for (TextEncoding& encoding : encodings) fill_in(encoding, length, options);
}

void cut_off(TextEncoding& encoding, std::int64_t most, TokenSide side) {
  if (encoding.size() <= most) return;
  if (side == TokenSide::right) encoding.keep(0, most);
  else encoding.keep(encoding.size() - most, encoding.size());
}

/// Lengths of a pair, of which the longer one is cut off first.
std::pair<std::int64_t, std::int64_t> lengths_of_pair(std::int64_t first, std::int64_t second, std::int64_t most) {
  const bool is_swapped = first > second;
  std::int64_t shorter = std::min(first, second);
  std::int64_t longer = shorter > most ? shorter : std::max(shorter, most - shorter);
  if (shorter + longer > most) {
    shorter = most / 2;
    longer = shorter + most % 2;
  }
  return is_swapped ? std::pair(longer, shorter) : std::pair(shorter, longer);
}

nlohmann::ordered_json json_of(const TruncationOptions& options) {
  constexpr const char* strategies[] = {"LongestFirst", "OnlyFirst", "OnlySecond"};
  return {{"direction", options.direction == TokenSide::left ? "Left" : "Right"},
          {"max_length", options.max_length},
          {"strategy", strategies[static_cast<int>(options.strategy)]},
          {"stride", 0}};
}
nlohmann::ordered_json json_of(const TokenPaddingOptions& options) {
  nlohmann::ordered_json json;
  if (options.length) json["strategy"]["Fixed"] = *options.length;
  else json["strategy"] = "BatchLongest";
  json["direction"] = options.direction == TokenSide::left ? "Left" : "Right";
  json["pad_to_multiple_of"] =
      options.pad_to_multiple_of ? nlohmann::ordered_json(*options.pad_to_multiple_of) : nlohmann::ordered_json();
  json["pad_id"] = options.pad_id;
  json["pad_type_id"] = options.pad_type_id;
  json["pad_token"] = options.pad_token;
  return json;
}

/// i64 [texts, length] of one list of each encoding.
Tensor rows_of_encodings(const std::vector<TextEncoding>& encodings, const Shape& outer,
                         std::vector<std::int32_t> TextEncoding::* list) {
  IdRows ids{outer, {}};
  for (const TextEncoding& encoding : encodings)
    ids.rows.emplace_back((encoding.*list).begin(), (encoding.*list).end());
  return padded_ids(ids, std::nullopt);
}

}  // namespace

Tokenizer Tokenizer::from_file(const std::filesystem::path& file) {
  return from_json(read_vocabulary_text(file), file.string());
}

Tokenizer Tokenizer::from_json(std::string_view json, std::string_view source) {
  const nlohmann::json parsed = parse_json(json, source);
  const TokenizerPart file(parsed, std::string(source));
  require<DataError>(parsed.is_object() && file.has("model"), source, ": it is no tokenizer.json: there is no `model`");
  auto parts = std::make_shared<Parts>();
  if (file.has("normalizer")) parts->normalizer = normalizer_of(file.at("normalizer"));
  if (file.has("pre_tokenizer")) parts->pre_tokenizer = pre_tokenizer_of(file.at("pre_tokenizer"));
  if (file.has("post_processor")) parts->post_processor = PostProcessor::of(file.at("post_processor"));
  if (file.has("decoder")) parts->decoder = token_decoder_of(file.at("decoder"));
  parts->model = token_model_of(file.at("model"));
  parts->added = AddedTokens(file, parts->model->vocabulary(), parts->normalizer);
  parts->json = json;
  Tokenizer tokenizer;
  tokenizer.parts_ = std::move(parts);
  try {
    if (file.has("truncation")) tokenizer.enable_truncation(truncation_of(file.at("truncation")));
    if (file.has("padding")) tokenizer.enable_padding(padding_of(file.at("padding")));
  } catch (const InvalidArgument& error) { throw DataError(text(source, ": ", error.what())); }
  return tokenizer;
}

const Tokenizer::Parts& Tokenizer::parts() const {
  require(parts_ != nullptr, "tokenizer: it has no tables; read them by Tokenizer::from_file(), or load its model");
  return *parts_;
}

std::string Tokenizer::saved_text() const {
  if (!parts_) return {};
  auto json = parse_json<nlohmann::ordered_json>(parts_->json, "tokenizer");
  json["truncation"] = truncation_ ? json_of(*truncation_) : nlohmann::ordered_json();
  json["padding"] = padding_ ? json_of(*padding_) : nlohmann::ordered_json();
  return json.dump(2) + '\n';
}
SavedText::Loading Tokenizer::loading(std::string_view saved, const std::string& source) {
  return {{}, [this, read = from_json(saved, source)] { *this = read; }};
}

void Tokenizer::save(const std::filesystem::path& file) const {
  parts();
  AtomicFile out(file);
  out.write(saved_text());
  out.commit();
}

TextEncoding Tokenizer::tokens_of(std::string_view given) const {
  unicode::check(given, "tokenizer");
  const std::string text(given);
  TextEncoding encoding;
  const auto put = [&](std::int32_t id) {
    const std::string* token = parts().token_of(id);
    encoding.add(id, token ? *token : std::string(), 0, false);
  };
  std::vector<std::int32_t> ids;
  for (MarkedPiece& part : parts().added.taken_out(text, parts().normalizer)) {
    if (part.id) {
      put(*part.id);
      continue;
    }
    TextPieces pieces{std::move(part.piece)};
    if (parts().pre_tokenizer) pieces = parts().pre_tokenizer(std::move(pieces));
    ids.clear();
    for (const TextPiece& piece : pieces) parts().model->add_ids(piece.text, ids);
    for (const std::int32_t id : ids) put(id);
  }
  return encoding;
}

void Tokenizer::truncate(std::vector<TextEncoding>& texts, std::int64_t most) const {
  std::int64_t total = 0;
  for (const TextEncoding& text : texts) total += text.size();
  if (total <= most) return;
  const TokenSide side = truncation_->direction;
  if (truncation_->strategy == TruncationStrategy::longest_first) {
    if (texts.size() == 1) return cut_off(texts[0], most, side);
    const auto [first, second] = lengths_of_pair(texts[0].size(), texts[1].size(), most);
    cut_off(texts[0], first, side);
    cut_off(texts[1], second, side);
    return;
  }
  const std::size_t which = truncation_->strategy == TruncationStrategy::only_second;
  require(which < texts.size(),
          "tokenizer: its truncation cuts off the second text of a pair alone, and one text is given");
  const std::int64_t left = texts[which].size() - (total - most);
  require(left > 0, "tokenizer: the other text of the pair alone is too long for ", truncation_->max_length,
          " tokens; its truncation cuts off one of them alone");
  cut_off(texts[which], left, side);
}

TextEncoding Tokenizer::finished(std::vector<TextEncoding> texts, bool add_special_tokens) const {
  if (truncation_) {
    const std::int64_t added = add_special_tokens ? parts().post_processor.added(texts.size() > 1) : 0;
    require(added <= truncation_->max_length, "tokenizer: max_length is ", truncation_->max_length, ", but it adds ",
            added, " special tokens");
    truncate(texts, truncation_->max_length - added);
  }
  return parts().post_processor.apply(texts, add_special_tokens);
}

TextEncoding Tokenizer::encode(std::string_view text, bool add_special_tokens) const {
  TextEncoding encoding = finished({tokens_of(text)}, add_special_tokens);
  if (padding_) fill_in(std::span(&encoding, 1), *padding_);
  return encoding;
}

TextEncoding Tokenizer::encode(std::string_view text, std::string_view pair, bool add_special_tokens) const {
  TextEncoding encoding = finished({tokens_of(text), tokens_of(pair)}, add_special_tokens);
  if (padding_) fill_in(std::span(&encoding, 1), *padding_);
  return encoding;
}

std::vector<TextEncoding> Tokenizer::encode_batch(const Strings& texts, bool add_special_tokens) const {
  std::vector<TextEncoding> encodings;
  for (const std::string& text : texts.values()) encodings.push_back(finished({tokens_of(text)}, add_special_tokens));
  if (padding_) fill_in(std::span(encodings), *padding_);
  return encodings;
}

TokenTensors Tokenizer::encode_tensors(const Strings& texts, bool add_special_tokens) const {
  require_no_trace("Tokenizer");
  const std::vector<TextEncoding> encodings = encode_batch(texts, add_special_tokens);
  const Shape& outer = texts.shape();
  return {rows_of_encodings(encodings, outer, &TextEncoding::ids),
          rows_of_encodings(encodings, outer, &TextEncoding::type_ids),
          rows_of_encodings(encodings, outer, &TextEncoding::attention_mask)};
}

Tensor Tokenizer::operator()(const Strings& texts) const { return encode_tensors(texts).ids; }

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool skip_special_tokens) const {
  std::vector<std::string> tokens;
  for (const std::int32_t id : ids) {
    const std::string* token = parts().token_of(id);
    if (token && !(skip_special_tokens && parts().added.is_special(*token))) tokens.push_back(*token);
  }
  const bool has_decoder = static_cast<bool>(parts().decoder);
  if (has_decoder) tokens = parts().decoder(std::move(tokens));
  std::string all;
  for (std::size_t i = 0; i < tokens.size(); ++i) all += (i > 0 && !has_decoder ? " " : "") + tokens[i];
  return all;
}

Strings Tokenizer::decode(const Tensor& ids, bool skip_special_tokens) const {
  require_no_trace("Tokenizer");
  require(is_integer(ids.dtype()) && ids.shape().rank() > 0, "Tokenizer: decode: the input is ", ids.spec(),
          ", expected integers [..., length]");
  const std::vector<std::int32_t> all = cast(ids, i32).to_vector<std::int32_t>();
  Shape outer = ids.shape();
  outer.erase(-1);
  const auto each = static_cast<std::size_t>(ids.shape()[-1]);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < static_cast<std::size_t>(outer.size()); ++i)
    texts.push_back(decode(std::span(all).subspan(i * each, each), skip_special_tokens));
  return {outer, std::move(texts)};
}

std::optional<std::int32_t> Tokenizer::token_to_id(const std::string& token) const {
  const auto added = parts().added.vocabulary().id_of(token);
  return added ? added : parts().model->vocabulary().id_of(token);
}

std::optional<std::string> Tokenizer::id_to_token(std::int32_t id) const {
  const std::string* token = parts().token_of(id);
  return token ? std::optional(*token) : std::nullopt;
}

std::int64_t Tokenizer::get_vocab_size(bool with_added_tokens) const {
  const TokenVocabulary& model = parts().model->vocabulary();
  std::int64_t size = model.size();
  if (!with_added_tokens) return size;
  for (const auto& [token, id] : parts().added.vocabulary().ids()) size += !model.id_of(token);
  return size;
}

void Tokenizer::enable_truncation(const TruncationOptions& options) {
  check_options("Tokenizer: truncation", options);
  truncation_ = options;
}

void Tokenizer::enable_padding(const TokenPaddingOptions& options) {
  check_options("Tokenizer: padding", options);
  padding_ = options;
}

}  // namespace gradus
