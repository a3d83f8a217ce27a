#include "apps/gradus/facts_in_c.h"
#include "apps/gradus/decimals.h"

namespace gradus::command {
namespace {

/// A literal in C99 that has these bytes, whatever the compiler takes them for.
std::string literal(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain = byte >= ' ' && byte < 0x7F && c != '"' && c != '\\' && c != '?';  // ??( is a trigraph
    if (is_plain) out += c;
    else
      out += {'\\', static_cast<char>('0' + byte / 64), static_cast<char>('0' + byte / 8 % 8),
              static_cast<char>('0' + byte % 8)};
  }
  return out + '"';
}

/// "static const char* const NAME[3] = {...};"
std::string list(const std::string& name, const std::vector<std::string>& texts) {
  std::string all = text("static const char* const ", name, "[", texts.size(), "] = {");
  std::size_t width = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string next = literal(texts[i]) + (i + 1 < texts.size() ? "," : "");
    width += next.size() + 1;
    const bool begins_line = i == 0 || width > 100;
    if (begins_line) width = next.size();
    all += (begins_line ? "\n  " : " ") + next;
  }
  return all + "};\n";
}

std::string columns_in_c(const std::string& name, const DataConfig& config, const DataFacts& facts) {
  std::string all = text("/* Element i of a row of x is the column ", name, "_columns[i], a number as the table has it",
                         facts.categories.empty() ? "" : ", or the number of a word", ". */\nenum { ", name,
                         "_column_count = ", facts.columns.size(), " };\n", list(name + "_columns", facts.columns));
  if (config.missing_value) all += text("/* A missing number stands as ", shortest(*config.missing_value), ". */\n");
  for (std::size_t i = 0; i < facts.columns.size(); ++i) {
    const auto words = facts.categories.find(facts.columns[i]);
    if (words == facts.categories.end() || words->second.empty()) continue;
    all += text("/* Column ", i, " has words: ", name, "_words_", i, "[k] stands as k in x",
                config.missing_value ? ", a missing one as " : "",
                !config.missing_value                   ? ""
                : config.category_encoding == "integer" ? shortest(*config.missing_value)
                                                        : "-1",
                ". */\n", list(text(name, "_words_", i), words->second));
  }
  return all;
}

}  // namespace

std::string facts_in_c(const std::string& name, const DataConfig& config, const DataFacts& facts) {
  std::string all;
  if (config.kind == "csv" && !facts.columns.empty()) all += columns_in_c(name, config, facts);
  else if (facts.raw && *facts.raw != i32)
    all += text("/* x is as the file of data has it: the steps themselves make (x", *facts.raw == u8 ? " / 255" : "",
                " - ", shortest(config.mean), ") / ", shortest(config.deviation), " of it. */\n");
  if (facts.of_classes && !facts.classes.empty())
    all += text("/* Class k is called ", name, "_classes[k]. */\n", list(name + "_classes", facts.classes));
  return all;
}

std::string weights_in_c(const TrainConfig& config) {
  const std::string& column = config.data.sample_weight;
  if (column.empty() && config.class_weight.empty()) return "";
  std::string all = "/* input_2 is how much each example counts in the loss";
  if (!column.empty()) all += ": the number of the table's column for it";
  if (!config.class_weight.empty()) {
    all += text(column.empty() ? ": " : ", times ", "what examples of its class count, for classes 0, 1, ...:");
    for (const double weight : config.class_weight) all += text(" ", shortest(weight));
  }
  return all + ". */\n";
}

}  // namespace gradus::command
