#include "gradus/text/post_processors.h"
#include <optional>

namespace gradus {
namespace {

TemplatePiece text_piece(int text, std::int32_t type) { return {.text = text, .type = type}; }

/// A special token of BertProcessing and RobertaProcessing: ["[SEP]", 102].
TemplatePiece special_piece(const TokenizerPart& part, const char* key, std::int32_t type) {
  const TokenizerPart pair = part.at(key);
  if (!pair.json().is_array() || pair.json().size() != 2) pair.fail("expected a token and its id");
  return {.ids = {TokenizerPart(pair.json()[1], pair.where()).as_id()},
          .tokens = {TokenizerPart(pair.json()[0], pair.where()).as<std::string>()},
          .type = type};
}

PostProcessor bert_processing(const TokenizerPart& part) {
  const TemplatePiece sep = special_piece(part, "sep", 0), cls = special_piece(part, "cls", 0);
  return {.single = {cls, text_piece(0, 0), sep},
          .pair = {cls, text_piece(0, 0), sep, text_piece(1, 1), special_piece(part, "sep", 1)}};
}

/// RoBERTa has one type for all.
PostProcessor roberta_processing(const TokenizerPart& part) {
  const TemplatePiece sep = special_piece(part, "sep", 0), cls = special_piece(part, "cls", 0);
  return {.single = {cls, text_piece(0, 0), sep}, .pair = {cls, text_piece(0, 0), sep, sep, text_piece(1, 0), sep}};
}

std::int32_t type_of_piece(const TokenizerPart& part) { return part.has("type_id") ? part.id("type_id") : 0; }

/// The ids of a special token of a template.
TemplatePiece special_of_template(const TokenizerPart& processor, const TokenizerPart& part) {
  const auto name = part.get<std::string>("id");
  const TokenizerPart token = processor.at("special_tokens").at(name.c_str());
  TemplatePiece piece{.type = type_of_piece(part)};
  for (const TokenizerPart& id : token.list("ids")) piece.ids.push_back(id.as_id());
  for (const TokenizerPart& text : token.list("tokens")) piece.tokens.push_back(text.as<std::string>());
  if (piece.ids.size() != piece.tokens.size()) token.fail("expected as many ids as tokens");
  return piece;
}

std::vector<TemplatePiece> template_of(const TokenizerPart& processor, const char* key) {
  std::vector<TemplatePiece> pieces;
  for (const TokenizerPart& part : processor.list(key)) {
    if (part.has("SpecialToken")) {
      pieces.push_back(special_of_template(processor, part.at("SpecialToken")));
      continue;
    }
    const TokenizerPart sequence = part.at("Sequence");
    const auto name = sequence.get<std::string>("id");
    if (name != "A" && name != "B") sequence.fail("the sequence is `", name, "`, expected A or B");
    if (name == "B" && std::string_view(key) == "single") sequence.fail("a single text has no sequence B");
    pieces.push_back(text_piece(name == "B", type_of_piece(sequence)));
  }
  return pieces;
}

/// One post-processor may stand beside those of ByteLevel, which change offsets alone.
PostProcessor processors_in_sequence(const TokenizerPart& part) {
  std::optional<PostProcessor> only;
  for (const TokenizerPart& each : part.list("processors")) {
    if (each.type() == "ByteLevel") continue;
    if (only) each.fail("several post-processors that add tokens are not supported");
    only = PostProcessor::of(each);
  }
  return only.value_or(PostProcessor());
}

}  // namespace

PostProcessor PostProcessor::of(const TokenizerPart& part) {
  const std::string type = part.type();
  if (type == "TemplateProcessing") return {.single = template_of(part, "single"), .pair = template_of(part, "pair")};
  if (type == "BertProcessing") return bert_processing(part);
  if (type == "RobertaProcessing") return roberta_processing(part);
  if (type == "ByteLevel") return {};
  if (type == "Sequence") return processors_in_sequence(part);
  part.fail_unsupported("post-processor",
                        "TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel and Sequence");
}

std::int64_t PostProcessor::added(bool is_pair) const {
  std::int64_t count = 0;
  for (const TemplatePiece& piece : is_pair ? pair : single) count += std::ssize(piece.ids);
  return count;
}

TextEncoding PostProcessor::apply(const std::vector<TextEncoding>& texts, bool add_special_tokens) const {
  TextEncoding result;
  for (const TemplatePiece& piece : texts.size() > 1 ? pair : single) {
    if (piece.text >= 0) {
      TextEncoding text = texts[static_cast<std::size_t>(piece.text)];
      text.type_ids.assign(text.ids.size(), piece.type);
      result.append(text);
    } else if (add_special_tokens) {
      for (std::size_t i = 0; i < piece.ids.size(); ++i) result.add(piece.ids[i], piece.tokens[i], piece.type, true);
    }
  }
  return result;
}

}  // namespace gradus
