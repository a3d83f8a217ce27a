#include "gradus/function/export_stablehlo.h"
#include <algorithm>
#include "gradus/backend/xla/stablehlo.h"
#include "gradus/function/pending_file.h"

namespace gradus {
namespace {

/// The meaning of argument k. Names in it are the user's: control characters are written out, so that a comment ends
/// where its line does.
std::string meaning(const Segment& segment, const Source& source) {
  const auto index = static_cast<std::size_t>(source.index);
  switch (source.kind) {
    case Source::Kind::argument: return text("argument ", source.index, " of the step");
    case Source::Kind::cell: return text("Variable ", printable(segment.cells[index].cell->name, true));
    case Source::Kind::call_key: return "the key of this call's random numbers, another one at each call";
    default: break;
  }
  return "a captured tensor";
}

std::string comments(const Segment& segment, const std::vector<int>& replaces, bool has_fault_state) {
  std::string all;
  for (std::size_t k = 0; k < segment.sources.size(); ++k) {
    all += text("// %arg", k, ": ", meaning(segment, segment.sources[k]));
    for (std::size_t output = 0; output < replaces.size(); ++output)
      if (replaces[output] == static_cast<int>(k)) all += text("; result ", output, " is its next value");
    all += "\n";
  }
  for (const Segment::Assignment& a : segment.assignments)
    if (replaces[a.output] == -2)
      all += text("// result ", a.output, ": the next value of Variable ",
                  printable(segment.cells[a.cell].cell->name, true), "\n");
  if (has_fault_state)
    all += text("// %arg", segment.sources.size(),
                ": the fault state, zeros at first; the last result is its next value. Its first word is not 0 once an "
                "index was out of range: Variables then keep their values\n");
  return all;
}

}  // namespace

std::string stablehlo_text(const FunctionOptions& function, const std::string& title, Draft draft) {
  auto [segment, graph] = std::move(draft).take_leaf(title, "stablehlo");
  graph = xla::prepared_for_stablehlo(without_devices(std::move(graph), title, "stablehlo"), {}, function.disable);
  const std::vector<int> replaces = segment->replaces(graph.outputs.size());
  std::vector<int> donated = replaces;
  for (int& input : donated) input = std::max(input, -1);
  const xla::StableHloModule module = xla::to_stablehlo(
      graph, {.donated = donated, .highest_precision = keeps_all_bits(function.matmul_precision)}, "StableHLO");
  return comments(*segment, replaces, module.has_fault_state) + module.text;
}

void detail::write_stablehlo(const std::filesystem::path& file, const std::string& text) {
  std::deque<PendingFile> files;
  files.emplace_back(file, text);
  PendingFile::put_in_place(files);
}

}  // namespace gradus
