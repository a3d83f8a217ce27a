/// One line a layer, then the totals.
#include "gradus/nn/summary.h"
#include <iomanip>
#include <sstream>
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

void print(std::ostream& out, const Row& row) {
  out << std::left << std::setw(32) << row.layer << std::setw(20) << row.output << std::right << std::setw(12)
      << row.parameters << std::setw(14) << row.bytes << '\n';
}

Row row_of(const Layer& layer) {
  const Variables variables = layer.variables();
  const std::string kind(layer.kind()), name = layer.name().empty() ? kind : layer.name();
  return {name.starts_with(kind) ? name : name + " (" + kind + ")",
          layer.input() ? text(layer.output_of(*layer.input()).shape) : "not built",
          std::to_string(variables.parameters()), std::to_string(bytes_of_variables(variables))};
}

}  // namespace

std::string summary_of(const Layer& layer) {
  std::ostringstream out;
  out << "Model: " << (layer.name().empty() ? std::string(layer.kind()) : layer.name()) << '\n';
  print(out, {"layer", "output shape", "parameters", "bytes"});
  if (layer.children().empty()) print(out, row_of(layer));
  for (const auto& child : layer.children()) print(out, row_of(*child));
  std::int64_t trainable = 0;
  const Variables all = layer.variables();
  for (const Variable& variable : all)
    if (variable.trainable()) trainable += variable.shape().size();
  out << "parameters: " << all.parameters() << " (" << bytes_of_variables(all) << " bytes), trainable: " << trainable
      << '\n';
  return std::move(out).str();
}

}  // namespace gradus
