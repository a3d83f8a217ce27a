/// One line per layer, then the totals.
#include "gradus/nn/summary.h"
#include <algorithm>
#include <iomanip>
#include <set>
#include "gradus/base/error.h"
#include "gradus/nn/layer.h"

namespace gradus {
namespace {

std::int64_t bytes_of_variables(const Variables& variables) {
  std::int64_t bytes = 0;
  for (const Variable& variable : variables) bytes += bytes_of({variable.dtype(), variable.shape()});
  return bytes;
}

struct Row {
  std::string layer, output, parameters, bytes;
};

/// Columns as wide as what stands in them, with a blank between.
void print(std::ostream& out, const std::vector<Row>& rows) {
  std::size_t layer = 31, output = 19, parameters = 11, bytes = 13;
  for (const Row& row : rows) {
    layer = std::max(layer, row.layer.size()), output = std::max(output, row.output.size());
    parameters = std::max(parameters, row.parameters.size()), bytes = std::max(bytes, row.bytes.size());
  }
  const auto width = [](std::size_t n) { return std::setw(static_cast<int>(n)); };
  for (const Row& row : rows)
    out << std::left << width(layer) << row.layer << ' ' << width(output) << row.output << ' ' << std::right
        << width(parameters) << row.parameters << ' ' << width(bytes) << row.bytes << '\n';
}

/// The shape of a layer's result, or why it is not known.
std::string output_of(const Layer& layer) {
  if (const auto output = layer.output()) return text(output->shape);
  return layer.is_built() ? "of several inputs" : "not built";
}

std::string label_of(const Layer& layer) {
  const std::string kind(layer.kind()), name = layer.name().empty() ? kind : layer.name();
  return printable(name.starts_with(kind) ? name : name + " (" + kind + ")", true);
}

/// `is_new`: what was there before, as a layer that is used twice, has been counted.
Row row_of(const Layer& layer, bool is_new) {
  const Variables variables = layer.variables();
  return {label_of(layer), output_of(layer), is_new ? std::to_string(variables.parameters()) : "the same",
          is_new ? std::to_string(bytes_of_variables(variables)) : "0"};
}

void collect(const Layer& layer, std::vector<const Layer*>& all) {
  if (std::ranges::find(all, &layer) != all.end()) return;
  all.push_back(&layer);
  for (const auto& child : layer.children()) collect(*child, all);
}

/// Layers that were copied into the model from what is still there, and may be meant to be the same.
void print_copies(std::ostream& out, const Layer& model) {
  std::vector<const Layer*> own;
  collect(model, own);
  for (const Layer* layer : own) {
    if (layer == &model) continue;
    for (const auto& source : layer->sources()) {
      if (std::ranges::find(own, source.get()) != own.end()) continue;
      out << label_of(*layer) << " is a copy of " << label_of(*source)
          << ", which is there, too, and goes its own way: to have the same in both, write shared(...)\n";
      break;
    }
  }
}

}  // namespace

std::string summary_of(const Layer& layer) {
  TextStream out;
  out << "Model: " << (layer.name().empty() ? layer.type() : layer.name()) << '\n';
  std::vector<Row> rows{{"layer", "output shape", "parameters", "bytes"}};
  std::set<const Layer*> seen;
  if (layer.children().empty()) rows.push_back(row_of(layer, true));
  for (const auto& child : layer.children()) rows.push_back(row_of(*child, seen.insert(child.get()).second));
  print(out, rows);
  std::int64_t trainable = 0;
  const Variables all = layer.variables();
  for (const Variable& variable : all)
    if (variable.trainable()) trainable += variable.shape().size();
  out << "parameters: " << all.parameters() << " (" << bytes_of_variables(all) << " bytes), trainable: " << trainable
      << '\n';
  print_copies(out, layer);
  return std::move(out).str();
}

}  // namespace gradus
