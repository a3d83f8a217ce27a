/// Writing, reading, checking and running the programs of servers.
#include "gradus/distribute/parameter_servers/parameter_program.h"
#include <algorithm>
#include "gradus/backend/executable.h"
#include "gradus/distribute/messages/bytes_message.h"
#include "gradus/function/resident.h"

namespace gradus {
namespace {

constexpr std::string_view server_program = "a program for a parameter server";
constexpr std::size_t most_spec = 400;

Spec plain_spec(std::string_view written) {
  try {
    const Spec spec = spec_from_text(written);
    require<DataError>(!spec.device.is_named() && !spec.shape.is_symbolic() &&
                           std::ranges::all_of(spec.shape, [](std::int64_t d) { return d >= 0; }),
                       server_program, ": expected sizes that are known, got ", spec);
    bytes_of(spec);
    return spec;
  } catch (const InvalidArgument& error) { throw DataError(text(server_program, ": ", error.what())); }
}

std::vector<std::uint64_t> read_numbers(MessageReader& reader) {
  std::vector<std::uint64_t> out;
  for (std::size_t left = reader.size(ParameterProgram::most_entries, "the number of entries"); left > 0; --left)
    out.push_back(reader.integer());
  return out;
}

WrittenProgram read(std::string_view bytes) {
  MessageReader reader(bytes, server_program);
  WrittenProgram out;
  for (auto* list : {&out.pulled, &out.reads, &out.assigns}) *list = read_numbers(reader);
  for (std::size_t left = reader.size(ParameterProgram::most_entries, "the number of pushes"); left > 0; --left)
    out.pushes.push_back(plain_spec(reader.words(most_spec, "a spec")));
  for (std::size_t left = reader.size(ParameterProgram::most_entries, "the number of captures"); left > 0; --left) {
    const Spec spec = plain_spec(reader.words(most_spec, "a spec"));
    const std::string_view values = reader.words(ParameterProgram::most_bytes, "a capture");
    require<DataError>(static_cast<std::int64_t>(values.size()) == bytes_of(spec), server_program, ": a capture has ",
                       values.size(), " bytes, expected those of ", spec);
    Ref<Buffer> buffer = Buffer::allocate(bytes_of(spec));
    if (!values.empty()) std::memcpy(buffer->data(), values.data(), values.size());
    out.captures.push_back(Tensor::of_buffer(spec, std::move(buffer)));
  }
  for (std::size_t left = reader.size(ParameterProgram::most_entries, "the number of inputs"); left > 0; --left) {
    const auto kind = static_cast<WrittenProgram::Input::Kind>(reader.size(2, "the kind of an input"));
    out.inputs.push_back({kind, reader.size(ParameterProgram::most_entries, "the place of an input")});
  }
  out.graph = reader.words(ParameterProgram::most_bytes, "a graph");
  reader.finish();
  return out;
}

}  // namespace

std::string WrittenProgram::to_bytes() const {
  MessageWriter out;
  for (const auto* list : {&pulled, &reads, &assigns}) {
    out.integer(list->size());
    for (const std::uint64_t number : *list) out.integer(number);
  }
  out.integer(pushes.size());
  for (const Spec& spec : pushes) out.words(text(spec));
  out.integer(captures.size());
  for (const Tensor& capture : captures) {
    const Spec spec{capture.dtype(), capture.shape()};
    out.words(text(spec));
    out.words({capture.host<char>(), static_cast<std::size_t>(bytes_of(spec))});
  }
  out.integer(inputs.size());
  for (const Input& input : inputs) out.integer(static_cast<std::uint64_t>(input.kind)).integer(input.index);
  out.words(graph);
  return out.take();
}

ParameterProgram::ParameterProgram(std::string_view bytes, const std::function<Spec(std::uint64_t)>& spec_of)
    : written_(read(bytes)) {
  for (const std::uint64_t number : written_.pulled) spec_of(number);
  for (const Spec& spec : written_.pushes) push_bytes_ += static_cast<std::size_t>(bytes_of(spec));
  Graph graph;
  try {
    graph = parse_graph(written_.graph);
  } catch (const InvalidArgument& error) { throw DataError(text(server_program, ": ", error.what())); }
  check(graph, spec_of);
  written_.graph.clear();
  if (!graph.outputs.empty()) program_ = std::make_unique<TieredProgram>(std::move(graph), CompileOptions());
}

void ParameterProgram::check(const Graph& graph, const std::function<Spec(std::uint64_t)>& spec_of) const {
  require<DataError>(graph.symbols() == 0, server_program, ": sizes are open");
  require<DataError>(graph.inputs.size() == written_.inputs.size() && graph.outputs.size() == written_.assigns.size(),
                     server_program, ": the graph has ", graph.inputs.size(), " inputs and ", graph.outputs.size(),
                     " outputs, expected ", written_.inputs.size(), " and ", written_.assigns.size());
  for (const Value& value : graph.values)
    require<DataError>(!value.spec.device.is_named(), server_program, ": it names a device");
  const auto spec_of_input = [&](const WrittenProgram::Input& input) {
    using enum WrittenProgram::Input::Kind;
    const std::size_t count = input.kind == cell   ? written_.reads.size()
                              : input.kind == push ? written_.pushes.size()
                                                   : written_.captures.size();
    require<DataError>(input.index < count, server_program, ": input ", input.index, " of ", count);
    if (input.kind == cell) return spec_of(written_.reads[input.index]);
    return input.kind == push ? written_.pushes[input.index] : written_.captures[input.index].spec();
  };
  for (std::size_t k = 0; k < graph.inputs.size(); ++k)
    require<DataError>(graph[graph.inputs[k]].spec == spec_of_input(written_.inputs[k]), server_program, ": input ", k,
                       " is ", graph[graph.inputs[k]].spec, ", expected ", spec_of_input(written_.inputs[k]));
  for (std::size_t k = 0; k < graph.outputs.size(); ++k)
    require<DataError>(graph[graph.outputs[k]].spec == spec_of(written_.assigns[k]), server_program, ": output ", k,
                       " is ", graph[graph.outputs[k]].spec, ", expected ", spec_of(written_.assigns[k]));
  for (const std::uint64_t number : written_.reads) spec_of(number);
}

std::vector<Ref<Buffer>> ParameterProgram::run(std::span<const Ref<Buffer>> reads,
                                               std::span<const Ref<Buffer>> pushes) const {
  if (program_ == nullptr) return {};
  std::vector<Ref<Buffer>> inputs;
  for (const WrittenProgram::Input& input : written_.inputs) {
    using enum WrittenProgram::Input::Kind;
    if (input.kind == cell) inputs.push_back(reads[input.index]);
    else if (input.kind == push) inputs.push_back(pushes[input.index]);
    else inputs.push_back(resident(written_.captures[input.index]));
  }
  const auto program = program_->next();
  std::vector<Ref<Buffer>> outputs(program->graph().outputs.size());
  program->run(inputs, outputs);
  program->wait(outputs);
  return outputs;
}

}  // namespace gradus
